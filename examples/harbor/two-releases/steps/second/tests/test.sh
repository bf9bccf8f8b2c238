#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

. "$tests/common.sh"
if check_release 1.1.0 "weighs letters too" && [ ! -e change.txt ] &&
    [ "$(grep -c '^## ' CHANGELOG.md)" = 3 ] && grep -qx -- '- weighs parcels' CHANGELOG.md; then
    echo 1 >"$logs/reward.txt"
else
    echo 0 >"$logs/reward.txt"
fi
