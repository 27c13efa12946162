# plot.sh - curves of logs in the terminal and as pictures; what is no log is refused by file and line.
. "$ROOT/tests/tool/support.sh"
printf '{"epoch": 0, "loss": 1.5, "accuracy": 0.5, "val_loss": 1.6, "steps": 3, "learning_rate": 0.1}\n' >a.jsonl
printf '{"epoch": 1, "loss": 0.5, "accuracy": 0.7, "val_loss": null, "steps": 3, "learning_rate": 0.1}\n' >>a.jsonl
printf '{"epoch": 2, "loss": 0.25, "accuracy": 0.9, "val_loss": 0.8, "steps": 3, "learning_rate": 0.01}\n' >>a.jsonl
printf 'epoch,accuracy,loss,val_loss\r\n0,0.25,2.0,2.5\r\n1,0.5,1.0,1.5\r\n' >b.csv

expect 0 plot a.jsonl b.csv
for title in "^loss: a.jsonl, a.jsonl validation (dotted), b.csv, b.csv validation (dotted)$" "^accuracy: a.jsonl, b.csv$" \
    "^learning_rate: a.jsonl$"; do
    grep -q "$title" out || fail "plot printed no '$title': $(cat out)"
done
grep -q steps out && fail "plot drew the steps"
grep -q "$(printf '\342\240')\|$(printf '\342\241')\|$(printf '\342\242')\|$(printf '\342\243')" out || fail "no braille: $(cat out)"
[ "$(grep -c "^loss:" out)" -eq 1 ] || fail "one panel for the loss was expected"
# From 0.25 to 2.5, with a twentieth of that as room.
grep -q "^ *2.61" out || fail "the loss's axis does not reach 2.6: $(cat out)"
expect 0 plot a.jsonl --curves loss --log-y
grep -q "accuracy" out && fail "--curves loss drew the accuracy"

if "$TANDEM" plot a.jsonl --output probe.svg --quiet 2>err; then
    expect 0 plot a.jsonl b.csv --output p.png
    grep -q "^Saved p.png.$" out || fail "plot said: $(cat out)"
    head -c 8 p.png | grep -q PNG || fail "p.png is no PNG"
    expect 0 plot a.jsonl --log-x --output p.svg --quiet
    [ ! -s out ] || fail "plot --quiet printed: $(cat out)"
    grep -q "<svg" p.svg || fail "p.svg is no SVG"
    says 2 "expected a name that ends in .png or .svg" plot a.jsonl --output p.pdf
    says 1 "cannot write no/p.png: No such file" plot a.jsonl --quiet --output no/p.png
    # A full disk leaves the picture that was there.
    cp p.png before.png
    for picture in p.png p.svg; do
        (ulimit -f 1; "$TANDEM" plot a.jsonl --quiet --output $picture) 2>err
        [ $? -eq 1 ] || fail "a full disk under $picture: expected status 1"
        grep -q "cannot write $picture: File too large" err || fail "a full disk under $picture: $(cat err)"
    done
    cmp p.png before.png || fail "a full disk lost the picture that was there"
    [ -z "$(find . -name '*.tmp')" ] || fail "a full disk left $(find . -name '*.tmp')"
    [ -z "$(ls | grep tmp)" ] || fail "plot left behind: $(ls)"
else
    grep -q "built without cairo" err || fail "plot --output: $(cat err)"
fi

says 1 "cannot read none.jsonl" plot none.jsonl
: >empty
says 1 "empty is empty" plot empty
# Of a run that was killed; another went on below.
head -c 120 a.jsonl >cut.jsonl
expect 0 plot cut.jsonl
grep -q "^tandem plot: cut.jsonl: line 2 is cut short and left out$" err && grep -q "^loss: cut.jsonl" out || fail "a torn line: $(cat out err)"
(echo; head -2 a.jsonl; head -c 20 a.jsonl) >>cut.jsonl
expect 0 plot cut.jsonl
grep -q "cut.jsonl: 2 lines are cut short and left out; the first of them is line 2$" err || fail "two torn lines: $(cat out err)"
head -c 50 a.jsonl >cut.jsonl
says 1 "cut.jsonl: line 1 is cut short, and no other holds an epoch" plot cut.jsonl
printf 'epoch,loss,val_loss\r\n0,2.0,2.5\r\n1,1.0\r\n2,1.0,1.5\r\nepoch,loss\r\n0,0.5\r\n1,0.0' >cut.csv
expect 0 plot cut.csv --curves loss
grep -q "cut.csv: 2 lines are cut short and left out; the first of them is line 3$" err || fail "torn lines of a CSV: $(cat out err)"
grep -q "^ *0.4" out || fail "the curve does not reach the second header's 0.5, and no further: $(cat out)"
printf 'a,b\n1,2\n' >other.csv
says 1 "other.csv, line 1: expected a JSON object, or a CSV header" plot other.csv
printf 'epoch,loss\nx,2\n' >words.csv
says 1 "words.csv, line 2: expected the number of an epoch" plot words.csv
says 1 "there is no curve to draw of the names nothing" plot a.jsonl --curves nothing
says 2 "expected LOG" plot
head -c 3000 /dev/urandom >noise
"$TANDEM" plot noise >out 2>err
[ $? -eq 1 ] || fail "noise: $(cat out err)"
finish
