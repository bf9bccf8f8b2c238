#!/bin/sh
set -eu
sums=$(mktemp)
sha256sum parts/* >"$sums"
sed '$d' order.sha256 | while read -r sum _; do
    file=$(awk -v s="$sum" '$1 == s { print $2; exit }' "$sums")
    cat "$file"
done >letters.tar.gz
[ "$(sha256sum <letters.tar.gz | cut -d' ' -f1)" = "$(tail -n 1 order.sha256 | cut -d' ' -f1)" ]
mkdir -p unpacked
tar -xzf letters.tar.gz -C unpacked
cat unpacked/*/to-* >letter.txt
rm -rf "$sums"
