# stages.sh - what stands between the data and the model: several data, shares of them, samples repeated.
. "$ROOT/tests/tool/support.sh"
images a train 70 1
images b train 50 2
images digits train 120 3
images digits t10k 50 4
images wide train 40 5
expect 0 new mlp --seed 5

# fit OUTPUT WORD...: trains on what the words say, and predicts.
fit() {
    output=$1
    shift
    expect 0 fit mlp.keras --epochs 2 --batch-size 16 --seed 3 --quiet --output r.keras --log log.jsonl "$@"
    expect 0 predict r.keras --data digits --quiet --output "$output"
}

# samples COUNT: what the last line of the log says; takes the log away.
samples() {
    [ "$(number samples log.jsonl)" = "$1" ] || fail "expected $1 samples an epoch: $(cat log.jsonl)"
    rm log.jsonl
}

# ---- several ----

expect 0 fit mlp.keras --train a --train b --epochs 1 --output r.keras
grep -q "on 120 samples of a, b; the result goes to r.keras" out || fail "fit printed: $(cat out)"
fit behind.npy --train a --train b --no-shuffle
samples 120
fit again.npy --train a --train b --no-shuffle --interleave 70
fit turns.npy --train a --train b --no-shuffle --interleave 1
fit swapped.npy --train b --train a --no-shuffle
cmp -s behind.npy again.npy || fail "70 of each in turn are not the 70 one behind the other"
cmp -s behind.npy turns.npy && fail "--interleave 1 changed nothing"
cmp -s behind.npy swapped.npy && fail "the order of --train changed nothing"
rm log.jsonl
expect 1 fit mlp.keras --train a --train nothere
grep -q "train: nothere: no such file" err || fail "a second --train that is not there: $(cat err)"
printf 'x,y\n1,2\n' >other.csv
says 1 "train: .*other.csv are not of the shapes and types of those of a" fit mlp.keras --train a --train other.csv

# ---- shares ----

# The shares of an evaluation add up to the whole.
expect 0 evaluate mlp.keras --data digits --quiet
whole=$(number loss out)
sum=0
for i in 0 1 2; do
    expect 0 evaluate mlp.keras --data digits --quiet --shard $i/3
    count=$(((50 - i + 2) / 3))
    sum=$(awk "BEGIN { printf \"%.9g\", $sum + $count * $(number loss out) }")
    expect 0 predict mlp.keras --data digits --shard $i/3 --quiet --output share$i.npy
    [ "$(wc -c <share$i.npy)" -eq $((128 + count * 40)) ] || fail "share$i.npy has $(wc -c <share$i.npy) bytes"
done
holds "$sum / 50 < 1.00001 * $whole && $sum / 50 > 0.99999 * $whole"
fit shard.npy --train digits --shard 1/4
samples 30
says 1 "shard: td_shard: the 70 samples of a leave none for shard 70 of 80" fit mlp.keras --train a --shard 70/80

# ---- repeated, and all at once ----

fit twice.npy --train a --repeat 2
samples 140
fit rest.npy --train a --repeat 2 --batch-size 32 --drop-remainder
samples 128
for cache in memory kept.bin kept.bin; do
    fit all.npy --train a --train b --interleave 2 --shard 0/2 --cache $cache --repeat 3 --augment crop=2 \
        --validation digits --shuffle-buffer 20
    samples 180
    [ ! -e all-before.npy ] || cmp -s all.npy all-before.npy || fail "--cache $cache changed what the stages give"
    mv all.npy all-before.npy
done
[ -s kept.bin ] && [ -s kept.bin.val ] || fail "no cache was written: $(ls)"
says 1 "cache: .*kept.bin: the cache was made of other data" \
    fit mlp.keras --train a --train b --interleave 2 --shard 1/2 --cache kept.bin --quiet
expect 0 find-lr mlp.keras --train a --train b --shard 0/2 --cache memory --batch-size 8 --steps 40 --quiet
finish
