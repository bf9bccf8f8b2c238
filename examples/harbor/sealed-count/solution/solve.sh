#!/bin/sh
set -eu
mkdir -p out
cat data/*.csv >out/all.tmp
awk -F, '!/^#/ { total += $2 } END { print total }' out/all.tmp >out/total.txt
