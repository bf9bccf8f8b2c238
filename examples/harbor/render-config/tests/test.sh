#!/bin/sh
logs=${STEELYARD_LOGS_DIR:-/logs}/verifier
tests=${STEELYARD_TESTS_DIR:-/tests}

cat >"$logs/expected" <<EOT
# what the scale listens on
listen = $SCALE_HOST:$SCALE_PORT
unit = $SCALE_UNIT
owner = $SCALE_OWNER
mail = scale@example
EOT
if [ -n "$SCALE_UNIT" ] && cmp -s service.conf "$logs/expected"; then
    echo '{"reward": 1}' >"$logs/reward.json"
else
    diff service.conf "$logs/expected"
    echo '{"reward": 0}' >"$logs/reward.json"
fi
