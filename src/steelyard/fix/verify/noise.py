"""What noise the baseline shows, and what this many repetitions can find in it. Pure.

Shown before a candidate is paid for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import stdev

from steelyard.fix.verify.measured import Measured, Spread, spread
from steelyard.stats.effect import minimum_detectable_effect


@dataclass(frozen=True, slots=True)
class Noise:
    """One metric's noise on the baseline."""

    metric: str
    spread: Spread
    standard_deviation: float | None
    """In the metric's unit; None below two values."""
    is_deterministic: bool
    """True where every repetition gave the same."""
    repetitions: int
    """That a comparison is to have."""
    detectable: float | None
    """Smallest difference found four times in five (two-sided 5%), in the metric's unit; None
    where the noise is not known."""
    least_p: float
    """The smallest one-sided p that so many pairs can give, 2^-repetitions."""

    @property
    def detectable_share(self) -> float | None:
        """`detectable` as a share of the median; None where that is 0."""
        if self.detectable is None or self.spread.median == 0:
            return None
        return self.detectable / abs(self.spread.median)


def noise(baseline: Measured, repetitions: int) -> Noise | None:
    """Give a metric's noise and the smallest effect that can be found in it.

    The differences of pairs are taken to vary by sqrt(2) times the baseline's standard deviation,
    as if seeds had no effect of their own: where they have one, pairs find smaller effects.

    Args:
        baseline: its samples.
        repetitions: pairs that a comparison is to have.

    Returns:
        None where nothing was measured.
    """
    seen = spread(baseline)
    if seen is None:
        return None
    deviation = stdev(baseline.values) if seen.count > 1 else None
    effect = minimum_detectable_effect(repetitions)
    is_unknown = baseline.is_deterministic or deviation is None or effect is None
    return Noise(
        metric=baseline.metric,
        spread=seen,
        standard_deviation=deviation,
        is_deterministic=baseline.is_deterministic,
        repetitions=repetitions,
        detectable=None if is_unknown else sqrt(2) * (deviation or 0.0) * (effect or 0.0),
        least_p=0.5**repetitions,
    )
