#!/bin/sh
# An agent that does what its first word says; its log is $HOME/log.jsonl. The prompt comes on stdin.
log=$HOME/log.jsonl
mode=$1
[ "$mode" = --version ] && { echo "stand-in ${STAND_IN_VERSION:-1.0.0}"; exit 0; }
say() { printf '{"say": "%s"}\n' "$1" >>"$log"; }
prompt=$(cat)
say "$mode"
work() { echo hello >note.txt; uname -s >system.txt; }
case $mode in
  work) work ;;
  ask) work; exec python3 "${0%/*}/ask.py" "$log" ;;
  stubborn) work; trap '' TERM INT HUP; while :; do sleep 1; done ;;
  flood) work; python3 "${0%/*}/flood.py" "$log" ;;
  endless) work; while :; do head -c 1000000 /dev/zero | tr '\0' x; done ;;
  daemon) work; setsid sh -c 'trap "" TERM HUP; sleep 46817' >/dev/null 2>&1 & say "left a daemon" ;;
  torn) work; printf '{"say": "half a li' >>"$log" ;;
  fail) echo "it went wrong" >&2; exit 3 ;;
  gone) exec /no/such/program ;;
  token) work; printf '{"say": "my token is %s"}\n' "$OPENAI_API_KEY" >>"$log"; echo "$OPENAI_API_KEY"; echo "$OPENAI_API_KEY" >&2 ;;
  show) work; env | sort | sed 's/[\\"]/_/g; s/.*/{"say": "&"}/' >>"$log"; printf '{"say": "prompt %s"}\n' "$(echo "$prompt" | head -c 12)" >>"$log" ;;
  home) work; ls -a "$HOME" | sed 's/.*/{"say": "&"}/' >>"$log"; touch "$HOME/left-behind" ;;
  nolog) work; rm -f "$log" ;;
esac
