#!/bin/sh
set -eu
[ "$RENDERER" = sed ]
cp service.conf.in service.conf
for name in $(grep -o '@[A-Z_]*@' service.conf.in | tr -d @ | sort -u); do
    value=$(printenv "$name" || true)
    if [ -n "$value" ]; then
        sed -i "s|@$name@|$value|g" service.conf
    else
        sed -i "/@$name@/d" service.conf
    fi
done
