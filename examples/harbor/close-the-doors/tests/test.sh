#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

mode() { stat -c %a "$1" 2>/dev/null; }
bad=0
check() { [ "$(mode "$1")" = "$2" ] || { echo "$1 is $(mode "$1"), not $2"; bad=1; }; }
check site 755
check site/bin 755
check site/static 755
check site/index.html 644
check "site/static/my style.css" 644
check site/bin/start.sh 755
check site/private 700
check site/private/old 700
check site/private/key.pem 600
check site/private/old/key.pem 600
check site/private/rotate.sh 700
[ "$(cat site/private/key.pem 2>/dev/null)" = "not a key" ] || { echo "the key changed"; bad=1; }
# As they came, private files were open: an agent that does nothing fails.
echo $((1 - bad)) >"$logs/reward.txt"
