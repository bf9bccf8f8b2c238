#!/usr/bin/env bash
# Everything that must hold before a change lands; arguments go to pytest. Needs `setup.sh`.
#
# All checks run even where one fails, so that one run shows all there is to mend.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=.venv/bin
failed=()

check() {
  local name="$1"
  shift
  printf '== %s\n' "$name"
  "$@" || failed+=("$name")
}

check "ruff check" "$bin/ruff" check .
check "ruff format" "$bin/ruff" format --check .
check "mypy" "$bin/mypy"
check "lint-imports" "$bin/lint-imports" --no-cache
check "codespell" bash -c 'git ls-files -z | xargs -0 "$0"' "$bin/codespell"
check "pytest" "$bin/pytest" -n 2 --strict-markers --strict-config "$@"

if [ "${#failed[@]}" -gt 0 ]; then
  printf 'failed: %s\n' "${failed[*]}" >&2
  exit 1
fi
