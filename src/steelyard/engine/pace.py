"""How fast attempts end of late, and so how long the rest still takes. Pure: fed with snapshots."""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_S: Final = 60.0
"""What lies further back says nothing about the pace of now,"""
WINDOW_ENDS: Final = 10
"""unless fewer attempts than these have ended since."""
ROUGH_BELOW: Final = 5
"""With fewer ended attempts a pace is a guess."""


class Pace:
    """Attempts ended over the time in which something ran, in a recent window."""

    def __init__(self) -> None:
        self._ends: deque[tuple[float, int]] = deque([(0.0, 0)])
        self._active_s = 0.0
        self._elapsed_s = 0.0

    def see(self, elapsed_s: float, fresh: int, *, is_running: bool) -> None:
        """Take a snapshot in: how many attempts have ended that were not reused."""
        if is_running or fresh != self._ends[-1][1]:
            self._active_s += max(0.0, elapsed_s - self._elapsed_s)
        self._elapsed_s = elapsed_s
        if fresh != self._ends[-1][1]:
            self._ends.append((self._active_s, fresh))
        while len(self._ends) > 2 and self._is_past(self._ends[1]):
            self._ends.popleft()

    @property
    def ended(self) -> int:
        """Attempts that the pace is taken from."""
        return self._ends[-1][1] - self._ends[0][1]

    def per_s(self) -> float | None:
        """Attempts that end in a second; None before anything has ended."""
        active_s = self._active_s - self._ends[0][0]
        return self.ended / active_s if self.ended > 0 and active_s > 0 else None

    def left_s(self, left: int) -> float | None:
        """Seconds for so many more; None before anything has ended."""
        if self.ended <= 0 or left <= 0:
            return None
        return (self._active_s - self._ends[0][0]) / self.ended * left

    def _is_past(self, end: tuple[float, int]) -> bool:
        at_s, fresh = end
        return self._active_s - at_s >= WINDOW_S and self._ends[-1][1] - fresh >= WINDOW_ENDS
