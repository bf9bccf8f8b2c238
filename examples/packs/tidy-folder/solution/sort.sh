# Moves every file with an ending, counts them.
set -eu
mkdir -p "$1s"
count=0
for file in inbox/*"$2"; do
  mv "$file" "$1s/"
  count=$((count + 1))
done
rm inbox/notes.tmp sort.sh
printf '{"moved": %d, "kind": "%s"}\n' "$count" "$1" > report.json
