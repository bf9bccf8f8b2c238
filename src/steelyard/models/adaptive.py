"""How many calls an endpoint is sent at once: additive increase, multiplicative decrease.

Pure: no loop, no clock. `slots.py` waits.
"""

from __future__ import annotations

from typing import Final

SHRINK: Final = 0.5


class AdaptiveLimit:
    """A limit that halves when the endpoint says 429, and grows by one a round of successes.

    As TCP does it (Chiu and Jain 1989). Calls that began before the last decrease say nothing
    about the new limit: a burst of 429s counts once.

    Args:
        maximum: where it starts, and its highest value; at least 1.
    """

    def __init__(self, maximum: int) -> None:
        if maximum < 1:
            raise ValueError("a limit is at least 1")
        self._maximum = maximum
        self._level = float(maximum)
        self._epoch = 0

    @property
    def allowed(self) -> int:
        """Calls allowed at once now, from 1 to the maximum."""
        return int(self._level)

    @property
    def epoch(self) -> int:
        """Changes with each decrease; a call remembers in which it began."""
        return self._epoch

    def succeeded(self) -> None:
        """Take note of an answer: `allowed` of them raise the limit by one."""
        if self._level < self._maximum:
            self._level = min(self._level + 1 / self._level, float(self._maximum))

    def throttled(self, epoch: int) -> None:
        """Take note of a 429 to a call that began in `epoch`."""
        if epoch == self._epoch:
            self._level = max(1.0, self._level * SHRINK)
            self._epoch += 1
