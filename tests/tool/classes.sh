# classes.sh - classes that the data names: they travel with the model, and are said.
. "$ROOT/tests/tool/support.sh"
awk -v OFS=, 'BEGIN { print "a,b,c,kind"; for (i = 0; i < 64; i++) print i % 2, 1 - i % 2, 0.5, i % 2 ? "dog" : "cat" }' >kinds.csv
cp "$ROOT/tests/formats/golden/plain.keras" .
expect 0 fit plain.keras --train kinds.csv --features x=a,b,c,y=kind:codes --optimizer adam --learning-rate 0.1 --epochs 4 \
    --loss sparse_categorical_crossentropy --from-logits --metrics accuracy --output named.keras --quiet
expect 0 evaluate named.keras --data kinds.csv --quiet
[ "$(number accuracy out)" = 1 ] || fail "two classes were not told apart: $(cat out)"
expect 0 predict named.keras --data kinds.csv --output p.npy
grep -qx "Classes: 0 cat, 1 dog." out || fail "predict said: $(cat out)"

expect 0 evaluate named.keras --data kinds.csv --quiet --confusion
grep -q "^cat .* 32$" out && grep -q "^dog .* 32$" out || fail "evaluate --confusion printed: $(cat out)"

says 1 "confusion_output: 1; model .* has 1" evaluate named.keras --data kinds.csv --quiet --confusion-output 1

# A part that lacks a class has the same numbers; one that has another is refused.
grep -v cat kinds.csv >dogs.csv
expect 0 evaluate named.keras --data dogs.csv --quiet
[ "$(number accuracy out)" = 1 ] || fail "dogs alone were numbered anew: $(cat out)"
sed 's/cat/cow/' kinds.csv >cows.csv
expect 1 evaluate named.keras --data cows.csv --quiet
grep -q "cow" err || fail "a class that there was not: $(cat err)"
expect 0 predict plain.keras --data kinds.csv --features x=a,b,c --output p.npy
grep -q Classes out && fail "a model that was not trained knows classes: $(cat out)"

# A model that knows none takes the data's names.
expect 0 evaluate plain.keras --data kinds.csv --features x=a,b,c,y=kind:codes --loss sparse_categorical_crossentropy \
    --from-logits --metrics accuracy --quiet --confusion
grep -q "^cat .* 32$" out && grep -q "^dog .* 32$" out || fail "evaluate --confusion printed: $(cat out)"
finish
