#!/usr/bin/env bash
# Make sure that commands of the system are there: `system-packages.sh COMMAND=PACKAGE …`.
#
# As root with apt-get the missing packages are installed; elsewhere the script says what is
# missing and how to get it, and fails. Where nothing is missing it does nothing.
set -euo pipefail

missing=()
for pair in "$@"; do
  command -v "${pair%%=*}" >/dev/null 2>&1 || missing+=("${pair#*=}")
done
[ "${#missing[@]}" -gt 0 ] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if ! command -v apt-get >/dev/null 2>&1; then
  echo "missing: ${missing[*]} (Debian's names); install them with your system's package manager" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "missing: ${missing[*]}; install them with: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
install=(apt-get install -y -q --no-install-recommends "${missing[@]}")
echo "installing ${missing[*]} with apt-get" >&2
# A list that is there spares an update; one that is old or absent gets it, once.
if ! "${install[@]}" >/dev/null 2>&1 </dev/null; then
  apt-get update -q >/dev/null </dev/null
  "${install[@]}" >/dev/null </dev/null
fi
