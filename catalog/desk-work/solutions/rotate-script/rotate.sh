#!/bin/sh
# usage: rotate.sh FOLDER COUNT
# Keeps the newest COUNT of the files whose names hold a date; leaves the others alone.
folder="${1:-}"
count="${2:-}"
case "$count" in
    '' | *[!0-9]*)
        echo "COUNT is a whole number" >&2
        exit 2
        ;;
esac
cd -- "$folder" 2>/dev/null || {
    echo "$folder: no such folder" >&2
    exit 2
}
pattern='[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'
for name in *; do
    case "$name" in
        *$pattern*) printf '%s %s\n' "$(printf '%s' "$name" | grep -o "$pattern" | head -n 1)" "$name" ;;
    esac
done | LC_ALL=C sort -r | tail -n "+$((count + 1))" | cut -c 12- | while IFS= read -r name; do
    rm -f -- "$name"
done
