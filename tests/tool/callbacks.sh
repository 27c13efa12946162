# callbacks.sh - Keras's arguments of callbacks, given to `tandem fit` as lists.
. "$ROOT/tests/tool/support.sh"
images digits train 64 1
expect 0 new mlp --seed 3
fit() {
    expect 0 fit mlp.keras --train digits --batch-size 32 --seed 5 --quiet --output o.keras "$@"
}

# epochs FILE: how many a CSV log holds.
epochs() {
    echo $(($(wc -l <"$1") - 1))
}

# Nothing improves by a hundred: the first epoch is the best, and patience is what counts.
fit --epochs 9 --early-stopping 2,min_delta=100 --monitor loss --csv-log a.csv
[ "$(epochs a.csv)" -eq 3 ] || fail "patience 2: $(epochs a.csv) epochs"
fit --epochs 9 --early-stopping min_delta=100,patience=1,start_from_epoch=3,restore_best_weights,monitor=loss --csv-log a.csv
[ "$(epochs a.csv)" -eq 5 ] || fail "from epoch 3 on: $(epochs a.csv) epochs"
fit --epochs 9 --early-stopping 1,mode=max,monitor=loss --csv-log a.csv # a loss that falls
[ "$(epochs a.csv)" -lt 9 ] || fail "mode=max did not stop"
fit --epochs 4 --early-stopping 1,baseline=1000000,monitor=loss --csv-log a.csv # beaten by each
[ "$(epochs a.csv)" -eq 4 ] || fail "a baseline that is beaten: $(epochs a.csv) epochs"

# 0.001, halved twice, a step of rest between.
fit --epochs 6 --reduce-lr 1,factor=0.5,min_delta=100,cooldown=1,monitor=loss --csv-log a.csv "--csv-log-options=separator=;"
[ "$(head -1 a.csv | tr -d '\r')" = "epoch;accuracy;learning_rate;loss;val_accuracy;val_learning_rate;val_loss" ] || fail "the header is $(head -1 a.csv)"
rates=$(sed 1d a.csv | cut -d';' -f3 | cut -c1-8 | tr '\n' ' ')
case $rates in
"0.001"*" 0.00"*" 0.0005"*) ;;
*) fail "the rates were $rates" ;;
esac
for run in 1 2; do
    fit --epochs 4 --reduce-lr 0,factor=0.5,min_delta=100,min_lr=0.0004,monitor=loss --csv-log b.csv --csv-log-options append
done
tail -1 b.csv | grep -q ",0.0003999" || fail "not down to min_lr: $(tail -1 b.csv)"
[ "$(epochs b.csv)" -eq 8 ] || fail "append: $(cat b.csv)"

# What is appended to a file begins on a line of its own, also where the last one was cut short.
printf 'epoch,loss\n0,1.5' >t.csv
printf '{"epoch": 0, "loss": 1' >t.jsonl
fit --epochs 3 --initial-epoch 1 --csv-log t.csv --csv-log-options append --log t.jsonl
[ "$(cut -d, -f1 t.csv | tr '\n' ' ')" = "epoch 0 1 2 " ] || fail "behind a line that does not end: $(cat t.csv)"
[ "$(cut -c1-11 t.jsonl | tr '\n' ' ')" = '{"epoch": 0 {"epoch": 1 {"epoch": 2 ' ] || fail "behind a line that was cut: $(cat t.jsonl)"

# A file that is appended to keeps its columns.
fit --epochs 1 --csv-log b.csv --csv-log-options append --metrics accuracy,sparse_top_k_categorical_accuracy
grep -q "b.csv has no column for sparse_top_k_categorical_accuracy: left out" err || fail "not said: $(cat err)"
[ "$(tail -1 b.csv | tr -dc , | wc -c)" -eq 6 ] || fail "columns: $(cat b.csv)"
tail -1 b.csv | grep -q ",NA,.*,NA,NA,NA" || fail "no rate was logged, but: $(tail -1 b.csv)"
fit --epochs 1 --csv-log r.csv --backup-dir bk --keep-backup
fit --epochs 2 --csv-log r.csv --backup-dir bk --reduce-lr 1,monitor=loss
grep -q "r.csv has no column for learning_rate: left out" err || fail "resumed, not said: $(cat err)"
says 2 "a.csv begins with \"epoch;accuracy.*name another file" fit mlp.keras --train digits --quiet --csv-log a.csv \
    --csv-log-options append

fit --epochs 3 --checkpoint 'c{epoch}.keras' --checkpoint-options save_best_only,monitor=accuracy,mode=min,initial_value_threshold=0
[ ! -e c1.keras ] || fail "a checkpoint that does not fall below 0 was saved"
fit --epochs 2 --checkpoint 's{epoch}-{batch}.keras' --checkpoint-options save_freq=2
[ -s s1-2.keras ] && [ -s s2-2.keras ] || fail "not saved every two steps: $(ls)"
fit --epochs 1 --checkpoint 'w{epoch:>2}{accuracy:.0%}.weights.h5' --checkpoint-options save_weights_only
ls | grep -q '^w 1[0-9]*%.weights.h5$' || fail "no weights: $(ls)"
mv w\ 1*.weights.h5 w.weights.h5
fit --weights w.weights.h5 --epochs 1 --csv-log c.csv
holds "$(sed -n 2p c.csv | cut -d, -f3) < $(sed -n 2p a.csv | cut -d\; -f4)" # the loss goes on from there
images digits t10k 30 2
fit --weights w.weights.h5 --epochs 1 --learning-rate 1e-30
expect 0 evaluate mlp.keras --weights w.weights.h5 --data digits --quiet
mv out with
expect 0 evaluate o.keras --data digits --quiet
cmp with out || fail "other weights: $(cat with out)"
# Names that are nothing but their end, which Keras takes too.
fit --epochs 1 --checkpoint .weights.h5 --checkpoint-options save_weights_only
expect 0 evaluate mlp.keras --weights .weights.h5 --data digits --quiet
fit --epochs 1 --checkpoint .keras
expect 0 evaluate .keras --data digits --quiet
rm .keras
expect 0 fit mlp.keras --train digits --epochs 1 --quiet --output .keras
expect 0 evaluate .keras --data digits --quiet
rm .keras .weights.h5
expect 0 predict mlp.keras --weights o.keras --data digits --quiet --output p.npy
says 1 "cannot load the weights in .p.npy. into the model .*: expected a name that ends in .weights.h5" \
    predict mlp.keras --weights p.npy --data digits --output q.npy
expect 0 new lenet5 --output lenet5.keras
says 1 "into the model \"lenet5\": layer \"conv2d\": the file holds no weights for it: there is no \"layers/conv2d/vars\"" \
    fit lenet5.keras --weights w.weights.h5 --train digits
fit --epochs 1 --tensorboard board --tensorboard-options write_graph=no,write_hparams=no,write_steps_per_second=yes
fit --epochs 2 --backup-dir b --backup-options double_checkpoint=no,save_freq=1 --keep-backup
[ "$(ls b/*.npz | wc -l)" -eq 1 ] || fail "double_checkpoint=no: $(ls b)"

# What is monitored and will never be is said, with --quiet too.
for words in "--early-stopping 3" "--reduce-lr 3" "--checkpoint c.keras --save-best-only"; do
    fit --epochs 1 $words
    grep -q "warning: .*: there will be no val_loss to monitor; there are loss, accuracy" err || fail "not said: $(cat err)"
done
fit --epochs 1 --early-stopping 3 --validation digits
[ ! -s err ] || fail "said: $(cat err)"

refuse() {
    says 2 "$1" fit mlp.keras --train digits --quiet "$2" "$3"
}
refuse "early-stopping: expected patience, min_delta, .*, got 'delta'; try --early-stopping " --early-stopping 5,delta=1
refuse "early-stopping: patience: expected a whole number, got '-1'" --early-stopping patience=-1
refuse "early-stopping: mode: expected auto, min or max, got 'up'" --early-stopping 5,mode=up
refuse "reduce-lr: factor: expected a number, got nothing" --reduce-lr 5,factor
refuse "reduce-lr: cooldown: expected a whole number, got '1.5'" --reduce-lr 5,cooldown=1.5
refuse "early-stopping: expected patience.*, got ''" --early-stopping ""
refuse "checkpoint-options belongs to --checkpoint" --checkpoint-options save_best_only
refuse "csv-log-options belongs to --csv-log" --csv-log-options append
refuse "tensorboard-options belongs to --tensorboard" --tensorboard-options write_graph=no
refuse "there is no {nope}; there are {epoch}, {loss}, {accuracy}, {learning_rate}" --checkpoint "x{nope}.keras"
refuse "there is no {batch}" --checkpoint "x{batch}.keras"
refuse "a { opens what is no {name}" --checkpoint "x{epoch:d.keras"
refuse "{epoch:.2d}: a whole number has no digits" --checkpoint "x{epoch:.2d}.keras"
refuse "expected a name that ends in .keras, got 'x.weights.h5'; for weights alone give --checkpoint-options save_weights" \
    --checkpoint x.weights.h5
says 2 "expected a name that ends in .weights.h5 with save_weights_only, got 'x.keras'" fit mlp.keras --train digits \
    --checkpoint x.keras --checkpoint-options save_weights_only
refuse "backup-options belongs to --backup-dir" --backup-options double_checkpoint=no
says 2 "tensorboard-options: write_graph: expected yes or no, got 'maybe'" fit mlp.keras --train digits --tensorboard t \
    --tensorboard-options write_graph=maybe
says 2 "factor: a number above 0 and below 1" fit mlp.keras --train digits --quiet --reduce-lr 1,factor=2
finish
