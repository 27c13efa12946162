# launch.sh - processes of a command are started, watched and ended together.
. "$ROOT/tests/tool/support.sh"

says 2 "processes: expected how many, got none; try tandem launch -n 2 -- doctor ..." launch doctor
says 2 "processes: expected a whole number from 1 to 256, got '0'; try --processes 2" launch -n 0 doctor
says 2 "processes: expected a whole number from 1 to 256, got '257'" launch --processes 257 doctor
says 2 "processes: expected N after it, got nothing" launch -n
says 2 "expected COMMAND... after the options, got nothing" launch -n 2 --
says 2 "unknown command 'docter'; did you mean tandem doctor?" launch -n 2 docter --cluster
says 2 "unknown option --epochs" launch --epochs 2 fit

# The chief's output is seen, once.
for words in "-n 3 --" "-n3" "--processes=1 --"; do
    expect 0 launch $words --version
    [ "$(grep -c "^tandem [0-9.]*$" out)" -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] && [ ! -s err ] || fail "launch $words --version: $(cat out err)"
done
expect 0 launch -n 3 -- doctor --cluster
[ "$(grep -c "^  worker [0-2] .*127.0.0.1:[0-9]*" out)" -eq 3 ] || fail "launch doctor: not three tasks: $(cat out)"
grep -q "worker 0 .*, the chief, this process$" out || fail "launch doctor: who am I? $(cat out)"
[ "$(wc -l <out)" -eq 5 ] && [ ! -s err ] || fail "launch doctor: more was printed: $(cat out err)"

# The words behind the command are its own. All fail alike, and say it, the others behind their names.
expect 2 launch -n 3 fit m.keras --epochs 0
[ ! -s out ] || fail "launch fit: printed $(cat out)"
for name in "" "worker 1: " "worker 2: "; do
    grep -q "^${name}tandem fit: --epochs: expected" err || fail "launch fit: '$name' does not say why: $(cat err)"
done
grep -q "^tandem launch: worker [0-2] ended with status 2; the others are ended too$" err || [ "$(wc -l <err)" -eq 3 ] ||
    fail "launch fit: $(cat err)"

# ---- processes that take long ----

images digits train 64 1
expect 0 new mlp

# children PROCESS: their numbers, the chief's first.
children() {
    grep -l "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status 2>/dev/null | sed 's#[^0-9]##g' | sort -n
}

is_gone() {
    [ ! -e "/proc/$1" ] || grep -q "^State:.*zombie" "/proc/$1/status"
}

# Starts two processes; their numbers are in chief and worker.
begin() {
    rm -f log.jsonl
    # A background job of sh ignores SIGINT, and the command leaves ignored signals ignored.
    env --default-signal=INT,HUP "$TANDEM" launch -n 2 -- fit mlp.keras --train digits --devices cpu:0 \
        --epochs 2000000000 --log log.jsonl --output saved.keras >out 2>err &
    process=$!
    await test -s log.jsonl
    set -- $(children $process)
    [ $# -eq 2 ] || fail "expected two processes, got: $*"
    chief=$1 worker=$2
}

# Who asks the launcher to end asks all.
for signal in INT:130 TERM:143 HUP:129; do
    begin
    ends $process ${signal%:*} ${signal#*:} "launch, ${signal%:*}"
    is_gone "$chief" && is_gone "$worker" || fail "${signal%:*}: a process is left"
    grep -q "stopped by .*; saved.keras holds the model" err || fail "${signal%:*}: said: $(cat err)"
done

# Ctrl-Z stops all, until they are let go on.
stopped() {
    grep -q "^State:.*stopped" "/proc/$1/status"
}
goes_on() {
    ! stopped "$1"
}
begin
kill -s TSTP $process
for one in $process $chief $worker; do
    await stopped $one
done
kill -s CONT $process
for one in $process $chief $worker; do
    await goes_on $one
done
ends $process TERM 143 "launch, after Ctrl-Z"

# They have one secret, which lies in memory.
begin
for child in $chief $worker; do
    path=$(tr '\0' '\n' <"/proc/$child/environ" | sed -n 's/^TANDEM_SECRET_FILE=//p')
    cat "/proc/$child/fd/${path##*/}" >"secret-$child"
    [ "$(stat -L -c %a "/proc/$child/fd/${path##*/}")" = 600 ] || fail "others can read the secret"
done
[ "$(wc -c <"secret-$chief")" -eq 32 ] && cmp -s "secret-$chief" "secret-$worker" || fail "the secrets differ"

# One that dies ends all, one that is stopped too.
kill -s STOP "$chief"
kill -s KILL "$worker"
wait $process
status=$?
[ $status -eq 137 ] || fail "a worker was killed: status $status"
grep -q "^tandem launch: worker 1 was killed by signal 9 (Killed); the others are ended too$" err ||
    fail "a worker was killed: said: $(cat err)"
is_gone "$chief" || fail "a worker was killed: the chief is left"

# Nobody outlives the launcher.
begin
kill -s KILL $process
wait $process
await is_gone "$chief"
await is_gone "$worker"
finish
