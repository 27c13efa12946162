# signals.sh - Ctrl-C, SIGTERM and SIGHUP end a training after its step; the model is saved, the status is 128 + the signal's.
. "$ROOT/tests/tool/support.sh"
images digits train 64 1
expect 0 new mlp

# stop SIGNAL STATUS
stop() {
    rm -f log.jsonl saved.keras
    # A background job of sh ignores SIGINT, and the command leaves ignored signals ignored.
    env --default-signal=INT,HUP "$TANDEM" fit mlp.keras --train digits --epochs 2000000000 --log log.jsonl \
        --output saved.keras >out 2>err &
    process=$!
    await test -s log.jsonl
    ends $process "$1" "$2" "$1"
    [ -s saved.keras ] || fail "$1: nothing was saved"
    grep -q "stopped by .*; saved.keras holds the model" err || fail "$1: said: $(cat err)"
    expect 0 evaluate saved.keras --data digits --quiet
}

images digits t10k 20 2
stop INT 130
stop TERM 143
stop HUP 129

# A prediction that is stopped leaves nothing behind: 30,000 rows one at a time take long enough.
awk 'BEGIN {
    printf "%cNUMPY%c%cv%c", 147, 1, 0, 0
    printf "%-117s\n", "{'"'descr': '|u1', 'fortran_order': False, 'shape': (30000, 784,), "'}"
    for (i = 0; i < 30000 * 784; i++)
        printf "a"
}' >many.npy
begun() {
    [ -n "$(find . -name '.tandem-*' -o -name p.npy)" ]
}
tries=0 status=0
while [ $status -eq 0 ] && [ $tries -lt 20 ]; do # it may have ended before this script was woken
    rm -f p.npy
    env --default-signal=INT "$TANDEM" predict mlp.keras --data many.npy --batch-size 1 --output p.npy >out 2>err &
    process=$!
    await begun
    kill -s INT $process
    wait $process
    status=$?
    tries=$((tries + 1))
done
[ $status -eq 130 ] || fail "predict: status $status, expected 130: $(cat out err)"
[ -z "$(find . -name '.tandem-*' -o -name p.npy)" ] || fail "predict left behind: $(ls -a)"
finish
