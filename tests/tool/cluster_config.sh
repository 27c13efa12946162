# cluster_config.sh - descriptions of clusters: written, and checked.
. "$ROOT/tests/tool/support.sh"
unset TF_CONFIG TANDEM_SECRET_FILE
for name in $(env | sed -n 's/^\(\(KERAS_DISTRIBUTION\|SLURM\|OMPI\|PMI\)_[A-Z_]*\|RANK\|WORLD_SIZE\|MASTER_ADDR\|MASTER_PORT\)=.*/\1/p'); do
    unset "$name"
done

# ---- tandem cluster config ----

says 2 "expected secret or config, got 'confg'; did you mean tandem cluster config?" cluster confg
says 2 "config: expected options only, got 'a:1'" cluster config a:1
says 2 "workers: expected the addresses of the workers, got none; try --workers" cluster config --ps a:1
says 2 "worker 1: address \"b:x\": its port is not a number" cluster config --workers a:1,b:x
says 2 "worker 1: address \"\": a port is missing" cluster config --workers a,
says 2 "worker 0 and worker 1 both are A:1" cluster config --workers a:1,A:1
says 2 "chief: 2 addresses; a cluster has one" cluster config --workers a --chief b,c
says 1 "nowhere/x cannot be made: No such file" cluster config --workers a --output nowhere/x
[ -z "$(ls | grep -v '^out$\|^err$')" ] || fail "something was written: $(ls)"

expect 0 cluster config --workers 127.0.0.1,127.0.0.1:2224,127.0.0.1,'[::1]' --chief 127.0.0.1:4000 --evaluator '[::1]' --output tasks
grep -q "^Saved tasks/worker-2.json, for 127.0.0.1:2223.$" out || fail "cluster config: printed $(cat out)"
[ "$(ls tasks | tr '\n' ' ')" = "chief.json evaluator.json worker-0.json worker-1.json worker-2.json worker-3.json " ] ||
    fail "cluster config: wrote $(ls tasks)"
expect 0 doctor --cluster tasks/*.json
grep -q "^Nothing wrong is to be seen without connecting.$" out || fail "doctor: $(cat out)"
grep -q "^tasks/worker-3.json: worker 3$" out || fail "doctor: $(cat out)"
grep -q "^  evaluator    \[::1\]:2223$" out || fail "doctor: $(cat out)"
expect 0 doctor --cluster tasks/worker-1.json
grep -q "^  worker 1     127.0.0.1:2224, this process$" out || fail "doctor: $(cat out)"
TF_CONFIG=$(cat tasks/chief.json)
export TF_CONFIG
expect 0 doctor --cluster
grep -q "^Cluster of 6 tasks, by TF_CONFIG:$" out || fail "doctor: $(cat out)"
grep -q "^  chief        127.0.0.1:4000, this process$" out || fail "doctor: $(cat out)"

# Without an output folder the files lie here.
expect 0 cluster config --workers 127.0.0.1,127.0.0.1 --quiet
[ ! -s out ] && [ -s worker-0.json ] && [ -s worker-1.json ] || fail "cluster config: $(ls)"

# ---- tandem doctor --cluster ----

# wrong PATTERN WORD...: doctor --cluster WORD... ends with status 1; a line of its report matches the pattern.
wrong() {
    pattern=$1
    shift
    expect 1 doctor --cluster "$@"
    grep -q -- "^Wrong: .*$pattern" out || fail "doctor --cluster $*: '$pattern' is not in: $(cat out)"
    grep -q "^tandem doctor: the description of the cluster has [0-9]* mistake" err || fail "doctor --cluster: $(cat err)"
}

TF_CONFIG='{"cluster": {"worker": ["a:2222", "b:2222"}}' wrong "TF_CONFIG is not JSON: column 43: ']' expected"
TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:1"]}}' wrong 'TF_CONFIG: no "task": which task is this process?'
TF_CONFIG='{"cluster": {"workers": ["a:1"]}}' wrong 'task type "workers" in "cluster": did you mean worker?'
TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:1", "192.0.2.1:1"]}, "task": {"type": "worker", "index": 1}}' \
    wrong "worker 1 is 192.0.2.1, which is no address of this host (.*): the index is wrong, or give --bind"
grep -q "^Wrong: worker 0 is 127.0.0.1 in a cluster of several hosts" out || fail "doctor: $(cat out)"
grep -q "has 2 mistakes" err || fail "doctor: $(cat err)"
unset TF_CONFIG
wrong "nothing describes a cluster, so this would train alone"
wrong "nofile.json: the file cannot be read: No such file or directory" nofile.json
wrong "two files are task worker 0: worker-0.json and worker-0.json" worker-0.json worker-0.json
wrong "tasks disagree: worker 1 lists 0 chiefs, chief 1" tasks/chief.json worker-1.json
RANK=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 wrong "RANK is 2, but WORLD_SIZE is 2; ranks go from 0 to 1"
says 2 "expected options only, got 'x'; leave it out, or write tandem doctor --cluster x" doctor x

# What launchers say.
RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 expect 0 doctor --cluster
grep -q "^Cluster of 2 tasks, by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT:$" out || fail "doctor: $(cat out)"
grep -q "^  worker 0     127.0.0.1:29500, the chief$" out || fail "doctor: $(cat out)"
grep -q "^  worker 1     (address not known yet), this process$" out || fail "doctor: $(cat out)"
finish
