#!/bin/sh
set -eu
mv /home/weigher /srv/weigher
sed -i 's|:/home/weigher:|:/srv/weigher:|' /etc/passwd
