# backup.sh - `tandem fit --backup-dir`: killed, stopped and resumed, it ends as it would have; what is refused; where the
# model goes when its name cannot be written.
. "$ROOT/tests/tool/support.sh"
images digits train 200 1
images digits t10k 40 2
expect 0 new mlp --seed 3

# run NAME WORD...: the training, with every log and callback. In the background `how=exec run ...` is the command itself.
how=
run() {
    name=$1
    shift
    mkdir -p "$name"
    $how "$TANDEM" fit mlp.keras --train digits --validation digits --epochs 12 --batch-size 4 --log "$name/log.jsonl" \
        --csv-log "$name/log.csv" --reduce-lr 2 --early-stopping 8 --restore-best-weights --output "$name/out.keras" \
        --backup-dir "$name/backups" --save-freq 5 --seed 11 "$@" >"$name/said" 2>"$name/err"
}

# predictions NAME: of what was saved.
predictions() {
    expect 0 predict "$1/out.keras" --data digits --output "$1/p.npy" --quiet
}

# timeless FILE: a log without what differs from run to run.
timeless() {
    sed 's/"seconds[a-z_]*": [-+0-9.e]*, //g' "$1"
}

# ---- killed ----

run whole || fail "the run that is not killed: $(cat whole/err)"
[ ! -e whole/backups ] || fail "the backup of a run that has ended was not removed"
predictions whole
kills=0 seed=7 longest=400 # milliseconds
while [ $kills -lt 12 ]; do
    seed=$((seed * 16807 % 2147483647))
    { how=exec; run killed; } &
    process=$!
    sleep "$(printf '0.%03d' $((seed % longest)))"
    kill -s KILL $process 2>/dev/null
    wait $process 2>/dev/null
    status=$?
    if [ $status -eq 137 ]; then
        kills=$((kills + 1))
    elif [ $status -ne 0 ]; then
        fail "a run that was to be killed: status $status: $(cat killed/err)"
        break
    elif [ $kills -eq 0 ]; then # on a machine this fast a kill has to come sooner
        longest=$((longest / 2 + 1))
        rm -r killed
    fi
    [ -s killed/out.keras ] && break # it had ended: once its backup is gone, the same command would begin anew
done
[ -s killed/out.keras ] || run killed || fail "resumed after $kills kills: $(cat killed/err)"
predictions killed
cmp whole/p.npy killed/p.npy || fail "killed $kills times, other predictions"
cmp whole/log.csv killed/log.csv || fail "killed $kills times, another CSV log"
timeless whole/log.jsonl >a
timeless killed/log.jsonl >b
cmp a b || fail "killed $kills times, another log"
grep "learning_rate.*learning_rate" a && fail "a line of the log has two learning rates"

# ---- stopped ----

{ how=exec; run stopped --epochs 2000000000 --early-stopping 1000000 --reduce-lr 1000000; } &
process=$!
three_epochs() {
    [ "$(wc -l 2>/dev/null <stopped/log.jsonl || echo 0)" -ge 3 ]
}
await three_epochs
ends $process TERM 143 "a run with a backup"
grep -q "the same command goes on from the backup in stopped/backups" stopped/err || fail "said: $(cat stopped/err)"
run stopped --batch-size 8 && fail "another batch size was not refused"
grep -q "its batch size was 4, and here it is 8; name another folder" stopped/err || fail "said: $(cat stopped/err)"
cp digits/train-labels-idx1-ubyte labels
printf '\003' | dd of=digits/train-labels-idx1-ubyte bs=1 seek=$((8 + 99)) conv=notrunc 2>/dev/null # no sample that is looked at
run stopped && fail "another label was not refused"
grep -q "its training data was 200 samples .*, and here it is 200 samples" stopped/err || fail "said: $(cat stopped/err)"
mv digits other
mkdir digits
cp other/* digits # copies have other times
cp labels digits/train-labels-idx1-ubyte
epochs=$(($(wc -l <stopped/log.jsonl) + 1))
run stopped --epochs $epochs --early-stopping 1000000 --reduce-lr 1000000 --keep-backup || fail "$(cat stopped/err)"
grep -q "Resuming from stopped/backups: epoch " stopped/said || fail "said: $(cat stopped/said)"
[ "$(wc -l <stopped/log.jsonl)" -eq $epochs ] || fail "$(wc -l <stopped/log.jsonl) lines of $epochs epochs"
[ -s stopped/backups/backup-0.npz ] || fail "--keep-backup: the backup is gone"
head -n 2 stopped/log.csv >short
cp short stopped/log.csv
run stopped --epochs $((epochs + 1)) --early-stopping 1000000 --reduce-lr 1000000 --keep-backup --quiet || fail "$(cat stopped/err)"
grep -q "warning: stopped/log.csv is not as it was when the backup was made: it is kept as stopped/log.csv.1, and the new" \
    stopped/err || fail "said: $(cat stopped/err)"
cmp short stopped/log.csv.1 || fail "what was in the log is lost"
[ "$(head -c 6 stopped/log.csv)" = "epoch," ] || fail "the new log: $(cat stopped/log.csv)"
tail -n 1 stopped/log.csv | grep -q "^$epochs," || fail "the new log: $(cat stopped/log.csv)" # epochs are counted from 0
mkdir notes
echo "mine" >notes/backup-1.npz
says 2 "\"notes/backup-1.npz\" is no backup, and a backup would take its place; move it away" \
    fit mlp.keras --train digits --backup-dir notes --quiet
[ "$(cat notes/backup-1.npz)" = mine ] || fail "a file that is no backup was changed"

# Nor are backups that cannot be read none.
if command -v setpriv >/dev/null && [ "$(id -u)" -eq 0 ]; then
    chmod 755 .
    mkdir -m 777 locked
    unprivileged() {
        setpriv --reuid=65534 --regid=65534 --clear-groups "$TANDEM" fit mlp.keras --train digits --quiet \
            --output locked/o.keras --backup-dir locked/b --keep-backup 2>err
    }
    if unprivileged; then
        chmod 000 locked/b/backup-0.npz
        unprivileged && fail "a backup that cannot be read counts as none"
        grep -q "locked/b/backup-0.npz\" cannot be read: Permission denied" err || fail "said: $(cat err)"
    else
        echo "skipped: nobody cannot run the command here"
    fi
fi

# ---- the output's folder goes away ----

mkdir lost here
TMPDIR=$folder/here "$TANDEM" fit mlp.keras --train digits --epochs 2000000000 --log lost.jsonl \
    --output lost/out.keras >out 2>err &
process=$!
await test -s lost.jsonl
rm -r lost
ends $process TERM 1 "a save that failed"
saved=$(sed -n 's/.*; it is saved in \(.*\) instead$/\1/p' err)
case $saved in
"$folder"/here/tandem-*/out.keras) expect 0 evaluate "$saved" --data digits --quiet ;;
*) fail "not in the temporary directory: '$saved'" ;;
esac

# ---- the logs go away ----

mkdir logs
"$TANDEM" fit mlp.keras --train digits --epochs 2000000000 --log logs/a.jsonl --csv-log logs/a.csv --tensorboard logs/board \
    --output gone.keras >out 2>err &
process=$!
await test -s logs/a.jsonl
rm -r logs
await grep -q "TensorBoard: .*it was removed; the training goes on without it" err
await grep -q "CSVLogger: logs/a.csv is incomplete from epoch .* on: it was removed" out
ends $process TERM 1 "logs that were removed"
grep -q -- "--log: logs/a.jsonl is incomplete: .*; the model itself is saved in gone.keras" err || fail "said: $(cat err)"
expect 0 evaluate gone.keras --data digits --quiet

says 2 "--keep-backup belongs to --backup-dir" fit mlp.keras --train digits --keep-backup
says 2 "--save-freq belongs to --checkpoint and --backup-dir" fit mlp.keras --train digits --save-freq 5
finish
