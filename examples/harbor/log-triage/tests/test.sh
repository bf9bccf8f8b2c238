#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

# Three rewards: each right column counts, and `reward` is their mean.
column() { tail -n +2 "$1" 2>/dev/null | cut -d, -f"1,$2"; }
right() { [ -n "$(column summary.csv "$1")" ] && [ "$(column summary.csv "$1")" = "$(column "$tests/expected.csv" "$1")" ] && echo 1 || echo 0; }
requests=$(right 2) errors=$(right 3) slowest=$(right 4)
head -n 1 summary.csv 2>/dev/null | grep -qx 'path,requests,errors,slowest_ms' || { requests=0 errors=0 slowest=0; echo "wrong header"; }
awk -v a="$requests" -v b="$errors" -v c="$slowest" 'BEGIN {
    printf "{\"requests\": %d, \"errors\": %d, \"slowest\": %d, \"reward\": %.4f}\n", a, b, c, (a + b + c) / 3
}' >"$logs/reward.json"
cat "$logs/reward.json"
