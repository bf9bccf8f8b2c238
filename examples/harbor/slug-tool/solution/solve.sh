#!/bin/sh
set -eu
cat >slug <<'SCRIPT'
#!/bin/sh
LC_ALL=C tr 'A-Z' 'a-z' | LC_ALL=C sed -e 's/[^a-z0-9][^a-z0-9]*/-/g' -e 's/^-//' -e 's/-$//' -e 's/^$/untitled/'
SCRIPT
chmod +x slug
