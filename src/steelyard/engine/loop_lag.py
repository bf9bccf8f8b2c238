"""Measure how late the event loop wakes: the 99th percentile is kept with every launch."""

from __future__ import annotations

import bisect
from typing import Final

_BUCKETS_MS: Final = tuple(round(0.1 * 1.25**step, 3) for step in range(60))
"""Upper bounds from 0.1 ms to a minute, each a quarter above the last."""


class LoopLag:
    """A histogram of lags; its memory does not grow."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BUCKETS_MS) + 1)
        self._total = 0

    def add(self, lag_s: float) -> None:
        """Count one wake-up that came `lag_s` late."""
        self._counts[bisect.bisect_left(_BUCKETS_MS, lag_s * 1000)] += 1
        self._total += 1

    def quantile_ms(self, share: float) -> float | None:
        """Give the upper bound of the bucket that holds the quantile; None before any wake-up."""
        if not self._total:
            return None
        wanted, seen = share * self._total, 0
        for bound, count in zip((*_BUCKETS_MS, float("inf")), self._counts, strict=True):
            seen += count
            if seen >= wanted:
                return bound
        return None
