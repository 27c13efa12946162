# weights.sh - --sample-weight, --class-weight and --weighted-metrics; environment variables that nothing reads.
. "$ROOT/tests/tool/support.sh"
awk -v OFS=, 'BEGIN { print "a,b,c,kind,trust"
    for (i = 0; i < 48; i++) print i % 2, (i * 7 % 5) / 5, 0.5, i % 3 ? "dog" : "cat", i % 4 }' >kinds.csv
cut -d, -f1-4 kinds.csv >plain.csv
cp "$ROOT/tests/formats/golden/plain.keras" .
columns="x=a,b,c,y=kind:codes"
set -- --features "$columns" --optimizer adam --loss sparse_categorical_crossentropy --from-logits --seed 3 --shards 1 --quiet

# A sample of weight 0 does not count, and a batch is divided by all its samples: three of four count here, by 1, 2 and 3.
expect 0 fit plain.keras --train kinds.csv --sample-weight trust --metrics accuracy --weighted-metrics accuracy \
    --output weighted.keras --csv-log log.csv "$@"
head -1 log.csv | grep -q "^epoch,accuracy,loss,weighted_accuracy" || fail "logged: $(head -1 log.csv)"
expect 0 evaluate weighted.keras --data kinds.csv --sample-weight trust --quiet
mv out weighted
grep -q "^weighted_accuracy: " weighted || fail "the model's file has lost its weighted metrics: $(cat weighted)"
expect 0 evaluate weighted.keras --data kinds.csv --quiet
grep -q "^loss: $(number loss weighted)$" out && fail "weights change nothing"
[ "$(number accuracy out)" = "$(number accuracy weighted)" ] || fail "a metric is weighted that should not be"

# Without features the weights are no input, and the class is the last of the other columns.
awk -F, -v OFS=, '{ print $1, $2, $3, NR == 1 ? "label" : ($4 == "dog"), $5 }' kinds.csv >numbers.csv
expect 0 fit plain.keras --train numbers.csv --sample-weight trust --output last.keras --optimizer adam --quiet \
    --loss sparse_categorical_crossentropy --from-logits

# Classes by number and by name.
expect 0 fit plain.keras --train plain.csv --class-weight 0:3,1:0.5 --output numbered.keras "$@"
expect 0 fit plain.keras --train plain.csv --class-weight dog:0.5,cat:3 --output named.keras "$@"
expect 0 fit plain.keras --train plain.csv --class-weight balanced --output balanced.keras "$@"
for model in numbered named balanced; do
    expect 0 evaluate $model.keras --data plain.csv --quiet
    mv out $model
done
cmp -s numbered named || fail "names are other classes than numbers"
cmp -s numbered balanced && fail "balanced weights are those of another list"
says 2 "there is no class 'cow'; the classes are cat, dog" fit plain.keras --train plain.csv --class-weight cow:2 "$@"
says 2 "expected CLASS:WEIGHT and commas, as 0:1,1:5, or balanced, got '3'" fit plain.keras --train plain.csv --class-weight 3 "$@"
says 2 "expected the weights of the training" evaluate named.keras --data plain.csv --class-weight balanced --quiet
says 2 "class_weight: class 9; output .* has classes 0 to" fit plain.keras --train plain.csv --class-weight 9:1 "$@"

# What is not there, and what has no weights.
says 1 "has no column \"faith\"; it has a, b, c, kind, trust" fit plain.keras --train kinds.csv --sample-weight faith "$@"
images mnist train 40 1
says 1 "sample_weight (--sample-weight) belongs to a file.npz, a pair x.npy,y.npy" evaluate weighted.keras --data mnist \
    --sample-weight w --quiet
expect 0 fit plain.keras --train kinds.csv --validation plain.csv --sample-weight trust --output half.keras "$@"
grep -q "^tandem fit: --validation: .*no column \"trust\".*; its samples count alike$" err || fail "validation: $(cat err)"

# A run is gone on with by the same weights alone.
expect 0 fit plain.keras --train plain.csv --class-weight 0:3 --backup-dir kept --keep-backup --output kept.keras "$@"
says 2 "its class weights was 0:3, and here it is 0:4" fit plain.keras --train plain.csv --class-weight 0:4 --backup-dir kept \
    --epochs 2 --output kept.keras "$@"
says 2 "another run: its training data was" fit plain.keras --train kinds.csv --sample-weight trust --class-weight 0:3 \
    --backup-dir kept --epochs 2 --output kept.keras "$@"

# A variable that nothing reads is named.
TANDEM_CACH=off expect 0 summary plain.keras
grep -qx "tandem summary: the environment variable TANDEM_CACH is not used: did you mean TANDEM_CACHE" err || fail "said: $(cat err)"
expect 0 summary plain.keras
[ ! -s err ] || fail "said of known variables: $(cat err)"
finish
