#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

printf 'Hello, World!\n  --A  b--\n???\n2026: a year\n\nALREADY-fine\n' >"$logs/in"
printf 'hello-world\na-b\nuntitled\n2026-a-year\nuntitled\nalready-fine\n' >"$logs/expected"
if [ -x ./slug ] && ./slug <"$logs/in" >"$logs/out" && cmp -s "$logs/out" "$logs/expected"; then
    echo 1 >"$logs/reward.txt"
else
    echo "slug printed:"
    cat "$logs/out" 2>/dev/null
    echo 0 >"$logs/reward.txt"
fi
