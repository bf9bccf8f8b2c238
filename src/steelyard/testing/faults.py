"""Plans for what goes wrong with the writes of a run: end the process, fail the disk, slow it.

Every plan is a `Faults` and is handed to whatever writes. Plans count for themselves, so one
object serves one run.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from steelyard.results.files import Faults, NoFaults, WritePoint


class Side(StrEnum):
    """When, around a write, the process ends."""

    BEFORE = "before"
    DURING = "during"
    """Half of the bytes are out. Only where bytes are written."""
    AFTER = "after"


CARRIES_BYTES = frozenset(
    {
        WritePoint.RUN_DOCUMENT_WRITTEN,
        WritePoint.ATTEMPTS_APPENDED,
        WritePoint.EVENTS_APPENDED,
        WritePoint.PROGRESS_WRITTEN,
        WritePoint.METRICS_WRITTEN,
        WritePoint.SUMMARY_WRITTEN,
        WritePoint.ATTEMPT_FILE_WRITTEN,
        WritePoint.STEPS_APPENDED,
        WritePoint.CHECKPOINT_WRITTEN,
        WritePoint.SET_DOCUMENT_WRITTEN,
        WritePoint.SUBMISSION_WRITTEN,
    }
)
"""The points at which `Side.DURING` means something."""


@dataclass(slots=True)
class KillAt(NoFaults):
    """Ends this very process with SIGKILL at the nth time a point is reached."""

    point: WritePoint
    nth: int = 1
    """Counted from 1."""
    side: Side = Side.BEFORE
    _seen: int = field(default=0, init=False)

    def before(self, point: WritePoint) -> None:
        """Count, and perhaps end."""
        if point is self.point:
            self._seen += 1
            if self.side is Side.BEFORE:
                self._end()

    def after(self, point: WritePoint) -> None:
        """Perhaps end."""
        if point is self.point and self.side is Side.AFTER:
            self._end()

    def write(self, point: WritePoint, fd: int, data: bytes | memoryview) -> int:
        """Write; perhaps half of it, then end."""
        if point is self.point and self.side is Side.DURING and self._seen == self.nth:
            os.write(fd, data[: len(data) // 2])
            self._end()
        return os.write(fd, data)

    def _end(self) -> None:
        if self._seen == self.nth:
            os.kill(os.getpid(), signal.SIGKILL)

    def __str__(self) -> str:
        return f"{self.point}:{self.nth}:{self.side}"

    @classmethod
    def parse(cls, text: str) -> KillAt:
        """Read the form that `str` gives, as in `events_appended:2:after`."""
        point, nth, side = text.split(":")
        return cls(WritePoint(point), int(nth), Side(side))


@dataclass(slots=True)
class FailAt(NoFaults):
    """Fails the disk from the nth time a point is reached, with so many bytes still taken."""

    point: WritePoint
    nth: int = 1
    error: int = errno.ENOSPC
    bytes_taken: int | None = None
    """None: the call fails at once. A number: that many bytes of the nth write go out, and the
    rest fails."""
    times: int = 1 << 30
    """How often it fails; then the disk works again."""
    seen: Counter[WritePoint] = field(default_factory=Counter, init=False)
    """How often each point was reached."""
    _has_taken: bool = field(default=False, init=False)

    def before(self, point: WritePoint) -> None:
        """Count, and perhaps fail."""
        self.seen[point] += 1
        if point is self.point and self._fails() and self.bytes_taken is None:
            raise OSError(self.error, os.strerror(self.error))

    def write(self, point: WritePoint, fd: int, data: bytes | memoryview) -> int:
        """Write, fail, or write in part and fail the next time."""
        if point is not self.point or not self._fails() or self.bytes_taken is None:
            return os.write(fd, data)
        if self._has_taken or self.bytes_taken == 0:
            raise OSError(self.error, os.strerror(self.error))
        self._has_taken = True
        return os.write(fd, data[: self.bytes_taken])

    def _fails(self) -> bool:
        return self.nth <= self.seen[self.point] < self.nth + self.times


@dataclass(frozen=True, slots=True)
class SlowSync(NoFaults):
    """Makes every sync of a journal take longer. Sleeps in the syncer's thread."""

    seconds: float

    def before(self, point: WritePoint) -> None:
        """Sleep before a journal is synced."""
        if point in (WritePoint.ATTEMPTS_SYNCED, WritePoint.EVENTS_SYNCED):
            time.sleep(self.seconds)


class All:
    """Several plans at once, asked in order; the first that is about a write does it."""

    def __init__(self, *plans: Faults) -> None:
        self._plans = plans

    def before(self, point: WritePoint) -> None:
        """Tell every plan."""
        for plan in self._plans:
            plan.before(point)

    def after(self, point: WritePoint) -> None:
        """Tell every plan."""
        for plan in self._plans:
            plan.after(point)

    def write(self, point: WritePoint, fd: int, data: bytes | memoryview) -> int:
        """Let the first plan for this point write."""
        for plan in self._plans:
            if getattr(plan, "point", None) is point:
                return plan.write(point, fd, data)
        return os.write(fd, data)


def kill_plans(point: WritePoint, nth: int = 1) -> Iterator[KillAt]:
    """Give a plan for each side of a point."""
    for side in Side:
        if side is not Side.DURING or point in CARRIES_BYTES:
            yield KillAt(point, nth, side)
