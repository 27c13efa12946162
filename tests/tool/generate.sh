# generate.sh - a model of characters is trained on a text by tandem fit, and writes on as the text goes.
. "$ROOT/tests/tool/support.sh"
cp "$ROOT/tests/formats/golden/characters.keras" .
i=0
while [ $i -lt 400 ]; do
    printf 'abcd\n'
    i=$((i + 1))
done >alphabet.txt

says 2 "characters.keras\|knows no characters" generate characters.keras
expect 0 fit characters.keras --train alphabet.txt --window 8 --epochs 40 --batch-size 16 --seed 1 --quiet
model=characters-trained.keras

expect 0 generate $model --prompt abc --length 10 --temperature 0
[ "$(cat out)" = "$(printf 'abcd\nabcd\nabc')" ] || fail "after abc it wrote: $(cat out)"
expect 0 generate $model --prompt abc --length 10 --temperature 0 --quiet
[ "$(cat out)" = "$(printf 'd\nabcd\nabc')" ] || fail "after abc, --quiet, it wrote: $(cat out)"
expect 0 generate $model --prompt "$(printf 'abcd\nabcd\nabcd\nab')" --length 3 --top-k 1 --quiet
[ "$(cat out)" = "$(printf 'cd\n\n')" ] || fail "after a prompt longer than the window it wrote: $(cat out)"
expect 0 generate $model --length 5 --temperature 0
[ "$(cat out)" = abcd ] || fail "from a line's begin it wrote: $(cat out)"
expect 0 generate $model --seed 4 --temperature 5 --length 300
mv out first
[ "$(wc -c <first)" -eq 301 ] || fail "--length 300 wrote $(wc -c <first) bytes"
expect 0 generate $model --seed 4 --temperature 5 --length 300
cmp -s first out || fail "the same seed wrote another text"
expect 0 generate $model --seed 5 --temperature 5 --length 300
cmp -s first out && fail "another seed wrote the same text"

# From nothing: a model of the text's own characters.
expect 0 new char_lstm --text alphabet.txt --window 8 --seed 1 --output own.keras
grep -q "Saved own.keras: 330309 parameters" out || fail "new char_lstm printed: $(cat out)"
expect 0 fit own.keras --train alphabet.txt --window 8 --epochs 2 --batch-size 16 --seed 1 --quiet
expect 0 generate own-trained.keras --prompt abc --length 10 --temperature 0
[ "$(cat out)" = "$(printf 'abcd\nabcd\nabc')" ] || fail "new char_lstm wrote after abc: $(cat out)"
says 1 "text: alphabet.txt\|text: .*characters" new char_lstm --text alphabet.txt --window 100000
printf '1,2\n3,4\n' >numbers.csv
says 2 "text: expected a text, FILE.txt, got 'numbers.csv'" new char_lstm --text numbers.csv

# It comes as it is made: who has read enough may go, and Ctrl-C ends it.
"$TANDEM" generate $model --length 1000000000 2>err | head -c 50 >out
[ "$(wc -c <out)" -eq 50 ] || fail "head read $(wc -c <out) bytes"
[ ! -s err ] || fail "a reader that leaves: $(cat err)"
"$TANDEM" generate $model --length 1000000000 >out 2>err &
process=$!
await test -s out
kill -s TERM $process
wait $process
status=$?
[ $status -eq 143 ] || fail "SIGTERM: status $status: $(cat err)"

says 2 "prompt: character 2, U+0078 'x', is none of the 5 that the model was trained on" generate $model --prompt abx
says 2 "prompt: expected text" generate $model --prompt ""
says 2 "length: expected a whole number from 1" generate $model --length 0
says 2 "temperature: expected a number not below 0, got '-1'" generate $model --temperature -1
says 2 "top-k: expected a whole number from 1" generate $model --top-k 0
says 1 "nothere.keras" generate nothere.keras
expect 0 new mlp --seed 3
says 2 "knows no characters: it writes once td_fit has trained it on text" generate mlp.keras
if [ -c /dev/full ]; then
    "$TANDEM" generate $model >/dev/full 2>err
    [ $? -eq 1 ] || fail "a full disk: expected status 1"
    grep -q "the text cannot be written: No space left" err || fail "a full disk: $(cat err)"
fi
finish
