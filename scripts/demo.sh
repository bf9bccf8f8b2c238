#!/usr/bin/env bash
# The demo: two requests over one pool against two mock models, then the ceiling and the floor.
#
# Real tasks, a real sandbox, a real endpoint on loopback; only the models are stand-ins that give
# the benchmark's references at a set accuracy. Needs `setup.sh`; no network.
#
# `demo.sh [RESULTS [FILE [OPTION …]]]`: another results folder, another orchestration, options for
# both single runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONDONTWRITEBYTECODE
steelyard=.venv/bin/steelyard
results="${1:-results/demo}"
file="${2:-examples/orchestrations/humaneval.yaml}"
options=("${@:3}")
began=$SECONDS
work="$(mktemp -d)"
pids=()

stop_models() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap stop_models EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start_model() { # NAME ACCURACY SEED
  "$steelyard" mock-model --benchmark humaneval --accuracy "$2" --seed "$3" \
    --port-file "$work/$1.port" >"$work/$1.log" 2>&1 </dev/null &
  pids+=($!)
}

url_of() { # NAME; waits until the model listens
  local port_file="$work/$1.port"
  for _ in $(seq 200); do
    if [ -s "$port_file" ]; then
      echo "http://127.0.0.1:$(cat "$port_file")/v1"
      return
    fi
    sleep 0.05
  done
  echo "the mock model $1 did not start:" >&2
  cat "$work/$1.log" >&2
  return 1
}

say() { printf '\n$ %s\n' "$*"; }

start_model steady 0.7 0
start_model flaky 0.3 1
STEADY_MODEL_URL="$(url_of steady)"
FLAKY_MODEL_URL="$(url_of flaky)"
export STEADY_MODEL_URL FLAKY_MODEL_URL

say "steelyard launch $file"
"$steelyard" launch "$file" --results-dir "$results"
say "steelyard run humaneval oracle none --env sandbox    (the ceiling)"
"$steelyard" run humaneval oracle none --env sandbox --results-dir "$results" "${options[@]}"
say "steelyard run humaneval nop none --env sandbox    (the floor)"
"$steelyard" run humaneval nop none --env sandbox --results-dir "$results" "${options[@]}"

printf '\nEvery run is a folder with its records, journal, metrics and summary:\n'
find "$results" -name summary.md -newer "$work/steady.log" -printf '  %h\n' | sort
printf 'done in %d s\n' "$((SECONDS - began))"
