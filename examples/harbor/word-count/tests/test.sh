#!/bin/sh
# The verdict goes to the logs folder, wherever this task runs.
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}
if cmp -s top.txt "$tests/expected.txt"; then
    echo 1 >"$logs/reward.txt"
else
    echo "top.txt is:"
    head -c 500 top.txt 2>&1
    echo 0 >"$logs/reward.txt"
fi
