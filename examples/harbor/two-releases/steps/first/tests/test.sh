#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

. "$tests/common.sh"
check_release 1.0.0 "names what it cannot weigh" && echo 1 >"$logs/reward.txt" || echo 0 >"$logs/reward.txt"
