#!/bin/sh
# usage: rotate.sh FOLDER COUNT
cd $1
for name in $(ls | sort -r | tail -n +$2); do
    rm $name
done
