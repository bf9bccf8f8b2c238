#!/bin/sh
set -eu
echo 1.0.0 >VERSION
sed -i 's/^## Unreleased$/## Unreleased\n\n## 1.0.0/' CHANGELOG.md
