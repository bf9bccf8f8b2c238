#!/bin/sh
# backup.sh SOURCE TARGET: copies every file, says how many.
count=0
for file in $(cd $1; find -type f); do
    mkdir -p $2/$(dirname $file)
    cp $1/$file $2/$file
    count=$((count + 1))
done
echo $count
