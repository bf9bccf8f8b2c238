#!/bin/sh
set -eu
tr 'A-Z' 'a-z' <speech.txt | tr -cs 'a-z' '\n' | grep . | LC_ALL=C sort | uniq -c |
    awk '{ print $1, $2 }' | LC_ALL=C sort -k1,1nr -k2,2 | head -n 5 >top.txt
