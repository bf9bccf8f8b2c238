"""How fast requests go, and so how long they still take. Pure: fed with snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.components.issues import Outcome
from steelyard.engine.events import Progress
from steelyard.engine.pace import ROUGH_BELOW
from steelyard.engine.pace import Pace as Pace

FAILED: Final = (Outcome.FAILED_FATAL, Outcome.FAILED_ERROR, Outcome.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a request, or all of them together, stands."""

    name: str
    ended: int
    planned: int | None
    """None while the tasks of any of them are loading."""
    running: int
    failed: int
    elapsed_s: float
    left_s: float | None
    """At the recent pace; None where nothing is known of it, or nothing is left."""
    is_waiting: bool
    """Nothing of it runs though something is left: others hold what it needs."""
    per_s: float | None = None
    """Attempts that end in a second, of late; None where nothing is known of it."""
    is_rough: bool = False
    """So few have ended that the pace is a guess."""


class Paces:
    """The pace of each request and of all together."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s: float | None = None
        self._of: dict[str, Pace] = {}
        self._overall = Pace()
        self._last: dict[str, tuple[Progress, Standing]] = {}

    def see(self, snapshot: Sequence[Progress]) -> dict[str, Standing]:
        """Take a snapshot in; say where each request that has begun stands, by name."""
        found = {}
        for request in snapshot:
            if request.state == "waiting":
                continue
            before = self._last.get(request.name)
            if before is not None and before[0] is request:  # it has ended
                found[request.name] = before[1]
                continue
            pace = self._of.setdefault(request.name, Pace())
            fresh = request.ended - request.reused
            pace.see(request.elapsed_s, fresh, is_running=request.running > 0)
            left = max(0, (request.planned or 0) - request.ended)
            is_waiting = request.state == "running" and left > 0 and not request.running
            found[request.name] = Standing(
                name=request.name,
                ended=request.ended,
                planned=request.planned,
                running=request.running,
                failed=failed(request),
                elapsed_s=request.elapsed_s,
                left_s=None if is_waiting else pace.left_s(left),
                is_waiting=is_waiting,
                per_s=pace.per_s(),
                is_rough=pace.ended < ROUGH_BELOW,
            )
            if request.state == "ended":
                self._last[request.name] = (request, found[request.name])
        return found

    def overall(self, snapshot: Sequence[Progress]) -> Standing:
        """Take a snapshot in; say where all requests together stand.

        While some have not begun nobody knows how many attempts there are; how long they will take
        is told as if they were as large as the others.
        """
        whole = snapshot
        snapshot = [request for request in whole if request.state != "waiting"]
        unbegun = len(whole) - len(snapshot)
        elapsed_s = self._elapsed_s(snapshot, is_late=unbegun > 0)
        running = sum(request.running for request in snapshot)
        ended = sum(request.ended for request in snapshot)
        fresh = ended - sum(request.reused for request in snapshot)
        self._overall.see(elapsed_s, fresh, is_running=running > 0)
        known = [request.planned for request in snapshot if request.planned is not None]
        # A request that ended early has attempts that never start.
        left = sum(
            request.planned - request.ended
            for request in snapshot
            if request.planned is not None and request.state != "ended"
        )
        is_loading = any(r.planned is None and r.state != "ended" for r in snapshot)
        if unbegun and known:
            left += round(unbegun * sum(known) / len(known))
        return Standing(
            name="all",
            ended=ended,
            planned=None if is_loading or unbegun else sum(known),
            running=running,
            failed=sum(failed(request) for request in snapshot),
            elapsed_s=elapsed_s,
            left_s=None if is_loading and not unbegun else self._overall.left_s(left),
            is_waiting=False,
            per_s=self._overall.per_s(),
            is_rough=bool(unbegun) or self._overall.ended < ROUGH_BELOW,
        )

    def _elapsed_s(self, snapshot: Sequence[Progress], *, is_late: bool) -> float:
        """Give the launch's time: of requests that begin one after the other none has it."""
        longest_s = max((request.elapsed_s for request in snapshot), default=0.0)
        if is_late and self._began_s is None:
            self._began_s = self._clock() - longest_s
        return longest_s if self._began_s is None else self._clock() - self._began_s


def failed(progress: Progress) -> int:
    """Count what ended without a score."""
    return sum(progress.outcomes.get(outcome, 0) for outcome in FAILED)


def duration(seconds: float) -> str:
    """Write seconds so that a person sees at once how long it is: `40s`, `3m05s`, `2h46m`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 100 * 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d"
