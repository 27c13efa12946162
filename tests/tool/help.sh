# help.sh - every command explains itself; the manual pages know the same options, the completion the same commands.
. "$ROOT/tests/tool/support.sh"
COMMANDS="fit evaluate predict summary new explain doctor plot find-lr generate cluster launch"

expect 0 --version
grep -qx "tandem [0-9]*\.[0-9]*\.[0-9]*" out || fail "--version printed: $(cat out)"
for way in help --help -h; do
    expect 0 $way
    [ ! -s err ] || fail "$way: $(cat err)"
    for command in $COMMANDS; do
        grep -q "^  $command " out || fail "$way does not list $command"
    done
done

options_of_help() {
    sed -n -e '/^Examples:/q' -e 's/^ *\(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p' "$1" | sort
}

options_of_page() {
    awk '/^\.TP/ { getline; gsub(/\\-/, "-"); print }' "$1" | grep -o -- '--[a-z][a-z0-9-]*' | sort
}

for command in $COMMANDS; do
    expect 0 help "$command"
    mv out help
    expect 0 "$command" --help
    cmp -s help out || fail "tandem help $command and tandem $command --help differ"
    expect 0 "$command" --version
    expect 0 "$command" --usage
    grep -q "^Usage: tandem $command" help || fail "help $command: no usage"
    [ "$(sed -n '/^Examples:/,$p' help | grep -c "^    .*tandem $command")" -ge 2 ] || fail "help $command: examples missing"
    [ -z "$(grep -x '\\' help)" ] || fail "help $command: an example that is too long is broken"
    [ -z "$(awk 'length > 80' help)" ] || fail "help $command: lines longer than a terminal's"
    page=$ROOT/docs/man/tandem-$command.1
    options_of_help help >wanted
    options_of_page "$page" >found
    cmp -s wanted found || fail "$page and tandem help $command differ in options: $(diff wanted found)"
    sed 's#\\##g' "$ROOT/docs/man/tandem.1" | grep -q "tandem-$command" || fail "tandem.1 does not name $command"
    grep -q "$command" "$ROOT/tools/tandem.bash-completion" || fail "the completion does not know $command"
done

# Options may be abbreviated, and stand before the model or after it.
expect 0 fit --hel
expect 2 fit --epo=0
grep -q "epochs: expected" err || fail "--epo is not understood as --epochs"
finish
