# cluster.sh - tandem cluster secret: a file of 32 bytes for its owner alone, never written over another.
. "$ROOT/tests/tool/support.sh"

(umask 0; expect 0 cluster secret one; [ "$failures" -eq 0 ]) || fail "no secret is written"
[ "$(stat -c '%a %s' one)" = "600 32" ] || fail "expected mode 600 and 32 bytes, got $(stat -c '%a %s' one)"
(umask 0777; "$TANDEM" cluster secret two >out) || fail "no secret is written under a strict umask"
[ "$(stat -c '%a' two)" = 600 ] || fail "the umask took the owner's rights: $(stat -c '%a' two)"
grep -q "Saved two: a secret of 32 bytes" out || fail "it printed: $(cat out)"
cmp -s one two && fail "two secrets are the same"

cp one before
says 2 "one.* exists, and is left as it is" cluster secret one
cmp -s one before || fail "a secret was overwritten"
ln -s nowhere link
says 2 "link.* exists" cluster secret link
[ ! -e nowhere ] || fail "a symbolic link was followed"
says 2 "expected a path, got an empty one" cluster secret ""
says 2 "cannot write .*none/secret.*: No such file" cluster secret none/secret
expect 0 cluster secret three --quiet
[ ! -s out ] && [ ! -s err ] || fail "--quiet printed: $(cat out err)"

says 2 "expected secret FILE | config after the options, got nothing" cluster
says 2 "expected the name of a new file, got none" cluster secret
says 2 "expected secret or config, got 'secrte'; did you mean tandem cluster secret FILE?" cluster secrte four
says 2 "expected secret or config, got 'four'; try tandem cluster secret FILE" cluster four
says 2 "expected one file, got 'five' after 'four'" cluster secret four five
says 2 "addresses and --output belong to tandem cluster config" cluster secret four --workers a:1
[ ! -e four ] && [ ! -e five ] || fail "something was written"
finish
