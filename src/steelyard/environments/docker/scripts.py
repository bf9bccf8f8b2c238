"""The few lines of shell that run inside a container: around a program, and to end programs.

POSIX alone: any `/bin/sh` reads them, and no other tool need be there.
"""

from __future__ import annotations

from typing import Final

START: Final = r"""
n=$1 d=$2 f=$3; shift 3
exec 3>&2 2>/dev/null
c=full o=0
trap 'printf "\036%s\036" "$n"; printf "\036%s\036%s %s\n" "$n" "$c" "$o" >&3
read -r e && { [ $c = full ] || cat >/dev/null; while read -r e; do :; done; }; exit 0' EXIT
printf '\036%s\036%s\n' "$n" "$$" >&3
if cd "$d"; then
  [ "$f" = 0 ] || ulimit -f "$f"
  (exec 2>&3 3>&-; exec "$@")
  c=$?
else
  printf '%s: no such folder\n' "$d" >&3
  c=127
fi
for e in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$e" ] && while read -r k v; do [ "$k" = oom_kill ] && o=$v; done <"$e"
done
"""
"""`sh -c START sh NONCE FOLDER BLOCKS PROGRAM …`: POSIX, builtins alone.

A shell that cannot fork, because the container's processes are used up, ends with `full`.

Last it reads what input the program left. podman's `conmon` else ends with bytes in its socket,
the kernel resets the connection, and what the program said, the marks with it, is dropped
(containers/podman #3302). It ends with 0 whatever the program did, or with 2 where even `cat` could
not be forked: `check_end` tells by that what a lost stream meant.
"""

END_TREE: Final = r"""
exec 2>/dev/null
root=$1 mark=$2 self=$$
scan() {
  tree=" $root "; grown=1
  while [ $grown = 1 ]; do
    grown=0
    for f in /proc/[0-9]*; do
      p=${f#/proc/}
      case "$tree" in *" $p "*) continue;; esac
      read -r line <"$f/stat" || continue
      rest=${line##*) }; rest=${rest#* }; parent=${rest%% *}
      case "$tree" in *" $parent "*) tree="$tree$p "; grown=1;; esac
    done
  done
  for f in /proc/[0-9]*; do
    p=${f#/proc/}
    case "$tree" in *" $p "*) continue;; esac
    while line=; IFS= read -r line || [ "$line" ]; do
      case "$line" in *"$mark"*) tree="$tree$p "; break;; esac
    done <"$f/environ"
  done
}
alone() {
  # $self's own children are the lines above; they have ended.
  left=
  for p in $tree; do
    [ "$p" = "$self" ] || [ "$p" = 1 ] || [ ! -d "/proc/$p" ] || left="$left $p"
  done
}
for round in 1 2 3 4 5 6 7 8; do
  scan; alone
  [ -n "$left" ] || break
  kill -STOP $left; kill -KILL $left
done
:
"""
"""`sh -c END_TREE sh PID MARK`: ends a program, all below it, and what carries its mark.

Builtins alone: it works where nothing can be forked, and without `grep`, which in busybox sees no
further than the first variable.
"""

END_ALL: Final = r"""
exec 2>/dev/null
for round in 1 2 3 4 5 6 7 8; do
  left=
  for f in /proc/[0-9]*; do
    p=${f#/proc/}
    [ "$p" = 1 ] || [ "$p" = $$ ] || left="$left $p"
  done
  [ -n "$left" ] || break
  kill -KILL $left
done
:
"""
"""Ends every process of a container but its first."""
