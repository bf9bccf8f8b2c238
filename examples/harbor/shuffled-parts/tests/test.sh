#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

if [ "$(sha256sum <letter.txt 2>/dev/null)" = "$(sha256sum <"$tests/letter.txt")" ]; then
    echo 1.0 >"$logs/reward.txt"
else
    echo "letter.txt is not the letter"
    echo 0.0 >"$logs/reward.txt"
fi
