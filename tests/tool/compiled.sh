# The compile configuration of a file, part by part, and what options put in its place.
. "$(dirname "$0")/support.sh"

golden=$ROOT/tests/formats/golden
printf 'a,b,c,y\n1,0,0,0\n0,1,0,1\n0,0,1,0\n1,1,0,1\n0,1,1,0\n' >data.csv

# A known loss is enough to evaluate, whatever the optimizer; to train, an optimizer is asked for and nothing else.
expect 0 evaluate "$golden/partly.keras" --data data.csv -q
grep -q '^loss: ' out && grep -q '^accuracy: ' out || fail "no loss and accuracy: $(cat out)"
grep -q 'optimizer Adamax' err || fail "Adamax is not named: $(cat err)"
grep -q 'own' err || fail "the metric is not named: $(cat err)"
expect 2 fit "$golden/partly.keras" --train data.csv --output o.keras -q
tail -1 err | grep -q 'give one, for example --optimizer adam$' || fail "no optimizer is advised: $(cat err)"
grep -q -- --from-logits err && fail "a softmax is advised --from-logits: $(cat err)"
expect 0 fit "$golden/partly.keras" --optimizer adam --train data.csv --output o.keras --log log.jsonl -q
grep -q '"accuracy"' log.jsonl || fail "the known metric is lost: $(cat log.jsonl)"

# Without a loss the advice follows how the model ends.
says 2 'for example --loss sparse_categorical_crossentropy --from-logits for classes, or --loss mean_squared_error' \
    evaluate "$golden/plain.keras" --data data.csv
says 2 "name a loss" evaluate "$golden/plain.keras" --loss none --data data.csv

# Several outputs: one without a loss stays as it is.
"$TANDEM" predict "$golden/heads.keras" --data "$golden/relu.x.npy" --output before.npz -q || fail "heads do not predict"
printf 'a,b,c,y\n1,0,0,0\n0,1,0,1\n0,0,1,0\n1,1,0,1\n' >one.csv
expect 0 fit "$golden/heads.keras" --loss-weights 1,1 --metrics accuracy --train one.csv --epochs 2 --output trained.keras -q \
    --log heads.jsonl
grep -q '"loss": 0[,}]' heads.jsonl && fail "nothing was trained: $(cat heads.jsonl)"
says 2 "the model has no output 'box'" fit "$golden/heads.keras" --loss box=mse --train one.csv
says 2 'one entry for each of the 2 outputs' fit "$golden/heads.keras" --loss mse,mse,mse --train one.csv
says 2 'expected a number for each output' fit "$golden/heads.keras" --loss-weights 1,x --train one.csv
says 2 'no output has a loss\|a loss for at least one output\|without a loss' fit "$golden/heads.keras" --loss none,none \
    --train one.csv
expect 0 explain "$golden/heads.keras" --loss none,mse --json

finish
