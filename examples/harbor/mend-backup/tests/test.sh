#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

work=$(mktemp -d)
score() { echo "$1" >"$logs/reward.txt"; rm -rf "$work"; exit 0; }
fail() { echo "FAILED: $1"; score 0; }

mkdir -p "$work/in/a b/c" "$work/in/-d" "$work/in/empty" "$work/none/empty"
printf one >"$work/in/plain"
printf two >"$work/in/a b/c/two  blanks"
printf three >"$work/in/-d/-rf"
printf four >"$work/in/a b/star *"
ln -s plain "$work/in/link"

said=$(sh ./backup.sh "$work/in" "$work/out 1") || fail "exit code $?"
[ "$said" = 4 ] || fail "it said '$said', not 4"
[ "$(cat "$work/out 1/a b/c/two  blanks")" = two ] || fail "blanks"
[ "$(cat "$work/out 1/-d/-rf")" = three ] || fail "dashes"
[ "$(cat "$work/out 1/a b/star *")" = four ] || fail "stars"
[ ! -e "$work/out 1/link" ] && [ ! -e "$work/out 1/empty" ] || fail "too much was copied"
[ "$(sh ./backup.sh "$work/none" "$work/out2")" = 0 ] || fail "no files is not 0"
score 1
