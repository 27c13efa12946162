# rates.sh - learning rates that change: schedules and rates of epochs, from the command; said, logged, and saved.
. "$ROOT/tests/tool/support.sh"
images digits train 96 1
expect 0 new mlp --seed 5

# fit WORD...: 4 epochs of 6 steps, logged in log.jsonl and log.csv.
fit() {
    rm -f log.jsonl log.csv
    expect 0 fit mlp.keras --train digits --epochs 4 --batch-size 16 --seed 3 --output r.keras --log log.jsonl --csv-log log.csv "$@"
}

# follows FORMULA: the rate at the end of epoch e, behind n = 6 e steps, is the formula's in both logs.
follows() {
    sed 's/.*"learning_rate": \([-0-9.e]*\).*/\1/' log.jsonl >rates
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "learning_rate") at = i }
        NR > 1 { print $at }' log.csv | paste -d' ' - rates | awk '$1 - $2 != 0 { exit 1 }' || fail "the CSV log has other rates: $(cat log.csv rates)"
    awk "BEGIN { pi = 3.14159265358979 }
        { e = NR; n = 6 * e; r = $1; if (r - \$1 > 1e-6 * r + 1e-12 || \$1 - r > 1e-6 * r + 1e-12) exit 1 }
        END { if (NR != 4) exit 1 }" rates || fail "the rates are not $1: $(cat rates)"
}

fit --schedule exponential_decay,initial_learning_rate=0.01,decay_steps=10,decay_rate=0.5
follows "0.01 * 0.5 ^ (n / 10)"
grep -q "^Learning rate: exponential_decay, beginning at 0.00999999978.$" out || fail "fit printed: $(cat out)"
[ "$(grep -c "^Epoch [1-4]/4: .* - learning_rate: 0.00[0-9]* - loss: " out)" -eq 4 ] || fail "fit printed: $(cat out)"
fit --learning-rate 0.02 --schedule exponential_decay,decay_steps=10,decay_rate=0.5,staircase
follows "0.02 * 0.5 ^ int(n / 10)"
fit --schedule inverse_time_decay,decay_steps=4,decay_rate=2
follows "0.001 / (1 + 2 * n / 4)"
fit --schedule cosine_decay,decay_steps=18,alpha=0.25
follows "0.001 * (0.25 + 0.75 * 0.5 * (1 + cos(pi * (n < 18 ? n : 18) / 18)))"
fit --schedule cosine_decay,initial_learning_rate=0,warmup_target=0.004,warmup_steps=8,decay_steps=20 --optimizer sgd
follows "n < 8 ? 0.004 * n / 8 : 0.004 * 0.5 * (1 + cos(pi * (n - 8) / 20))"
fit --schedule cosine_decay_restarts,first_decay_steps=9,t_mul=1,m_mul=0.5
follows "0.001 * 0.5 * 0.5 ^ int(n / 9) * (1 + cos(pi * (n / 9 - int(n / 9))))"
fit --schedule polynomial_decay,decay_steps=20,end_learning_rate=0.0002,power=2
follows "0.0008 * (1 - (n < 20 ? n : 20) / 20) ^ 2 + 0.0002"
fit --schedule piecewise_constant_decay,boundaries=6:13,values=0.1:0.01:0.001 --optimizer sgd --momentum 0.9
follows "n <= 6 ? 0.1 : n <= 13 ? 0.01 : 0.001"
fit --schedule cosine_decay,decay_steps=24 --base-batch-size 8
follows "2 * 0.001 * 0.5 * (1 + cos(pi * n / 24))"
fit --learning-rate-scheduler 1=0.01,3=0.0001
follows "e < 2 ? 0.001 : e < 4 ? 0.01 : 0.0001"
[ "$(grep -c "LearningRateScheduler setting learning rate to" out)" -eq 4 ] || fail "fit printed: $(cat out)"

# What was trained goes on by its schedule, and by a number when one is given instead.
fit --schedule exponential_decay,decay_steps=6,decay_rate=0.5
expect 0 fit r.keras --train digits --epochs 1 --batch-size 16 --output s.keras --log on.jsonl --csv-log on.csv
grep -q " - learning_rate: " out && grep -q "learning_rate" on.csv || fail "the file's schedule is not logged: $(cat out on.csv)"
holds "$(number learning_rate on.jsonl) > 0.001 * 0.5 ^ 5 * 0.99999 && $(number learning_rate on.jsonl) < 0.001 * 0.5 ^ 5 * 1.00001"
expect 0 fit r.keras --train digits --epochs 1 --batch-size 16 --quiet --output s.keras --log number.jsonl --learning-rate 0.25
[ "$(number learning_rate number.jsonl)" = 0.25 ] || fail "the schedule of the file stayed: $(cat number.jsonl)"
says 2 "schedule: expected a rate to begin with; give --learning-rate F too" \
    fit r.keras --train digits --schedule cosine_decay,decay_steps=9
says 2 "schedule: expected a rate to begin with" \
    fit mlp.keras --train digits --optimizer sgd --schedule cosine_decay,decay_steps=9
says 2 "schedule says which rate it begins with, and so does --learning-rate" \
    fit mlp.keras --train digits --learning-rate 1 --schedule cosine_decay,initial_learning_rate=1,decay_steps=9
says 2 "CosineDecay: decay_steps is 0 and must be above 0" fit mlp.keras --train digits --schedule cosine_decay,decay_steps=0
says 2 "learning-rate-scheduler: the rate of r.keras is the schedule exponential_decay; give --learning-rate F too" \
    fit r.keras --train digits --learning-rate-scheduler 0=0.1
says 2 "reduce-lr: the rate of r.keras is the schedule exponential_decay; .*, or leave --reduce-lr out" \
    fit r.keras --train digits --reduce-lr 1 --csv-log never.csv
[ ! -e never.csv ] || fail "the log was begun"

# What is said is what is used: with batches of twice the size, and while it warms up.
fit --learning-rate-scheduler 0=0.01,1=0.002 --reduce-lr 3 --monitor loss --base-batch-size 8
follows "e < 2 ? 0.02 : 0.004"
grep -q "^Epoch 1: LearningRateScheduler setting learning rate to 0.02 (0.01 times 2)" out || fail "fit printed: $(cat out)"
grep -q "^Learning rate: 0.001 times 2 for batches of 16 is 0.002\.$" out || fail "fit printed: $(cat out)"
fit --learning-rate-scheduler 0=0.01 --warmup-epochs 2
grep -q "^Epoch 2: LearningRateScheduler setting learning rate to 0.005 (0.01 times 0.5)" out || fail "fit printed: $(cat out)"
grep -q "is 0.001, reached after 2 epochs of warm-up\.$" out || fail "fit printed: $(cat out)"
fit --reduce-lr 1 --monitor loss --base-batch-size 8 --learning-rate 1e-12
grep -q "^Epoch 2: ReduceLROnPlateau reducing learning rate to 1.99[0-9]*e-13 (9.99[0-9]*e-14 times 2)" out || fail "fit printed: $(cat out)"

# Killed and resumed, it goes on where it was.
fit --schedule cosine_decay,decay_steps=40
follows "0.001 * 0.5 * (1 + cos(pi * n / 40))"
expect 0 fit mlp.keras --train digits --epochs 2 --batch-size 16 --seed 3 --output half.keras --backup-dir b --keep-backup --schedule cosine_decay,decay_steps=40
rm -f log.jsonl log.csv
fit --schedule cosine_decay,decay_steps=40 --backup-dir b
grep -q "^Learning rate: cosine_decay, going on at 0.00079389" out || fail "resumed, fit printed: $(cat out)"
finish
