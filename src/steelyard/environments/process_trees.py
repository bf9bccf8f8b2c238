"""Find processes by the token in their environment or by descent, and end them.

Needs no subreaper: a process that made its own session still carries the token, unless it was
started with a cleared environment. Such a one is found as a descendant while its parents live;
`host_process` holds nothing tighter than that, and says so.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.components.environment import TOKEN_VARIABLE

_PROC = Path("/proc")
_ROUNDS = 20
"""A tree that forks while it is being killed is looked at again, up to this often."""


EXEC_VARIABLE: Final = "STEELYARD_EXEC"
"""Tells the programs of one `exec` from those that run beside it in the same session."""


@dataclass(frozen=True, slots=True)
class Found:
    """A process that carries a token."""

    pid: int
    value: str
    """Of the variable that was looked for."""
    command: str


def live_pids() -> frozenset[int]:
    """List the ids of all processes."""
    names = os.listdir(_PROC)  # noqa: PTH208 — twice an exec: no Path a process
    return frozenset(int(name) for name in names if name.isdecimal())


def variable_of(pid: int, variable: str) -> str | None:
    """Read a variable a process was started with; None without, or where it is not ours to read."""
    try:
        environ = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    marker = f"{variable}=".encode()
    for entry in environ.split(b"\0"):
        if entry.startswith(marker):
            return entry[len(marker) :].decode("utf-8", "surrogateescape")
    return None


def find_marked(
    values: Collection[str], *, variable: str = TOKEN_VARIABLE, pids: Iterable[int] | None = None
) -> list[Found]:
    """Find living processes whose variable has one of the values, this process left out."""
    wanted = frozenset(values)
    found = []
    for pid in live_pids() if pids is None else pids:
        value = variable_of(pid, variable) if pid != os.getpid() else None
        if value in wanted and value is not None and not _is_dead(pid):
            found.append(Found(pid, value, _command(pid)))
    return found


def descendants(pid: int) -> list[int]:
    """List children and their children, as far as parents still live."""
    found: list[int] = []
    ahead = [pid]
    while ahead:
        current = ahead.pop()
        with suppress(OSError):
            for thread in (_PROC / str(current) / "task").iterdir():
                text = (thread / "children").read_text()
                ahead += (children := [int(word) for word in text.split()])
                found += children
    return found


def end_marked(
    value: str, *, variable: str = TOKEN_VARIABLE, unless: frozenset[int] = frozenset()
) -> int:
    """Kill every process whose variable has the value, but those in `unless`; how many live on.

    Looks again until none is found, since a process may fork while it is being killed.
    """
    left = 0
    for turn in range(_ROUNDS):
        found = find_marked([value], variable=variable, pids=live_pids() - unless)
        left = len(found)
        if not left:
            return 0
        for process in found:
            _kill(process, variable)
        time.sleep(0.001 * (turn + 1))
    return left


def _kill(process: Found, variable: str) -> None:
    """Kill by descriptor, so that a number given to another process is never hit."""
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        if variable_of(process.pid, variable) == process.value:
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
    finally:
        os.close(fd)


def _is_dead(pid: int) -> bool:
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


def _command(pid: int) -> str:
    with suppress(OSError):
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode("utf-8", "replace").strip()[:200]
    return "?"
