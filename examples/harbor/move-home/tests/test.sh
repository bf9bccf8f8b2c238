#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

ok=1
no() { echo "$1"; ok=0; }
[ "$(awk -F: '$1 == "weigher" { print $6 }' /etc/passwd)" = /srv/weigher ] || no "passwd names another home"
[ "$(cat /srv/weigher/.config/unit 2>/dev/null)" = grams ] || no "hidden files were left behind"
[ "$(cat /srv/weigher/last 2>/dev/null)" = 42 ] || no "files were left behind"
[ "$(stat -c %u /srv/weigher/.config/unit 2>/dev/null)" = 4711 ] || no "the owner changed"
[ ! -e /people/weigher ] || no "the old home is still there"
echo $ok >"$logs/reward.txt"
