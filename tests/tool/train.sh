# train.sh - from nothing to predictions: new, summary, fit, evaluate, predict, with tiny images.
. "$ROOT/tests/tool/support.sh"
images digits train 330 1
images digits t10k 50 2

expect 0 new mlp --seed 5
expect 0 summary mlp.keras
grep -q "269,322" out || fail "summary does not count the parameters: $(cat out)"
expect 0 explain mlp.keras --batch-size 16 --devices cpu:0,cpu:1
[ -s out ] || fail "explain printed nothing"
expect 0 explain "$ROOT/tests/formats/golden/plain.keras"
grep -q "^one prediction" out || fail "explain of a file without an optimizer printed: $(cat out)"
expect 0 explain mlp.keras --batch-size 16 --json
grep -q '"op": "matmul"' out && grep -q '"flops": [1-9]' out && grep -q '"bytes": [1-9]' out ||
    fail "explain --json has no matmul: $(cat out)"
json() {
    ! command -v python3 >/dev/null || python3 -m json.tool out >/dev/null || fail "explain $* is not JSON: $(cat out)"
}
json --json
says_float32() {
    expect 0 explain mlp.keras --batch-size 16 "$@"
    grep -q "^precision: float32, since $why$" out || fail "explain $* printed: $(cat out)"
    expect 0 explain mlp.keras --batch-size 16 --json "$@"
    grep -q "\"why_float32\": \"$why\"" out || fail "explain --json $* printed: $(cat out)"
}
why="no layer asks for bfloat16" says_float32
why="it was asked for" says_float32 --precision float32
# Every key of the object is told of.
header=$(sed -n '/^ \* With .json an object/,/\*\/$/p' "$ROOT/include/tandem/model.h")
manual=$(sed -n '/^\.B ...-json/,/^\.SS/p' "$ROOT/docs/man/tandem-explain.1")
tells_of_keys() {
    for key in $(grep -o '"[a-z0-9_]*":' out | tr -d '":' | sort -u); do
        echo "$header" | grep -q "\"$key\"" || fail "model.h does not tell of \"$key\", which explain --json has"
        echo "$manual" | tr ' ,;.:()' '\n' | grep -qx "$key" || fail "the manual does not tell of \"$key\", which explain --json has"
    done
}
expect 0 explain mlp.keras --batch-size 16 --json --time
tells_of_keys
# Of kernels that were timed all times are there; where nothing may be timed there are none.
expect 0 new lenet5
expect 0 explain lenet5.keras --batch-size 32 --json
[ "$(grep -c '"choice": null' out)" = "$(grep -c '"kernel": ' out)" ] || fail "explain --json chose by the clock: $(cat out)"
export TANDEM_CACHE="$PWD/choices"
expect 0 explain lenet5.keras --batch-size 32 --json
export TANDEM_CACHE=off
tr -d ' \n' <out | grep -q '"choice":{"taken":"\([^"]*\)","us":{"[^"]*":[0-9.]*,"[^"]*":[0-9.]*[^}]*},"unsure":' ||
    fail "explain --json has no kernel that was timed: $(cat out)"
tells_of_keys
json of timed kernels
rm -rf lenet5.keras choices
expect 0 explain mlp.keras --batch-size 16 --steps-per-execution auto
grep -q "an epoch: one run of all its steps" out || fail "explain --steps-per-execution auto: $(cat out)"
expect 0 explain mlp.keras --batch-size 16 --steps-per-execution 7
grep -q "an epoch: 7 steps a run, as steps_per_execution says" out || fail "explain --steps-per-execution: $(cat out)"

for time in "" --time; do
    says 1 "out of memory: .* needs [0-9.]* MB more, of [0-9.]* MB that this process may use in all; try a smaller batch" \
        explain mlp.keras --batch-size 2000000000 --devices cpu:0 $time
done

# Where the time goes: a table, or numbers; of any step that the file can make, and nothing is written.
mkdir timed && cd timed || exit 1
for mode in train evaluate predict; do
    expect 0 explain ../mlp.keras --mode $mode --time
    grep -q "^a step .* 100.0% " out && grep -q "matmul .* forward " out || fail "explain --mode $mode --time: $(cat out)"
    expect 0 explain ../mlp.keras --mode $mode --time --json --batch-size 3 --precision bfloat16
    grep -q "\"mode\": \"$mode\"" out || fail "explain --mode $mode --json: $(cat out)"
    json --mode $mode --time --json
done
rm out err
[ -z "$(ls)" ] || fail "explain --time wrote $(ls)"
cd .. && rmdir timed
expect 0 explain "$ROOT/tests/formats/golden/plain.keras" --time
grep -q ", prediction in float32, by " out || fail "explain --time of a file without an optimizer: $(cat out)"
says 2 "optimizer" explain "$ROOT/tests/formats/golden/plain.keras" --time --mode train
expect 0 doctor
[ -s out ] || fail "doctor printed nothing"
grep -q "^UCX: " out || fail "doctor does not say whether UCX is here: $(cat out)"

# What the CPU lacks is said, and float32 takes its place. (oneDNN is told to see a lesser CPU than this one.)
export ONEDNN_MAX_CPU_ISA=AVX2
expect 0 doctor
grep -q "^bfloat16: computed in float32, since " out || fail "doctor of a lesser CPU printed: $(cat out)"
expect 0 explain mlp.keras --batch-size 16 --precision bfloat16
grep -q "^precision: float32 instead of bfloat16, since " out || fail "explain on a lesser CPU printed: $(cat out)"
expect 0 fit mlp.keras --train digits --epochs 1 --precision bfloat16 --output lesser.keras
grep -q "computing in float32 instead of bfloat16: " out err || fail "fit on a lesser CPU printed: $(cat out err)"
rm lesser.keras
unset ONEDNN_MAX_CPU_ISA

# fit says where the result goes, draws a line an epoch, and logs.
expect 0 fit mlp.keras --train digits --validation-split 30 --epochs 4 --batch-size 32 --seed 9 --log log.jsonl
[ -s mlp-trained.keras ] || fail "fit wrote no mlp-trained.keras"
grep -q "on 330 samples of digits; the result goes to mlp-trained.keras" out || fail "fit printed: $(cat out)"
[ "$(grep -c loss out)" -eq 4 ] || fail "expected a line an epoch: $(cat out)"
[ "$(wc -l <log.jsonl)" -eq 4 ] || fail "expected four lines in the log"
for key in epoch loss accuracy val_loss val_accuracy steps samples seconds seconds_waiting learning_rate; do
    [ "$(grep -c "\"$key\": [0-9]" log.jsonl)" -eq 4 ] || fail "$key is not in every line of the log: $(cat log.jsonl)"
done
[ "$(number steps log.jsonl)" = 10 ] || fail "expected 10 steps: $(cat log.jsonl)"
[ "$(number samples log.jsonl)" = 300 ] || fail "expected 300 samples: $(cat log.jsonl)"
[ "$(grep -c -- "- waited for input: [0-9.]*%$" out)" -eq 4 ] || fail "expected to be told of waiting: $(cat out)"
head -n 1 log.jsonl | grep -q '^{"epoch": 0, "loss": ' || fail "the log begins with: $(head -n 1 log.jsonl)"
head -n 1 log.jsonl >first
holds "$(number loss log.jsonl) < 0.5 * $(number loss first)"

# A timeline names its threads, those that make the input too.
expect 0 new lenet5 --output lenet5.keras
expect 0 fit lenet5.keras --train digits --augment crop=2 --output traced.keras --trace trace.json
grep -q "Saved trace.json" out || fail "--trace said: $(cat out)"
for thread in "td_fit" "input thread 0" "cpu.* replica 0 thread 0"; do
    grep -q "\"thread_name\".*\"$thread\"" trace.json || fail "--trace has no thread $thread"
done
grep -q '"conv2d_1 conv2d".*"cat": "op"' trace.json || fail "--trace names no op of conv2d_1"
expect 0 predict traced.keras --data digits --quiet --output p.npy --trace predict.json
expect 1 evaluate traced.keras --data digits --quiet --trace no/where.json
grep -q "^loss" out && fail "--trace: its folder was looked for too late"
if command -v python3 >/dev/null; then
    python3 -m json.tool trace.json >/dev/null && python3 -m json.tool predict.json >/dev/null || fail "--trace is not JSON"
fi

expect 0 fit mlp.keras --train digits --quiet --output board.keras --tensorboard logs/a --histogram-freq 1 --update-freq 4
[ "$(find logs -name 'events.out.tfevents.*.v2' | wc -l)" -eq 2 ] || fail "--tensorboard wrote: $(find logs)"
says 2 "belong to --tensorboard" fit mlp.keras --train digits --update-freq batch
says 2 "update-freq: expected epoch, batch or" fit mlp.keras --train digits --tensorboard logs --update-freq often

expect 0 evaluate mlp-trained.keras --data digits --quiet
grep -q "^loss: [0-9]" out || fail "evaluate printed: $(cat out)"
holds "$(number accuracy out) >= 0.9"
grep -q "val_" out && fail "evaluate printed: $(cat out)"

expect 0 evaluate mlp-trained.keras --data digits --quiet --confusion --confusion-file classes.csv
grep -q "^class *precision *recall *f1 *support$" out || fail "evaluate --confusion printed: $(cat out)"
[ "$(grep -c "^[0-9] .* 5$" out)" -ge 10 ] || fail "evaluate --confusion: expected 5 of each digit: $(cat out)"
[ "$(awk -F, 'NR > 1 { for (i = 2; i <= NF; i++) sum += $i } END { print sum }' classes.csv)" = 50 ] ||
    fail "classes.csv does not count 50 samples: $(cat classes.csv)"
expect 1 evaluate mlp-trained.keras --data digits --quiet --confusion-file no/where.csv
grep -q "folder.*no" err || fail "a confusion-file that cannot be: $(cat err)"
expect 2 evaluate mlp-trained.keras --data digits --quiet --confusion-file c.csv --class-names one,two
grep -q "class-names: expected 10 names" err || fail "two names for ten classes: $(cat err)"
if "$TANDEM" evaluate mlp-trained.keras --data digits --quiet --confusion-file classes.png >out 2>err; then
    head -c 8 classes.png | grep -q PNG || fail "--confusion-file drew no PNG"
    expect 0 evaluate mlp-trained.keras --data digits --quiet --confusion-file classes.svg \
        --class-names zero,one,two,three,four,five,six,seven,eight,nine
    grep -q "^seven .* 5$" out || fail "--class-names printed: $(cat out)"
    grep -q "<svg" classes.svg || fail "--confusion-file drew no SVG"
else
    grep -q "confusion-file: .*without cairo" err || fail "--confusion-file classes.png said: $(cat err)"
fi
says 2 "ignore-class: expected a class number" evaluate mlp-trained.keras --data digits --ignore-class x

expect 0 predict mlp-trained.keras --data digits --output p.npy
head -c 128 p.npy | grep -a -q "'descr': '<f4', 'fortran_order': False, 'shape': (50, 10,\{0,1\})" || fail "p.npy: $(head -c 128 p.npy)"
[ "$(wc -c <p.npy)" -eq 2128 ] || fail "p.npy has $(wc -c <p.npy) bytes"

# What it is called by itself may be what it is made of.
: >mlp-trained-predictions.npy
says 2 "output and --data name one file" predict mlp-trained.keras --data mlp-trained-predictions.npy
rm mlp-trained-predictions.npy

# The first batches only.
expect 0 predict mlp-trained.keras --data digits --batch-size 8 --steps 3 --output first.npy
grep -q "predictions for 24 samples" out || fail "predict --steps 3 printed: $(cat out)"
[ "$(wc -c <first.npy)" -eq $((128 + 24 * 40)) ] || fail "first.npy has $(wc -c <first.npy) bytes"
expect 0 evaluate mlp-trained.keras --data digits --batch-size 8 --steps 3
grep -q "3/3" out || fail "evaluate --steps 3 printed: $(cat out)"
expect 1 evaluate mlp-trained.keras --data digits --batch-size 8 --steps 8
grep -q "steps: 8, but the 50 samples of .*digits.* make 7 batches of 8" err || fail "too many steps: $(cat err)"
expect 0 fit mlp.keras --train digits --validation digits --validation-steps 1 --batch-size 50 --quiet --log v.jsonl --output v.keras
expect 2 fit mlp.keras --train digits --validation digits --validation-steps 9 --quiet --output v.keras
grep -q "validation_steps: 9, but the 50 samples" err || fail "too many validation steps: $(cat err)"

# The same seed gives the same bits; so do shards on one and two devices, and what is quiet.
predictions() {
    output=$1
    shift
    expect 0 fit mlp.keras --train digits --epochs 2 --quiet --output r.keras "$@"
    [ ! -s out ] || fail "fit --quiet printed: $(cat out)"
    expect 0 predict r.keras --data digits --quiet --output "$output"
}
predictions a.npy --seed 3
predictions b.npy --seed 3
predictions c.npy --seed 4
cmp -s a.npy b.npy || fail "the same seed gave other bits"
cmp -s a.npy c.npy && fail "another seed gave the same bits"
predictions f.npy --seed 3 --augment flip,crop=2,rotation=0.02 --input-threads 1
predictions g.npy --seed 3 --augment flip,crop=2,rotation=0.02 --input-threads 3
cmp -s f.npy g.npy || fail "three input threads gave other bits than one"
cmp -s f.npy a.npy && fail "--augment changed nothing"
predictions h.npy --seed 3 --augment flip,crop=2,rotation=0.02 --cache c.bin
predictions i.npy --seed 3 --augment flip,crop=2,rotation=0.02 --cache c.bin
predictions j.npy --seed 3 --augment flip,crop=2,rotation=0.02 --cache memory
predictions k.npy --seed 3 --shuffle-buffer 50
cmp -s k.npy a.npy && fail "--shuffle-buffer shuffled as the whole data is"
expect 0 fit mlp.keras --train digits --quiet --batch-size 64 --drop-remainder --log d.jsonl --output r.keras
[ "$(number samples d.jsonl)" = 320 ] || fail "--drop-remainder trained on $(number samples d.jsonl) of 330 samples"
expect 2 fit mlp.keras --train digits --quiet --batch-size 500 --drop-remainder --output r.keras
grep -q "do not fill one batch of 500" err || fail "an epoch without a batch: $(cat err)"
for other in h.npy i.npy j.npy; do
    cmp -s f.npy $other || fail "a cache gave other bits: $other"
done
[ -s c.bin ] || fail "--cache wrote no c.bin"
images others train 320 7
expect 1 fit mlp.keras --train others --cache c.bin --quiet
grep -q "cache: .*c.bin: the cache was made of other data" err || fail "other data's cache was taken: $(cat err)"
predictions d.npy --seed 3 --shards 2 --devices cpu:0
predictions e.npy --seed 3 --shards 2 --devices cpu:0,cpu:1
cmp -s d.npy e.npy || fail "two devices gave other bits than one, with --shards 2"
predictions f.npy --no-shuffle --seed 3
cmp -s a.npy f.npy && fail "--no-shuffle changed nothing"

# Resumed in place, with the optimizer's state; then over the file's configuration.
expect 0 fit r.keras --train digits --epochs 4 --initial-epoch 2 --output r.keras --log resumed.jsonl --quiet
[ "$(wc -l <resumed.jsonl)" -eq 2 ] || fail "expected two epochs: $(cat resumed.jsonl)"
[ "$(number epoch resumed.jsonl)" = 3 ] || fail "the last epoch is not 3: $(cat resumed.jsonl)"
expect 0 fit mlp.keras --train digits --steps-per-epoch 3 --learning-rate 0.25 --metrics none --log short.jsonl --quiet
[ "$(number steps short.jsonl)" = 3 ] || fail "expected 3 steps: $(cat short.jsonl)"
[ "$(number learning_rate short.jsonl)" = 0.25 ] || fail "expected the learning rate given: $(cat short.jsonl)"
grep -q accuracy short.jsonl && fail "--metrics none kept the accuracy"
expect 0 fit mlp.keras --train digits --steps-per-epoch 3 --ignore-class 9 --metrics accuracy,mean_io_u --log iou.jsonl --quiet \
    --validation digits --output iou.keras
holds "$(number mean_io_u iou.jsonl) > 0" && holds "$(number val_mean_io_u iou.jsonl) > 0"
expect 0 evaluate iou.keras --data digits --quiet --confusion
grep -q "^mean_io_u: 0[.]" out || fail "the metric did not come back from the file: $(cat out)"
grep -q "^5 samples of the class to ignore" out || fail "the class to ignore did not come back from the file: $(cat out)"
expect 2 fit mlp.keras --train digits --loss categorical_crossentropy --ignore-class 9
grep -q "ignore_class belongs to SparseCategoricalCrossentropy, and the loss is CategoricalCrossentropy" err ||
    fail "--ignore-class of another loss: $(cat err)"
says 2 "metrics: expected accuracy,.*got 'mean_iou'; try --metrics mean_io_u" fit mlp.keras --train digits --metrics mean_iou
expect 0 fit mlp.keras --train digits --optimizer sgd --momentum 0.9 --nesterov --learning-rate 0.05 --quiet -o s.keras
says 2 "beta-1 belongs to adam" fit s.keras --train digits --beta-1 0.8
says 2 "momentum belongs to sgd" fit mlp.keras --train digits --momentum 0.8
says 2 "ema-momentum belongs to --use-ema" fit mlp.keras --train digits --ema-momentum 0.8
expect 0 fit mlp.keras --train digits --clipnorm 1 --use-ema --ema-momentum 0.9 --ema-overwrite-frequency 4 \
    --gradient-accumulation-steps 2 --loss-scale-factor 16 --quiet -o e.keras
expect 0 fit e.keras --train digits --global-clipnorm 1 --ema-momentum 0.8 --quiet -o e.keras
says 2 "from-logits belongs to the cross-entropies" \
    fit mlp.keras --train digits --loss mean_squared_error --from-logits

# A reader that leaves does not end the training.
rm -f mlp-trained.keras
{
    "$TANDEM" fit mlp.keras --train digits --epochs 3
    echo $? >status
} | head -n 1 >/dev/null
[ "$(cat status)" = 0 ] || fail "fit into a closed pipe: status $(cat status)"
[ -s mlp-trained.keras ] || fail "fit into a closed pipe saved nothing"

# Nor does a checkpoint that cannot be written.
says 2 "--checkpoint: expected a name that ends in .keras" fit mlp.keras --train digits --checkpoint best.npz
rm -f mlp-trained.keras
expect 1 fit mlp.keras --train digits --epochs 2 --checkpoint digits/train-labels-idx1-ubyte/best.keras
grep -q "ModelCheckpoint: .*; the training goes on" out || fail "said: $(cat out)"
grep -q "ModelCheckpoint: .*saved in mlp-trained.keras" err || fail "said: $(cat err)"
[ -s mlp-trained.keras ] || fail "a checkpoint that cannot be written lost the model"

# A log that cannot be written loses no model.
if [ -c /dev/full ]; then
    rm -f mlp-trained.keras
    expect 1 fit mlp.keras --train digits --log /dev/full --quiet
    grep -q "log: /dev/full is incomplete: No space left.*saved in mlp-trained.keras" err || fail "said: $(cat err)"
    [ -s mlp-trained.keras ] || fail "a full disk under the log lost the model"
    expect 1 fit mlp.keras --train digits --log /dev/full --csv-log /dev/full --quiet
    grep -q "CSVLogger: .*; --log: /dev/full is incomplete" err || fail "of two logs: $(cat err)"
fi

# What is printed goes into no file that takes the place of a closed standard output.
"$TANDEM" fit mlp.keras --train digits --log log.jsonl >&- 2>err || fail "with a closed standard output: $(cat err)"
! grep -v "^{" log.jsonl || fail "printed into the log"

# Who was to read the progress may leave before the first line.
rm -f mlp-trained.keras
{ sleep 0.2; "$TANDEM" fit mlp.keras --train digits; echo $? >status; } | true
[ "$(cat status)" = 0 ] || fail "nobody reads: status $(cat status)"
[ -s mlp-trained.keras ] || fail "nobody reads: saved nothing"
finish
