"""Let an unprivileged sandbox reach a folder that lies below one only root may enter.

root's own Python often lives in root's home, mode 0700, where the user that root's sandboxes run
as cannot go. In a mount namespace of our own the closed folder is covered by an empty one that
leads to that folder alone, under its own path. The host's mounts do not change, nothing is
copied, no process stays: the namespace lives as long as the descriptor we hold.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final

_WAIT_S: Final = 20.0
_COVER: Final = """set -e
umask 022
mount --bind "$2" /tmp
mount -t tmpfs -o mode=0755,size=1m,nosuid,nodev steelyard "$1"
mkdir -p "$2"
mount --move /tmp "$2"
echo ready
read -r _
"""
"""Words come as arguments; nothing is spliced into the text. /tmp is only a place to hold on."""


class ViewUnavailable(Exception):
    """No such namespace can be made; the message says why and what to do."""


def first_closed(path: Path) -> Path | None:
    """Find the outermost folder on the way to `path` that not every user may enter."""
    for folder in (*reversed(path.parents), path):
        if not stat.S_IMODE(folder.stat().st_mode) & stat.S_IXOTH:
            return folder
    return None


class MountView:
    """A mount namespace in which every user can reach `path`."""

    def __init__(self, path: Path, closed: Path) -> None:
        """Make it. Blocking, about 10 ms; needs root.

        Raises:
            ViewUnavailable: this machine lets even root make none.
        """
        unshare, nsenter = shutil.which("unshare"), shutil.which("nsenter")
        remedy = f"use a Python that every user can read, not one below {closed}"
        if unshare is None or nsenter is None:
            raise ViewUnavailable(f"`unshare` and `nsenter` are missing; {remedy}")
        if closed == path:
            raise ViewUnavailable(f"{path} is closed to other users; {remedy}")
        self._nsenter = nsenter
        argv = [unshare, "--mount", "--propagation", "private", "--", "/bin/sh", "-c", _COVER]
        holder = subprocess.Popen(  # noqa: S603 — a fixed script, its words as arguments
            [*argv, "sh", str(closed), str(path)],
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
