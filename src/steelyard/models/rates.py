"""Requests and tokens a minute, as token buckets. Pure: the time comes in, the wait goes out."""

from __future__ import annotations

from typing import Final

REQUEST_BURST_S: Final = 1.0
TOKEN_BURST_S: Final = 10.0


class Bucket:
    """Lets `per_minute` units through in a minute, a little ahead at most.

    Each `take` is granted a moment of its own, so that those who wait go in order. In any minute
    at most `per_minute` plus one burst of units begin, and one take larger than the burst.

    Args:
        per_minute: units a minute, above 0.
        burst_s: seconds' worth of units that may go at once; always at least one unit.
        now_s: the present moment, monotonic seconds.
    """

    def __init__(self, per_minute: float, *, burst_s: float, now_s: float) -> None:
        self._per_s = per_minute / 60
        self._capacity = max(1.0, self._per_s * burst_s)
        self._level = self._capacity
        self._at_s = now_s

    def take(self, units: float, now_s: float) -> float:
        """Reserve units and give the seconds to wait before they may be used.

        More than a whole bucket is let through when the bucket is full, and paid back after.
        """
        self._refill(now_s)
        missing = min(units, self._capacity) - self._level
        self._level -= units
        return max(0.0, missing / self._per_s)

    def settle(self, extra_units: float, now_s: float) -> None:
        """Correct a reservation: positive where more was used than reserved."""
        self._refill(now_s)
        self._level = min(self._capacity, self._level - extra_units)

    @property
    def state(self) -> tuple[float, float]:
        """The level, and the moment (monotonic seconds) at which it was that."""
        return self._level, self._at_s

    def restore(self, level: float, at_s: float) -> None:
        """Go on from another's state."""
        self._level, self._at_s = min(level, self._capacity), at_s

    def _refill(self, now_s: float) -> None:
        passed = max(0.0, now_s - self._at_s)
        self._at_s = max(now_s, self._at_s)
        self._level = min(self._capacity, self._level + passed * self._per_s)
