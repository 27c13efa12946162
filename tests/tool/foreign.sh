# Files that are no models, each with a sentence of its own; names that a terminal would obey.
. "$(dirname "$0")/support.sh"

golden=$ROOT/tests/formats/golden

# is FILE PATTERN: as a model, and as weights.
is() {
    says 1 "$2" summary "$1"
    grep -q 'cut short' err && fail "$1: called cut short: $(cat err)"
}

: >empty.keras
is empty.keras 'is empty'
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 9\n' >lfs.keras
is lfs.keras 'pointer of Git LFS.*git lfs pull'
printf '\n <!DOCTYPE html><html></html>\n' >page.keras
is page.keras 'web page'
printf '{"class_name": "Sequential", "config": {}}' >json.keras
is json.keras 'architecture alone'
printf '\200\004\225abcdefgh' >pickle.h5
is pickle.h5 'Python pickle'
printf '\034\000\000\000TFL3abcd' >lite.tflite
is lite.tflite 'TensorFlow Lite'
printf '\010\007\022\007pytorch' >net.onnx
is net.onnx 'ONNX'
printf '\020\000\000\000\000\000\000\000{"a":{"dtype":"F32"}}' >net.safetensors
is net.safetensors 'safetensors'
printf '\037\213\010\000abcd' >packed.keras
is packed.keras 'gzip: unpack'
head -c 2000 /dev/zero >zeros.keras
is zeros.keras 'zeros'
printf 'some words\n' >words.keras
is words.keras 'a text'
printf '\001\002\003\004\005' >bytes.keras
is bytes.keras 'neither a .keras file'
mkdir saved && printf x >saved/saved_model.pb
is saved 'SavedModel'
head -c 9000 "$golden/plain.keras" >short.keras
says 1 'cut short' summary short.keras
is "$golden/keras_2_15.weights.h5" 'weights alone.*--weights'
is "$golden/relu.x.npy" 'NumPy array'
"$TANDEM" predict "$golden/heads.keras" --data "$golden/relu.x.npy" --output arrays.npz -q
is arrays.npz '.npz file'
says 1 'web page' predict "$golden/plain.keras" --weights page.keras --data "$golden/plain.x.npy"

# A model of Keras 2 in HDF5 is one, whatever it is called.
cp "$golden/keras_2_12.h5" legacy.keras
expect 0 summary legacy.keras
expect 0 predict "$golden/keras_2_12.h5" --data "$golden/keras_2_13.x.npy" --output p.npy -q

# Escape sequences of a file's names are not printed; columns are those of a terminal.
expect 0 summary "$golden/heads.keras"
grep -q "$(printf '\033')" out && fail "an escape sequence is printed"
grep -q 'a?\[31m红 (Dense)' out || fail "the name is not shown: $(cat out)"
widths=$(grep '^│' out | sed 's/ │ (.*//; s/红/WW/; s/слой/four/' | sed 's/│/|/' | awk '{print length($0)}' | sort -u | wc -l)
[ "$widths" -eq 1 ] || fail "rows are not as wide as each other: $(cat out)"
expect 0 explain "$golden/heads.keras"
grep -q "$(printf '\033')" out && fail "explain prints an escape sequence"
"$TANDEM" explain "$golden/heads.keras" --json >json || fail "no JSON"
grep -qi '\\u001b\[31m' json || fail "JSON has another name"
printf 'a,b,c,y\n1,0,0,0\n0,1,0,1\n' >data.csv
expect 0 fit "$golden/heads.keras" --train data.csv --epochs 1 --metrics accuracy --output o.keras --log log.jsonl
grep -q "$(printf '\033')\[31m" out && fail "fit prints an escape sequence: $(cat out)"
says 1 'a?b' summary "$(printf 'a\033b.keras')"

finish
