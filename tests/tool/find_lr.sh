# find_lr.sh - the range test: rates that grow by one factor, a suggestion where the loss falls, a model file that stays.
. "$ROOT/tests/tool/support.sh"

# Every third label is wrong, so that no rate makes the loss nothing.
labels() {
    printf '\0\0\010\001\0\0\001\100'
    awk 'BEGIN { for (i = 0; i < 320; i++) printf "%c", i % 3 ? i % 10 : int(i * i / 7) % 10 }'
}
for part in train t10k; do
    images digits $part 320 1
    labels >digits/$part-labels-idx1-ubyte
done
expect 0 new mlp --seed 3 --output mlp.keras
cp mlp.keras before.keras

expect 0 find-lr mlp.keras --train digits --seed 5 --csv-log steps.csv
grep -q "^loss: smoothed, steepest (dotted)$" out || fail "no curve: $(cat out)"
grep -q "^The loss falls fastest at a rate of " out || fail "no rate: $(cat out)"
grep -q "^Try --learning-rate " out || fail "no suggestion: $(cat out)"
grep -q "^The loss diverged after " out || fail "a rate of 10 did not diverge: $(cat out)"
cmp -s mlp.keras before.keras || fail "the model file was changed"
rate=$(sed -n 's/.*falls fastest at a rate of \([0-9.e-]*\);.*/\1/p' out)
least=$(sed -n 's/.*least at \([0-9.e-]*\),.*/\1/p' out)
holds "$rate > 1e-5 && $rate <= $least && $least < 1"

# Every step is there, by rate; the smoothed loss is the mean that its definition says; at the end it is 4 times the least.
[ "$(head -n 1 steps.csv)" = "step,learning_rate,loss,smoothed_loss" ] || fail "the log begins: $(head -n 1 steps.csv)"
awk -F, 'function off(a, b) { return (a > b ? a - b : b - a) > 1e-5 * b }
    NR > 1 {
        if ($1 != NR - 2 || off($2, 1e-7 * 10 ^ (8 * $1 / 199)))
            exit 1
        average = 0.9 * average + 0.1 * $3
        if (off($4, average / (1 - 0.9 ^ (NR - 1))) || ended)
            exit 1
        least = NR > 21 && (least == "" || $4 < least) ? $4 : least
        ended = least != "" && $4 > 4 * least
    }
    END { exit !ended }' steps.csv || fail "the steps are not those of a range test: $(cat steps.csv)"

# 10 batches an epoch: a step's loss is its own, in the epochs behind the first, too. A rate of next to nothing leaves it.
says 1 "does not fall by more than batches differ" find-lr mlp.keras --train digits --seed 5 --start-lr 1e-30 --end-lr 1e-29 --steps 40 --quiet --csv-log still.csv
expect 0 evaluate mlp.keras --data digits --quiet
awk -F, -v mean="$(number loss out)" 'NR > 1 { sum += $3; far += $3 > 1.2 * mean || $3 < 0.8 * mean }
    END { m = sum / (NR - 1); exit !(NR == 41 && !far && m < 1.00001 * mean && m > 0.99999 * mean) }' still.csv ||
    fail "with weights that stay, the losses' mean is not what evaluate says: $(cat out still.csv)"

expect 0 find-lr mlp.keras --train digits --seed 5 --quiet
[ "$(cat out)" = "$rate" ] || fail "--quiet printed '$(cat out)', expected $rate"
expect 0 fit mlp.keras --train digits --epochs 3 --quiet --learning-rate "$rate" --output good.keras --log good.jsonl
holds "$(number loss good.jsonl) < 2"
expect 0 find-lr mlp.keras --train digits --quiet --optimizer sgd --momentum 0.9 --batch-size 64 --devices cpu:0 --steps 60

if "$TANDEM" plot --output p.png none 2>&1 | grep -q "built without cairo"; then
    says 2 "built without cairo" find-lr mlp.keras --train digits --output p.png
else
    expect 0 find-lr mlp.keras --train digits --output p.svg --quiet
    grep -q "learning rate" p.svg || grep -q "<svg" p.svg || fail "p.svg is no SVG"
fi

says 2 "train: expected the data" find-lr mlp.keras
says 2 "end-lr: expected a rate above" find-lr mlp.keras --train digits --start-lr 1 --end-lr 0.1
says 2 "start-lr: expected a number above 0, got '0'" find-lr mlp.keras --train digits --start-lr 0
says 2 "steps: expected a whole number from 20" find-lr mlp.keras --train digits --steps 3
says 2 "expected a name that ends in .png or .svg" find-lr mlp.keras --train digits --output p.pdf
says 1 "cannot write no/p.csv" find-lr mlp.keras --train digits --csv-log no/p.csv
says 1 "320 samples do not fill one batch of 512" find-lr mlp.keras --train digits --batch-size 512
if [ -c /dev/full ]; then
    says 1 "/dev/full is incomplete: No space left" find-lr mlp.keras --train digits --csv-log /dev/full
fi
finish
