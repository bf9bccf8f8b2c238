"""Time as an argument, so that every schedule can be replayed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol


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


def utc_text(moment: datetime) -> str:
    """Write a moment as ISO 8601 with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


class Deadline(Protocol):
    """The end of a phase, which waiting moves."""

    def pause(self) -> None:
        """Take the deadline away until `resume`."""
        ...

    def resume(self) -> None:
        """Give back what was left when it was taken away."""
        ...

    def extend(self, seconds: float) -> None:
        """Move it later."""
        ...


class AgentTimer:
    """The agent's time: a stopwatch that stands still while the agent must wait.

    Waiting for slots, rate limits and request retries is not the agent's time, so whoever makes
    it wait does so inside `waiting()`, and gives back with `forgive` what turned out to be lost.
    """

    def __init__(self, clock: Clock, deadline: Deadline | None = None) -> None:
        """Start the watch; `deadline` is moved by what is waited."""
        self._clock = clock
        self._deadline = deadline
        self._started = clock.monotonic()
        self._waited_s = 0.0
        self._waiters = 0
        self._wait_began = 0.0

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
                self._waited_s += self._clock.monotonic() - self._wait_began
                if self._deadline is not None:
                    self._deadline.resume()

    def forgive(self, seconds: float) -> None:
        """Count time that has passed as waited: a try that failed and is made again.

        Not inside `waiting()`, where the watch stands still already.
        """
        if self._waiters:
            return
        self._waited_s += seconds
        if self._deadline is not None:
            self._deadline.extend(seconds)
