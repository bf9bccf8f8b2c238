#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

# Runs in a session of its own: only `out` came over.
verdict() { echo "$1" >"$logs/reward.txt"; exit 0; }
[ ! -e data/a.csv ] || { echo "the agent's data came over"; [ -d /app ] || verdict 0; }
[ -z "$(find out -name '*.tmp' 2>/dev/null)" ] || { echo "working files came over"; verdict 0; }
grep -qx a.csv out/inputs.txt || { echo "the list of inputs did not come over"; verdict 0; }
[ "$(tr -d '[:space:]' <out/total.txt 2>/dev/null)" = "$EXPECTED_TOTAL" ] || { echo "wrong total"; verdict 0; }
verdict 1
