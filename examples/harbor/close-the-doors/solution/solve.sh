#!/bin/sh
set -eu
find site -type d -exec chmod 755 {} +
find site -type f -exec chmod 644 {} +
find site -type f -name '*.sh' -exec chmod 755 {} +
find site/private -type d -exec chmod 700 {} +
find site/private -type f -exec chmod 600 {} +
find site/private -type f -name '*.sh' -exec chmod 700 {} +
