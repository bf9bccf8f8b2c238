"""Time as an argument, so that every schedule can be replayed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

MAX_WAITS: Final = 4096
"""Waits that are remembered: what is forgiven may overlap with the latest of them."""


class Clock(Protocol):
    """Gives both kinds of time."""

    def monotonic(self) -> float:
        """Seconds that never step back; for durations and deadlines."""
        ...

    def now(self) -> datetime:
        """The wall clock, in UTC; for records only."""
        ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Seconds that never step back."""
        return time.monotonic()

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return datetime.now(UTC)


_ZERO: Final = timedelta(0)
_ONE_SECOND: Final = timedelta(seconds=1)
_last_second: tuple[datetime, str] = (datetime.min.replace(tzinfo=UTC), "0001-01-01T00:00:00.")
"""A whole second, and how it is written: most moments lie in the one that was written last."""


def utc_text(moment: datetime) -> str:
    """Write a moment as ISO 8601 with milliseconds and `Z`."""
    global _last_second
    second, text = _last_second
    since = moment - second
    if not _ZERO <= since < _ONE_SECOND:
        moment = moment.astimezone(UTC)
        second = moment.replace(microsecond=0)
        text = second.isoformat()[:-6] + "."
        _last_second = (second, text)
        since = moment - second
    return f"{text}{since.microseconds // 1000:03}Z"


class Deadline(Protocol):
    """The end of a phase, which waiting moves."""

    def pause(self) -> None:
        """Take the deadline away until `resume`."""
        ...

    def resume(self) -> None:
        """Give back what was left when it was taken away."""
        ...

    def extend(self, seconds: float) -> None:
        """Move it later, also while it is taken away."""
        ...


class AgentTimer:
    """The agent's time: a stopwatch that stands still while the agent must wait.

    Waiting for slots, rate limits and request retries is not the agent's time, so whoever makes
    it wait does so inside `waiting()`, and gives back with `forgive` what turned out to be lost.
    Calls may wait and fail side by side: a moment counts once, however many it is lost to.
    """

    def __init__(
        self, clock: Clock, deadline: Deadline | None = None, *, started_s: float | None = None
    ) -> None:
        """Start the watch; `deadline` is moved by what is waited.

        Args:
            clock: what it reads.
            deadline: what waiting moves.
            started_s: when the agent's time began, monotonic; now by default.
        """
        self._clock = clock
        self._deadline = deadline
        self._started = clock.monotonic() if started_s is None else started_s
        self._waited_s = 0.0
        self._waiters = 0
        self._wait_began = 0.0
        self._waits: deque[tuple[float, float]] = deque(maxlen=MAX_WAITS)
        """Those that are over, as (began, ended): apart from each other, the latest last."""

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting so far, a wait under way included."""
        running = self._clock.monotonic() - self._wait_began if self._waiters else 0.0
        return self._waited_s + running

    @property
    def elapsed_s(self) -> float:
        """Seconds of the agent's own time so far."""
        return self._clock.monotonic() - self._started - self.waited_s

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop the watch for the duration of the block; blocks may overlap."""
        if not self._waiters:
            self._wait_began = self._clock.monotonic()
            if self._deadline is not None:
                self._deadline.pause()
        self._waiters += 1
        try:
            yield
        finally:
            self._waiters -= 1
            if not self._waiters:
                self._cover(self._wait_began, self._clock.monotonic())
                if self._deadline is not None:
                    self._deadline.resume()

    def forgive(self, seconds: float) -> None:
        """Count the time that has just passed as waited: a try that failed, and is made again.

        What of it was waited anyway, or is forgiven to another try already, is not counted twice.
        """
        began = max(self._started, self._clock.monotonic() - seconds)
        # While somebody waits the watch stands still: what is left is what came before.
        ended = self._wait_began if self._waiters else self._clock.monotonic()
        if began >= ended:
            return
        added_s = self._cover(began, ended)
        if self._deadline is not None and added_s > 0:
            self._deadline.extend(added_s)

    def _cover(self, began: float, ended: float) -> float:
        """Count a time as waited, which ends no earlier than any before; give what of it is new."""
        added_s = ended - began
        while self._waits and self._waits[-1][1] > began:
            earlier, later = self._waits.pop()
            added_s -= later - max(earlier, began)
            began = min(earlier, began)
        self._waits.append((began, ended))
        self._waited_s += added_s
        return added_s
