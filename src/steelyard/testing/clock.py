"""A clock that stands still until it is told to go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 8, 6, 12, tzinfo=UTC)


class FakeClock:
    """A `Clock` for tests.

    Args:
        start: what the wall clock shows first.
        step_s: how much later each look at it is than the last.
    """

    def __init__(self, start: datetime = START, *, step_s: float = 0.0) -> None:
        self._start = start
        self._step_s = step_s
        self._passed_s = 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: time does not step back.
        """
        if seconds < 0:
            raise ValueError(f"time does not step back: {seconds}")
        self._passed_s += seconds

    def monotonic(self) -> float:
        """Seconds since the start."""
        self._passed_s += self._step_s
        return self._passed_s

    def now(self) -> datetime:
        """The start and what has passed since."""
        self._passed_s += self._step_s
        return self._start + timedelta(seconds=self._passed_s)
