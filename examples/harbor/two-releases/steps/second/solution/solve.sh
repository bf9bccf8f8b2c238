#!/bin/sh
set -eu
echo 1.1.0 >VERSION
sed -i "s/^## Unreleased\$/## Unreleased\\n\\n## 1.1.0\\n\\n- $(cat change.txt)/" CHANGELOG.md
rm change.txt
