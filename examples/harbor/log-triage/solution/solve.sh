#!/bin/sh
set -eu
{
    echo path,requests,errors,slowest_ms
    awk 'NF == 5 && $4 ~ /^[0-9]+$/ && $5 ~ /^[0-9]+ms$/ {
        n[$3]++
        if ($4 >= 500) e[$3]++
        if ($5 + 0 > s[$3]) s[$3] = $5 + 0
    } END { for (p in n) print p "," n[p] "," e[p] + 0 "," s[p] }' access.log | LC_ALL=C sort
} >summary.csv
