"""One-sided bounds of means and of ratios. None for what the data cannot say. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, isfinite, log, sqrt

from steelyard.stats.student import t_quantile


def mean_bound(values: Sequence[float], *, upper: bool, level: float = 0.95) -> float | None:
    """Give Student's one-sided bound of a mean: mean ± t(n - 1, level) · s / sqrt(n).

    Args:
        values: (n,), independent.
        upper: the bound above; else the one below.
        level: how often such a bound holds, in (0.5, 1).

    Returns:
        The bound, in the values' unit; None below two values and where all are equal: how much
        they vary is then not known.

    Raises:
        ValueError: level is out of range, or a value is not finite.
    """
    if not 0.5 < level < 1:
        raise ValueError(f"level = {level}, must be between 0.5 and 1")
    if not all(map(isfinite, values)):
        raise ValueError("a value is not a finite number")
    n = len(values)
    if n < 2 or min(values) == max(values):
        return None
    mean = fsum(values) / n
    error = sqrt(fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = t_quantile(level, n - 1) * error
    return mean + half if upper else mean - half


def geometric_mean(values: Sequence[float]) -> float | None:
    """Give exp(mean of the logarithms); None where there are none, or one is not above 0."""
    if not values or min(values) <= 0:
        return None
    return exp(fsum(map(log, values)) / len(values))


def ratio_bound(ratios: Sequence[float], *, upper: bool, level: float = 0.95) -> float | None:
    """Give the one-sided bound of a geometric mean: `mean_bound` of the logarithms, back again.

    Args:
        ratios: (n,), above 0.
        upper: the bound above; else the one below.
        level: how often such a bound holds, in (0.5, 1).

    Returns:
        The bound, a factor; None below two ratios, where all are equal, or one is not above 0.

    Raises:
        ValueError: level is out of range, or a ratio is not finite.
    """
    if ratios and min(ratios) <= 0:
        return None
    found = mean_bound([log(ratio) for ratio in ratios], upper=upper, level=level)
    return None if found is None else exp(found)
