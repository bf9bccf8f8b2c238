#!/usr/bin/env bash
# Write requirements.lock: every version and hash for all supported Pythons and systems, no host.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! uv --version >/dev/null 2>&1; then
  echo "make lock needs uv (pip install uv)" >&2
  exit 1
fi
# Settings of this machine (indexes, folders of wheels) must not decide what everybody installs.
for name in $(compgen -e | grep -E '^(PIP|UV)_' || true); do
  case "$name" in
    *CERT* | *TIMEOUT* | UV_CACHE_DIR | UV_NATIVE_TLS) ;;
    *) unset "$name" ;;
  esac
done
export UV_SYSTEM_CERTS=true

uv pip compile pyproject.toml --quiet --no-config --universal --python-version 3.11 \
  --all-extras --group dev --group build --generate-hashes --no-strip-extras \
  --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
  "$@" --output-file requirements.lock

# What each extra adds to the package's own dependencies, for `--auto-install-dependencies`.
mkdir -p src/steelyard/_locks
python3 scripts/extras_lock.py requirements.lock src/steelyard/_locks

# All that the interpreter of `steelyard agent install terminus2` gets: the package needs a newer
# Python than ours, so it has one of its own where ours is too old.
grep -oE 'harbor==[0-9.]+' pyproject.toml | uv pip compile - --quiet --no-config --universal \
  --python-version 3.12 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
  --no-annotate "$@" --output-file src/steelyard/harnesses/terminus2/lock.txt
