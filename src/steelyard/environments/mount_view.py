"""Let an unprivileged sandbox reach folders that lie below one only root may enter.

root's own Python often lives in root's home, mode 0700, where the user that root's sandboxes run
as cannot go; agents that were installed there too. In a mount namespace of our own the closed
folder is covered by an empty one that leads to those folders alone, under their own paths. The
host's mounts do not change, nothing is copied, no process stays: the namespace lives as long as
the descriptor we hold.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_WAIT_S: Final = 20.0
_HOLDS: Final = ("/tmp", "/mnt", "/media", "/srv", "/opt", "/var/tmp", "/run")  # noqa: S108
"""Folders that every Linux has; one is a place to hold on, for a moment, in a namespace of ours."""
_COVER: Final = """set -e
umask 022
hold=$1 closed=$2
shift 2
mount -t tmpfs -o mode=0755,size=1m,nosuid,nodev steelyard "$hold"
n=0
for path in "$@"; do
    n=$((n + 1))
    if [ -d "$path" ]; then mkdir "$hold/$n"; else : >"$hold/$n"; fi
    mount --bind "$path" "$hold/$n"
done
while [ "$closed" ]; do
    mount -t tmpfs -o mode=0755,size=1m,nosuid,nodev steelyard "${closed%%:*}"
    closed=${closed#*:}
done
n=0
for path in "$@"; do
    n=$((n + 1))
    if [ -d "$hold/$n" ]; then mkdir -p "$path"; else mkdir -p "${path%/*}"; : >"$path"; fi
    mount --move "$hold/$n" "$path"
done
umount "$hold"
echo ready
read -r _
"""
"""Words come as arguments; nothing is spliced into the text."""


class ViewUnavailable(Exception):
    """No such namespace can be made; the message says why and what to do."""


def first_closed(path: Path) -> Path | None:
    """Find the outermost folder on the way to `path` that not every user may enter."""
    for folder in (*reversed(path.parents), path):
        if not stat.S_IMODE(folder.stat().st_mode) & stat.S_IXOTH:
            return folder
    return None


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Leave out what lies below another."""
    return sorted({path for path in paths if not any(up in paths for up in path.parents)})


class MountView:
    """A mount namespace in which every user can reach some paths."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Make it. Blocking, about 10 ms; needs root.

        Args:
            paths: folders or files, links resolved, that not every user can reach.

        Raises:
            ViewUnavailable: this machine lets even root make none.
        """
        closed_by_path = {path: first_closed(path) for path in paths}
        closed = _outermost([folder for folder in closed_by_path.values() if folder is not None])
        named = ", ".join(map(str, closed))
        remedy = f"use what every user can read, not what lies below {named}"
        unshare, nsenter = shutil.which("unshare"), shutil.which("nsenter")
        if unshare is None or nsenter is None:
            raise ViewUnavailable(f"`unshare` and `nsenter` are missing; {remedy}")
        for path, folder in closed_by_path.items():
            if folder == path:
                raise ViewUnavailable(f"{path} is closed to other users; {remedy}")
            if ":" in str(folder):
                raise ViewUnavailable(f"a closed folder with a colon in its name; {remedy}")
        self._nsenter = nsenter
        shown = _outermost(list(paths))
        hold = next(
            (folder for folder in _HOLDS if Path(folder).is_dir() and _is_apart(folder, shown)),
            None,
        )
        if hold is None:
            raise ViewUnavailable(f"there is no folder to hold on; {remedy}")
        argv = [unshare, "--mount", "--propagation", "private", "--", "/bin/sh", "-c", _COVER]
        holder = subprocess.Popen(  # noqa: S603 — a fixed script, its words as arguments
            [*argv, "sh", hold, "".join(f"{folder}:" for folder in closed), *map(str, shown)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            cwd="/",
        )
        with holder:
            try:
                if holder.stdout is None or holder.stdin is None:  # pragma: no cover - asked for
                    raise AssertionError("no pipes")
                if holder.stdout.readline() != b"ready\n":
                    said = holder.communicate(timeout=_WAIT_S)[1].decode("utf-8", "replace")
                    raise ViewUnavailable(f"{said.strip()[:300]}; {remedy}")
                self.fd = os.open(f"/proc/{holder.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            finally:
                holder.kill()

    def prefix(self) -> list[str]:
        """Give the words that start a program in it; no descriptor is passed on."""
        return [self._nsenter, f"--mount=/proc/{os.getpid()}/fd/{self.fd}", "--"]

    def close(self) -> None:
        """Let the namespace go."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _is_apart(hold: str, shown: Sequence[Path]) -> bool:
    return not any(Path(hold) == path or Path(hold) in path.parents for path in shown)
