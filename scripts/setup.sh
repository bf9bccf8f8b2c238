#!/usr/bin/env bash
# Make .venv from requirements.lock, hashes checked, the project itself editable and all of its
# bytecode compiled. Does nothing where the stamp says that it is up to date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONDONTWRITEBYTECODE VIRTUAL_ENV PYTHONPATH PYTHONHOME
venv=.venv
python="$venv/bin/python"
export UV_SYSTEM_CERTS=true  # a proxy or mirror may be signed by the system's own authority

digest_of_inputs() {
  cat requirements.lock pyproject.toml scripts/setup.sh | sha256sum | cut -d' ' -f1
}

# A Python of at least 3.11 that runs: a name on the path may be a shim with nothing behind it.
find_python() {
  local name
  for name in "${PYTHON:-}" python3 python3.11 python3.12 python3.13 python3.14 python; do
    [ -n "$name" ] || continue
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      "$name" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  echo "no Python of at least 3.11 was found; install one, or name it: make setup PYTHON=…" >&2
  return 1
}

with_uv() {
  if ! is_venv_usable; then
    uv venv --quiet --no-python-downloads --python "$1" --clear "$venv"
  fi
  # The lock is whole, so nothing is resolved; a mirror may serve it, the hashes decide.
  uv pip sync --quiet --python "$python" --compile-bytecode --require-hashes requirements.lock
  uv pip install --quiet --python "$python" --no-deps --no-build-isolation --editable .
}

with_pip() {
  if ! "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
      scripts/system-packages.sh "no-such-command=python3-venv"
    else
      echo "this Python cannot make a venv; install python3-venv, or uv" >&2
      return 1
    fi
  fi
  "$1" -m venv --clear "$venv"
  "$python" -m pip install --quiet --disable-pip-version-check --no-compile \
    --require-hashes --no-deps --requirement requirements.lock
  "$python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation --editable .
  "$python" -m compileall -q -j 0 "$venv/lib" >/dev/null || true  # some packages ship bad files
}

is_venv_usable() {
  [ -x "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

wanted="$(digest_of_inputs)"
if [ "${1:-}" = --digest ]; then
  echo "$wanted"
  exit 0
fi
if is_venv_usable && [ "$(cat "$venv/.stamp" 2>/dev/null)" = "$wanted" ]; then
  "$python" -m compileall -q src
  exit 0
fi

base="$(find_python)"
echo "setting up .venv with $("$base" --version 2>&1)" >&2
if uv --version >/dev/null 2>&1; then with_uv "$base"; else with_pip "$base"; fi
"$python" -m compileall -q src
echo "$wanted" >"$venv/.stamp"
