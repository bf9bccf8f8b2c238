#!/bin/sh
set -eu
mv /people/weigher /srv/weigher
sed -i 's|:/people/weigher:|:/srv/weigher:|' /etc/passwd
