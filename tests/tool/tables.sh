# tables.sh - CSV files at the command: what the first line is, what is not used, and labels that the model does not have.
. "$ROOT/tests/tool/support.sh"
expect 0 new mlp --seed 3

# rows FIRST COUNT: rows of 784 pixels and a label, FIRST, FIRST + 1, ...
rows() {
    awk -v first="$1" -v count="$2" 'BEGIN {
        for (i = 0; i < count; i++) {
            for (p = 0; p < 784; p++)
                printf "%d.5,", (p + i) % 7
            print first + i % 10
        }
    }'
}
awk 'BEGIN { for (p = 0; p < 784; p++) printf "%d,", p; print 784 }' >header
rows 0 20 >rows.csv
cat header rows.csv >numbers.csv
fit() {
    expect 0 fit mlp.keras --quiet --output o.keras --log log.jsonl "$@"
}

# pandas's names of columns without names.
fit --train numbers.csv
[ "$(number samples log.jsonl)" = 20 ] || fail "a header of numbers: $(cat log.jsonl)"
grep -q "^tandem fit: --train: numbers.csv: its first line, 0,1,2,..., is taken for the columns' names" err || fail "not said: $(cat err)"
fit --train numbers.csv --header yes
[ ! -s err ] || fail "said what was given: $(cat err)"
fit --train rows.csv --header no
[ "$(number samples log.jsonl)" = 20 ] || fail "no header: $(cat log.jsonl)"
says 2 "--header: expected yes or no, got 'maybe'" fit mlp.keras --train rows.csv --header maybe
images digits t10k 20 1
says 1 "header (--header) belongs to files.csv" predict mlp.keras --data digits --header no

# What no feature is made of is said once, with a count.
sed '1s/^/id,/; 2,$s/^/7,/' numbers.csv >more.csv
says 1 "more.csv: x holds samples of shape .785., but .*; choose from its columns, id, .* by features" predict mlp.keras --data more.csv --header yes
fit --train more.csv --header yes --features "x=$(sed 's/,784$//' header),y=784"
grep -q "^tandem fit: --train: more.csv: 1 of its 786 columns is not used: id$" err || fail "not said: $(cat err)"

# Labels that count from 1.
rows 1 20 >from_1.csv
says 1 "class number 10, but the model has classes 0 to 9; the labels, 1 to 10, count from 1" fit mlp.keras --train from_1.csv --quiet
fit --train from_1.csv --features y=784:codes
expect 0 evaluate o.keras --data from_1.csv --quiet
rows 3 20 >from_3.csv
says 1 "; the labels go from 3 to 12: number them from 0 to 9" fit mlp.keras --train from_3.csv --quiet
rows -1 20 >negative.csv
says 1 "class number -1, .* if it stands for none of them, name it as ignore_class" fit mlp.keras --train negative.csv --quiet
finish
