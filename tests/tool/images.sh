# images.sh - folders of images: what the model takes decides, and what is left out is said.
. "$ROOT/tests/tool/support.sh"

# bmp FILE SIZE COLOURS VALUE: a square image of one value, with colours (1) or grey (0, of two shades).
bmp() {
    awk -v side="$2" -v colours="$3" -v value="$4" '
        function number(n, bytes) { for (; bytes > 0; bytes--) { printf "%c", n % 256; n = int(n / 256) } }
        BEGIN {
            offset = colours ? 54 : 62
            row = colours ? int((3 * side + 3) / 4) * 4 : int((side + 31) / 32) * 4
            printf "BM"; number(offset + row * side, 4); number(0, 4); number(offset, 4)
            number(40, 4); number(side, 4); number(side, 4); number(1, 2); number(colours ? 24 : 1, 2); number(0, 24)
            if (!colours) { number(0, 4); number(value, 1); number(value, 1); number(value, 1); number(0, 1) }
            for (i = 0; i < row * side; i++) printf "%c", colours ? value : 255
        }' >"$1"
}

expect 0 new lenet5 --output grey.keras --quiet
expect 0 new cifar --output rgb.keras --quiet

# Grey ones and ones with colours, in either order, for a model of one channel and one of three.
mkdir -p a/cat a/dog b/cat b/dog
for folder in a b; do
    bmp $folder/cat/1.bmp 28 "$([ $folder = a ] && echo 0 || echo 1)" 100
    bmp $folder/dog/1.bmp 28 "$([ $folder = a ] && echo 1 || echo 0)" 100
    expect 0 predict grey.keras --data $folder --output $folder.npy --quiet
    expect 0 fit grey.keras --train $folder --output o.keras --quiet
    expect 0 fit rgb.keras --train $folder --image-size 32x32 --output o.keras --quiet
done
cmp -s a.npy b.npy || fail "grey and colours of one shade are not one image"

# The first of another size is refused as the second is, and skipped as it is.
mkdir -p sizes/cat sizes/dog
bmp sizes/cat/1.bmp 20 1 10
bmp sizes/dog/1.bmp 28 1 20
says 1 "sizes/cat/1.bmp: it is 20 x 20 pixels .* the model takes 28 x 28.*--image-size 28x28" \
    fit grey.keras --train sizes --output o.keras --quiet
expect 0 fit grey.keras --train sizes --output o.keras --quiet --on-error skip
grep -q "1 samples are left out; the first: sizes/cat/1.bmp" err || fail "skipping said: $(cat err)"
mv sizes/cat/1.bmp sizes/dog/2.bmp && mv sizes/dog/1.bmp sizes/cat/1.bmp
expect 1 fit grey.keras --train sizes --output o.keras --quiet
grep -q "sizes/dog/2.bmp: it is 20 x 20 pixels .* the model takes 28 x 28.*--image-size 28x28" err ||
    fail "the last of another size: $(cat err)"

# More folders than classes are named before anything is trained or logged.
for class in 0 1 2 3 4 5 6 7 8 9 x; do
    mkdir -p eleven/$class
    bmp eleven/$class/1.bmp 28 0 9
done
expect 2 fit grey.keras --train eleven --batch-size 1 --no-shuffle --output o.keras --csv-log log.csv
grep -q "11 classes (0, 1, .*, 9, x)" err || fail "a folder too many: $(cat err)"
grep -q ignore err && fail "a folder too many is told of ignore_class: $(cat err)"
[ ! -e log.csv ] || fail "a log was begun"

# Validation by the training's numbers, or a refusal.
expect 0 fit grey.keras --train a --validation a --output trained.keras --quiet
mkdir -p part/dog other/Dog more/cat more/dog more/eel
for file in part/dog other/Dog more/cat more/dog more/eel; do bmp $file/1.bmp 28 0 100; done
expect 0 fit grey.keras --train a --validation part --output o.keras --quiet
says 1 "other has the class folders Dog, but the model was trained on the classes cat, dog" \
    evaluate trained.keras --data other --quiet
says 1 "more/eel is none of the 2 classes that the model was trained on (cat, dog)" \
    evaluate trained.keras --data more --quiet
expect 0 predict trained.keras --data more --output p.npy --quiet

# What lies there besides is counted once, and names do not reach the terminal as they are.
touch "a/cat/Thumbs.db" "a/.DS_Store" "$(printf 'a/cat/\033[31m.txt')"
expect 0 fit grey.keras --train a --output o.keras --quiet
grep -q "^tandem fit: --train: a: left out: 2 whose names do not end in .* (the first: a/cat/?.31m.txt); 1 hidden" err ||
    fail "what was left out: $(cat err)"
[ "$(wc -l <err)" -le 2 ] || fail "it was said more than once: $(cat err)"
finish
