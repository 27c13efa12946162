# support.sh - sourced by the tests of the command. TANDEM is the command, ROOT the source tree. Works in a fresh folder.
set -u
export LC_ALL=C
failures=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

finish() {
    [ "$failures" -eq 0 ] || exit 1
    echo "all passed"
}

# expect STATUS WORD...: runs the command; its output is left in the files out and err.
expect() {
    wanted=$1
    shift
    "$TANDEM" "$@" >out 2>err
    status=$?
    [ "$status" -eq "$wanted" ] && return
    fail "tandem $*: status $status, expected $wanted"
    cat out err
}

# says STATUS PATTERN WORD...: the command ends with the status, nothing on stdout, and one sentence on stderr that names the
# command and matches the pattern.
says() {
    wanted=$1 pattern=$2
    shift 2
    expect "$wanted" "$@"
    [ ! -s out ] || fail "tandem $*: printed on standard output: $(cat out)"
    [ "$(wc -l <err)" -eq 1 ] || fail "tandem $*: expected one line on standard error: $(cat err)"
    grep -q -- "^tandem.*: .*$pattern" err || fail "tandem $*: '$pattern' is not in: $(cat err)"
}

# images FOLDER PART COUNT SEED: COUNT IDX images of 28x28 and their labels, "train" or "t10k". A digit is two bright rows,
# the rest is noise.
images() {
    mkdir -p "$1"
    awk -v count="$3" -v seed="$4" 'BEGIN {
        printf "%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c", 0, 0, 8, 3, 0, 0, int(count / 256), count % 256, 0, 0, 0, 28, 0, 0, 0, 28
        for (i = 0; i < count; i++)
            for (p = 0; p < 784; p++) {
                seed = seed * 16807 % 2147483647
                row = int(p / 28)
                printf "%c", int(row / 2) == i % 10 + 2 ? 200 : seed % 64
            }
    }' >"$1/$2-images-idx3-ubyte"
    awk -v count="$3" 'BEGIN {
        printf "%c%c%c%c%c%c%c%c", 0, 0, 8, 1, 0, 0, int(count / 256), count % 256
        for (i = 0; i < count; i++)
            printf "%c", i % 10
    }' >"$1/$2-labels-idx1-ubyte"
}

# number NAME FILE: the value of "NAME": in a line of JSON, or of NAME: in what evaluate prints; of the last line that has it.
number() {
    sed -n "s/.*\"\{0,1\}\b$1\"\{0,1\}: \([-+0-9.e]*\).*/\1/p" "$2" | tail -n 1
}

# holds EXPRESSION: compares numbers.
holds() {
    awk "BEGIN { exit !($1) }" || fail "$1 does not hold"
}

# await COMMAND...: until it succeeds, five minutes at most.
await() {
    tries=0
    until "$@" || [ $tries -ge 6000 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    [ $tries -lt 6000 ] || fail "in five minutes there was no success of: $*"
}

# ends PROCESS SIGNAL STATUS WHAT: the background process gets the signal and ends with the status.
ends() {
    kill -s "$2" "$1"
    wait "$1"
    status=$?
    [ $status -eq "$3" ] || fail "$4: status $status, expected $3: $(cat out err)"
}
