# files.sh - files that cannot be read or written: status 1, one sentence, before any work is done.
. "$ROOT/tests/tool/support.sh"
mkdir folder folder.keras
images mnist train 40 1
expect 0 new mlp --seed 3
[ -s mlp.keras ] || fail "new wrote no mlp.keras"
grep -q "Saved mlp.keras: 269322 parameters" out || fail "new printed: $(cat out)"
expect 0 new mlp --seed 3 --quiet --output other.keras
[ ! -s out ] || fail "new --quiet printed: $(cat out)"
expect 0 new lstm
grep -q "Saved lstm.keras: 70273 parameters" out || fail "new lstm printed: $(cat out)"
expect 0 new lstm --shape 24x5 --outputs 2 --output series.keras
expect 0 summary series.keras
grep -q "(None, 2) .* 258 " out || fail "new lstm --outputs: $(cat out)"
grep -q "lstm.* 68,608 " out || fail "new lstm --shape: $(cat out)"
expect 0 new lstm --shape 24x5 --output one.keras
expect 0 new lstm --outputs 2 --output two.keras

says 1 "output: folder is a folder; expected the name of a file, try folder/out.keras" new mlp -o folder
says 1 "output: folder.keras is a folder" fit mlp.keras --train mnist --output folder.keras
says 1 "output: cannot write none/x.keras: folder none/: No such file" fit mlp.keras --train mnist -o none/x.keras
says 1 "output: cannot write mlp.keras/x.keras: folder mlp.keras/" fit mlp.keras --train mnist -o mlp.keras/x.keras
says 2 "--log and --output name one file, r.keras; give them two" fit mlp.keras --train mnist --log r.keras --output r.keras
says 2 "--csv-log and MODEL name one file" fit mlp.keras --train mnist --csv-log ./mlp.keras
says 2 "--csv-log and --log name one file" fit mlp.keras --train mnist --csv-log l --log l
says 1 "log: cannot append to none/l.jsonl: No such file" fit mlp.keras --train mnist --log none/l.jsonl
if [ -d /proc/self ]; then # takes no files, whoever asks
    says 1 "output: cannot write /proc/x.keras: folder /proc/: " fit mlp.keras --train mnist -o /proc/x.keras
fi
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked && chmod 500 locked
    says 1 "output: cannot write locked/x.keras: folder locked/: Permission denied" new mlp -o locked/x.keras
fi

for command in summary explain "evaluate --data mnist" "predict --data mnist" "fit --train mnist"; do
    says 1 "nothere.keras" $command nothere.keras
done
echo "not a model" >bad.keras
says 1 "bad.keras" summary bad.keras
says 1 "train: .*nothere" fit mlp.keras --train nothere
says 1 "validation: .*nothere" fit mlp.keras --train mnist --validation nothere
says 1 "data: .*nothere" evaluate mlp.keras --data nothere
says 1 "data: .*nothere.npy" predict mlp.keras --data nothere.npy
says 2 "gpu" fit mlp.keras --train mnist --devices gpu:0

# What of a folder or an HDF5 file is not used is said once, with a count; without an input the arrays are listed.
images crowd train 40 1
: >crowd/more.csv
: >crowd/extra.npy
expect 0 fit mlp.keras --train crowd --epochs 1 --quiet --output o.keras
[ "$(grep -c "^tandem fit: --train: crowd: 2 of its files are not used: extra.npy, more.csv (" err)" = 1 ] || fail "crowd: $(cat err)"
says 1 "data: .*: no array named x, x_test or x0; it holds: .*dense/.*kernel:0.* --features x=NAME,y=NAME" \
    evaluate mlp.keras --data "$ROOT/tests/formats/golden/keras_2_12.h5" --quiet

# What was printed must have arrived.
if [ -c /dev/full ]; then
    "$TANDEM" summary mlp.keras >/dev/full 2>err
    [ $? -eq 1 ] || fail "summary into a full disk: expected status 1"
    grep -q "standard output\|could not be written" err || fail "summary into a full disk said: $(cat err)"
fi

[ ! -e mlp-trained.keras ] || fail "a refused fit wrote a model"
finish
