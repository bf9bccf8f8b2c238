"""What a runner is asked and what it answers; the watch that every runner keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.config.errors import Fault
from steelyard.environments.sandbox_limits import MIB
from steelyard.environments.tree_copy import used_bytes
from steelyard.fix.trial_plan import Limits
from steelyard.fix.trial_tree import TreeMethod, TrialTree

WATCH_EVERY_S: Final = 0.1
_DISK_EVERY: Final = 3
"""The disk is looked at each third time the watch comes by."""


class RunnerFault(Fault):
    """The runner could not run a program; nothing can be said of what it would have done."""


class UnknownEnd(Fault):
    """Processes of a trial do not end: what they do is unknown."""


class OverlayRefused(Fault):
    """This machine mounts no overlay here."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a program of a trial finds things."""

    tree: Path
    home: Path
    tmp: Path
    result: Path
    inputs: Path
    kit: Path


@dataclass(frozen=True, slots=True)
class Stage:
    """One program of a trial."""

    argv: tuple[str, ...]
    cwd: str
    """Within the tree."""
    variables: Mapping[str, str]
    timeout_s: float
    limits: Limits
    sees_result: bool = False
    sees_inputs: bool = True
    fds: tuple[int, ...] = ()
    """Descriptors it gets; as which numbers, `first_fd` says."""
    more_binds: tuple[tuple[Path, str, bool], ...] = ()
    """Of ours: what, under which name below `/run/steelyard`, and whether it can be written."""
    covered: tuple[tuple[str, bool], ...] = ()
    """Paths of the tree it must not see, and whether they are folders."""


@dataclass(frozen=True, slots=True)
class StageEnd:
    """How it ended; no process it started is left."""

    exit_code: int | None
    """Negative: a signal. None where we ended it."""
    stdout: bytes
    stderr: bytes
    timed_out: bool
    stopped_by: str | None
    duration_s: float
    refusal: str | None = None
    """Why it could not be started at all."""


def refused(why: str) -> StageEnd:
    """Give the end of a program that could not be started."""
    return StageEnd(127, b"", b"", False, None, 0.0, why)


class Watch:
    """Says why a program should be ended: its disk is full, or somebody wants it."""

    def __init__(self, tree: TrialTree, limits: Limits, stop: asyncio.Event) -> None:
        self._tree = tree
        self._stop = stop
        self._turn = 0
        copied = 0
        if tree.method is not TreeMethod.OVERLAY:
            entries = [one for layer in tree.layers for one in layer.manifest.entries]
            copied = sum(one.size + 4096 for one in entries)
            self._entries = 2 * len(entries)
        else:
            self._entries = 0
        self._disk_mb = limits.disk_mb
        self._bytes = limits.disk_mb * MIB + copied
        self.reason: str | None = None

    async def __call__(self) -> str | None:
        """Look; the reason to end the program, if there is one."""
        if self._stop.is_set():
            return "stopped"
        self._turn += 1
        if self._turn % _DISK_EVERY:
            return None
        return await self.last_look()

    async def last_look(self) -> str | None:
        """Look at the disk once more, after the end."""
        used = await asyncio.to_thread(
            used_bytes,
            list(self._tree.written),
            enough_bytes=self._bytes + 1,
            enough_entries=200_000 + self._entries,
        )
        return None if used <= self._bytes else f"disk: more than {self._disk_mb} MB"
