# arguments.sh - wrong arguments end with status 2 and one sentence that names the argument; nothing is read or written.
. "$ROOT/tests/tool/support.sh"
: >m.keras
: >d.npz

# Commands.
says 2 "did you mean tandem fit?" fti
says 2 "did you mean tandem evaluate?" evalute m.keras
says 2 "tandem help. lists" frobnicate
says 2 "did you mean tandem fit?" help fot
says 2 "expected a command in front of the options" --epochs 3 fit
"$TANDEM" >out 2>err
[ $? -eq 2 ] || fail "no command: expected status 2"
grep -q "^Usage: tandem COMMAND" err || fail "no command: no usage on standard error"

# Options that there are not, and values that are missing or too many.
says 2 "monitor belongs to --early-stopping, --reduce-lr and --checkpoint" fit m.keras --train d.npz --monitor loss
says 2 "did you mean --learning-rate?" fit m.keras --lerning-rate 1
says 2 "did you mean --epochs?" fit m.keras --epcohs=3
says 2 "unknown option --zzz; .tandem help fit. lists" fit m.keras --zzz
says 2 "unknown option --;\|unknown option --=" fit m.keras --=1
says 2 "did you mean --help?" fit -h
says 2 "unknown option -z" fit m.keras -qz
says 2 "unknown option --train" evaluate m.keras --train d.npz
says 2 "may be --validation" fit m.keras --val d.npz
says 2 "train: expected DATA after it" fit m.keras --train
says 2 "output: expected OUT.keras after it" fit m.keras -o
says 2 "quiet: expected no value" fit m.keras --quiet=yes

# What is written is not what is read, nor another thing that is written.
for words in "--log d.npz" "--csv-log ./d.npz" "--trace d.npz" "--validation x.npy,y.npy --log y.npy" "--log m.keras" "--trace m.keras" \
    "--log o.keras" "--csv-log ./o.keras" "--checkpoint o.keras" "--log l --trace ./l" "--weights w.weights.h5 --log w.weights.h5"; do
    says 2 "name one file, .*; give them two" fit m.keras --train d.npz --output o.keras $words
done
says 2 "log and --train name one file, d.npz" fit m.keras --train 'd*.npz' --log d.npz
says 2 "output and --data name one file" predict m.keras --data d.npz --output ./d.npz
says 2 "confusion-file and --data name one file" evaluate m.keras --data d.csv --confusion-file d.csv
says 2 "csv-log and --train name one file" find-lr m.keras --train d.npz --csv-log d.npz
mkdir images && : >images/a.png && : >classes.txt
for words in "--trace images/a.png" "--csv-log classes.txt" "--log ./images/../images/a.png"; do
    says 2 "a.* of the data of --train, images; give it another name" fit m.keras --train images --output o.keras $words
done
says 2 "checkpoint: ./{epoch}.keras may become the name of MODEL, 1.keras, which is read" \
    fit 1.keras --train d.npz --output o.keras --checkpoint './{epoch}.keras'
[ ! -s images/a.png ] && [ ! -s classes.txt ] && rm -r images classes.txt || fail "data was written"
[ ! -s d.npz ] && [ ! -s m.keras ] || fail "something was written"

# What stands after the options.
says 2 "expected MODEL.keras after the options" fit --train d.npz
says 2 "expected one MODEL.keras, got 'd.npz'" fit m.keras d.npz
says 2 "expected options only, got 'm.keras'" doctor m.keras
says 2 "expected mlp|lenet5|cifar|resnet20|lstm|char_lstm" new
says 2 "expected mlp, lenet5, cifar, resnet20, lstm or char_lstm, got 'lenet'; try tandem new lenet5" new lenet
says 2 "text: expected the text whose characters .* try tandem new char_lstm --text book.txt" new char_lstm
says 2 "text: mlp reads no text; it goes with char_lstm" new mlp --text book.txt
says 2 "window: lstm reads no text" new lstm --window 30
says 1 "text: nothere.txt" new char_lstm --text nothere.txt
for value in 50 x8 50x 50x0 0x8 -5x8 5x8x2 2147483648x1 ""; do
    says 2 "shape: expected STEPSxNUMBERS, got '$value'; try --shape 50x8" new lstm --shape "$value"
done
says 2 "outputs: expected a whole number from 1" new lstm --outputs 0
says 2 "shape: the sizes of mlp are fixed" new mlp --shape 50x8
says 2 "outputs: the sizes of cifar are fixed" new cifar --outputs 2
says 2 "zero-gamma: lenet5 has no residual blocks" new lenet5 --zero-gamma
says 2 "shape: the sizes of resnet20 are fixed" new resnet20 --shape 50x8
says 2 "expected MODEL.keras" summary
says 2 "expected options only\|expected one MODEL.keras" summary m.keras --  --quiet

# Whole numbers.
for value in 0 -1 1.5 x 5x " 5" "5 " +5 0x10 1e3 "" 2147483648 99999999999999999999; do
    says 2 "epochs: expected a whole number from 1 to 2147483647, got '$value'; try --epochs 5" \
        fit m.keras --train d.npz "--epochs=$value"
done
for option in epochs batch-size steps-per-epoch shards seed; do
    says 2 "$option: expected a whole number from 1 to [0-9]*, got '0'" fit m.keras --train d.npz --$option 0
done
for value in 0 -1 automatic 1.5 ""; do
    says 2 "steps-per-execution: expected auto or a whole number of steps, got '$value'" \
        fit m.keras --train d.npz "--steps-per-execution=$value"
done
says 2 "validation-steps: there is no validation data" fit m.keras --train d.npz --validation-steps 3
says 2 "steps: expected a whole number from 1" evaluate m.keras --data d.npz --steps 0
says 2 "steps: expected a whole number from 1" predict m.keras --data d.npz --steps x
says 2 "initial-epoch: expected a whole number from 0" fit m.keras --train d.npz --initial-epoch -1
says 2 "initial-epoch: expected a number below --epochs (3), got 3" \
    fit m.keras --train d.npz --epochs 3 --initial-epoch 3
says 2 "seed: expected a whole number" fit m.keras --train d.npz --seed 9223372036854775808
says 2 "batch-size: expected" evaluate m.keras --data d.npz --batch-size 0
says 2 "batch-size: expected" predict m.keras --data d.npz --batch-size 0
says 2 "batch-size: expected" explain m.keras --batch-size 0
says 2 "mode: expected train, evaluate or predict, got 'training'; try --mode train" explain m.keras --mode training

# Numbers: whatever the locale, a comma is not a decimal point.
for value in nan inf -1 0 0,1 1e99 1e-99 "" x 1x " 1"; do
    says 2 "learning-rate: expected a number above 0, got '$value'" fit m.keras --train d.npz "--learning-rate=$value"
done
says 2 "momentum: expected a number from 0 to 1, got '1.1'" fit m.keras --train d.npz --momentum 1.1
says 2 "beta-1: expected a number from 0 to below 1, got '1'" fit m.keras --train d.npz --beta-1 1
says 2 "beta-2: expected a number from 0 to below 1, got '-0.1'" fit m.keras --train d.npz --beta-2 -0.1
says 2 "epsilon: expected a number not below 0" fit m.keras --train d.npz --epsilon -1
says 2 "weight-decay: expected a number not below 0" fit m.keras --train d.npz --weight-decay -1
says 2 "clipvalue: expected a number above 0" fit m.keras --train d.npz --clipvalue 0
says 2 "clipnorm: expected a number above 0, got '-1'" fit m.keras --train d.npz --clipnorm -1
says 2 "ema-momentum: expected a number from 0 to 1, got '2'" fit m.keras --train d.npz --ema-momentum 2
says 2 "ema-overwrite-frequency: expected a whole number from 1" fit m.keras --train d.npz --ema-overwrite-frequency 0
says 2 "gradient-accumulation-steps: expected a whole number from 2" fit m.keras --train d.npz --gradient-accumulation-steps 1
says 2 "expected one of --clipvalue, --clipnorm and --global-clipnorm" fit m.keras --train d.npz --clipnorm 1 --clipvalue 1
says 2 "scale: expected a number above 0" fit m.keras --train d.npz --scale 0
for value in 0 -5 1.0 1.5 nan x ""; do
    says 2 "validation-split: expected a fraction between 0 and 1 or a whole number of samples, got '$value'" \
        fit m.keras --train d.npz "--validation-split=$value"
done

# Names.
says 2 "optimizer: expected sgd or adam, got 'Adm'; try --optimizer adam" fit m.keras --train d.npz --optimizer Adm
says 2 "loss: .*got 'binary_crosentropy'; try --loss binary_crossentropy" \
    fit m.keras --train d.npz --loss binary_crosentropy
says 2 "metrics: .*got 'acuracy'; try --metrics accuracy" fit m.keras --train d.npz --metrics accuracy,acuracy
says 2 "metrics: .*got ''" fit m.keras --train d.npz --metrics accuracy,
for list in , cpu: cpu:0, :0 cpu:0:1 CPU "cpu 0" cpu:x; do
    says 2 "devices: expected device names and commas, got '$list'; try --devices cpu:0,cpu:1" \
        fit m.keras --train d.npz --devices "$list"
done
for list in flop crop crop=0 crop=1.5 shift=2 rotation=x flip=sideways fill=black flip,, ""; do
    says 2 "augment: expected a list of flip, .* got '$list'; try --augment flip,crop=4" \
        fit m.keras --train d.npz --augment "$list"
done
says 2 "shuffle-buffer: expected a whole number from 1" fit m.keras --train d.npz --shuffle-buffer 0
says 2 "expected --no-shuffle or --shuffle-buffer, got both" fit m.keras --train d.npz --shuffle-buffer 9 --no-shuffle
for value in 4/4 -1/4 1 1/ /4 1/0 a/b 1/2/3 ""; do
    says 2 "shard: expected I/N, with I from 0 to N-1, got '$value'; try --shard 0/4" fit m.keras --train d.npz --shard "$value"
done
says 2 "repeat: expected a whole number from 1" fit m.keras --train d.npz --repeat 0
says 2 "interleave: expected a whole number from 1" fit m.keras --train d.npz --train d.npz --interleave 0
says 2 "interleave takes turns among several --train" fit m.keras --train d.npz --interleave 1
says 2 "repeat with --validation-split would validate on what is trained on" \
    fit m.keras --train d.npz --repeat 2 --validation-split 0.5
says 2 "train: expected at most 16 of them, got 'd.npz' too" \
    fit m.keras $(awk 'BEGIN { for (i = 0; i < 17; i++) print "--train d.npz" }')
# rates WORDS PATTERN: a schedule that cannot be.
rates() {
    says 2 "schedule: .*$2" fit m.keras --train d.npz --schedule "$1"
}
rates cosine "expected cosine_decay, .* or polynomial_decay, and its arguments, got 'cosine'; try --schedule cosine_decay,"
rates "" "got ''"
rates cosine_decay "cosine_decay needs decay_steps; try --schedule cosine_decay,decay_steps="
rates exponential_decay,decay_steps=5 "exponential_decay needs decay_rate"
rates cosine_decay,decay_step=5 "cosine_decay takes initial_learning_rate, decay_steps, .* got 'decay_step'; try decay_steps"
rates polynomial_decay,decay_steps=5,staircase "polynomial_decay takes .*, cycle; got 'staircase'"
rates cosine_decay,decay_steps "decay_steps: expected a number not below 0, as 1000, got nothing"
rates cosine_decay,decay_steps=-5 "decay_steps: .* got '-5'"
rates cosine_decay,decay_steps=nan "decay_steps: .* got 'nan'"
rates polynomial_decay,decay_steps=5,cycle=yes "cycle: expected no value, got 'yes'"
rates cosine_decay,decay_steps=5,warmup_steps=2 "warmup_target and warmup_steps belong together"
rates piecewise_constant_decay,boundaries=1:2,values=1:2 "2 boundaries and 2 values; expected one value more"
rates piecewise_constant_decay,boundaries=1:x,values=1:2 "boundaries: expected whole numbers, .* got '1:x'"
rates piecewise_constant_decay,boundaries=1,values=1:-2 "values: expected numbers, .* got '1:-2'"
rates cosine_decay,,decay_steps=5 "got ''"
for list in x 5 5= =1 5=x 5=-1 5=nan 5=1,5=2 5=1,4=1 5=1, ""; do
    says 2 "learning-rate-scheduler: expected EPOCH=RATE and commas, .* got '$list'; try" \
        fit m.keras --train d.npz --learning-rate-scheduler "$list"
done
says 2 "expected --schedule or --reduce-lr, got both: a schedule sets the learning rate of every step" \
    fit m.keras --train d.npz --reduce-lr 3 --schedule cosine_decay,decay_steps=9
says 2 "expected --schedule or --learning-rate-scheduler, got both" \
    fit m.keras --train d.npz --learning-rate-scheduler 3=0.1 --schedule cosine_decay,decay_steps=9
says 2 "input-threads: expected a whole number from 1 to 1024, got '0'" fit m.keras --train d.npz --input-threads 0
says 2 "devices: expected a list .* got an empty word" fit m.keras --train d.npz --devices ""
says 2 "train: expected the path of the data, got an empty word" fit m.keras --train d.npz --train ""

# What is required, and what excludes each other.
says 2 "train: expected the data to train on, got none; try --train" fit m.keras
says 2 "data: expected the data to evaluate on, got none" evaluate m.keras
says 2 "data: expected the data to predict from, got none" predict m.keras
says 2 "expected --validation or --validation-split, got both" \
    fit m.keras --train d.npz --validation d.npz --validation-split 0.5

# Names of results.
says 2 "output: expected a name that ends in .keras, got 'x.h5'" fit m.keras --train d.npz --output x.h5
says 2 "output: expected a name that ends in .npy, got 'x.txt'" predict m.keras --data d.npz --output x.txt
says 2 "output: expected a name that ends in .keras, got 'keras'" new mlp -o keras
says 2 "output: expected a path of less than" new mlp -o "$(printf '%05000d' 0).keras"

[ "$(ls)" = "$(printf 'd.npz\nerr\nm.keras\nout')" ] || fail "something was written: $(ls)"
finish
