"""Confidence intervals. None for what the data cannot say, never a width of 0.

SciPy is imported where it is used: it is slow to start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from steelyard.stats.student import t_quantile

if TYPE_CHECKING:
    from numpy.random import Generator

Interval = tuple[float, float]

MIN_BOOTSTRAP_VALUES: Final = 8


class TooFewValues(ValueError):
    """A bootstrap of so few values would promise more than it holds."""

    def __init__(self, n: int) -> None:
        super().__init__(f"a bootstrap needs at least {MIN_BOOTSTRAP_VALUES} values, here are {n}")


def wilson(successes: int, n: int, level: float = 0.95) -> Interval | None:
    """Score interval of a proportion (Wilson 1927), without continuity correction.

    (p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), p = successes / n.

    Args:
        successes: 0 <= successes <= n.
        n: independent trials.
        level: coverage, in (0, 1).

    Returns:
        (low, high) in [0, 1]; None where n is 0.

    Raises:
        ValueError: an argument is out of range.
    """
    _check_level(level)
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return None
    # Not SciPy's: importing it costs 0.4 s, and most runs end with this interval alone.
    z = NormalDist().inv_cdf(0.5 + level / 2)
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == n else (centre + half) / scale
    return low, high


def t_interval(
    mean: float, standard_error: float | None, degrees: int, level: float = 0.95
) -> Interval | None:
    """Student's interval, mean ± t(degrees) · standard error.

    Args:
        mean: the estimate.
        standard_error: its standard error, in the same unit.
        degrees: degrees of freedom: tasks (or clusters) less one.
        level: coverage, in (0, 1).

    Returns:
        (low, high); None where there is no error, it is 0 (degenerate), or degrees < 1.

    Raises:
        ValueError: level is out of range.
    """
    _check_level(level)
    if standard_error is None or standard_error <= 0 or degrees < 1:
        return None
    half = t_quantile(0.5 + level / 2, degrees) * standard_error
    return mean - half, mean + half


def acceleration(values: Sequence[float]) -> float | None:
    """BCa's acceleration of a mean, from the jackknife (Efron 1987, eq. 6.6).

    sum d^3 / (6 (sum d^2)^(3/2)), d the jackknife mean less each jackknife value; for a mean d
    is proportional to value - mean.

    Returns:
        The acceleration, without unit; None where all values are equal or there are none.
    """
    if not values:
        return None
    mean = fsum(values) / len(values)
    deviations = [value - mean for value in values]
    squares = fsum(d * d for d in deviations)
    if squares <= 0:
        return None
    return fsum(d**3 for d in deviations) / (6 * squares * sqrt(squares))


def bca_bootstrap(
    values: Sequence[float],
    statistic: Callable[..., Any],
    generator: Generator,
    *,
    resamples: int = 9999,
    level: float = 0.95,
) -> Interval | None:
    """Bias-corrected, accelerated bootstrap interval (Efron 1987), by SciPy.

    Args:
        values: (n,), independent; one per task or cluster.
        statistic: takes an array and `axis`, as `numpy.mean` does.
        generator: where chance comes from.
        resamples: how often to draw.
        level: coverage, in (0, 1).

    Returns:
        (low, high); None where all values are equal.

    Raises:
        TooFewValues: fewer than 8 values.
        ValueError: level is out of range.
    """
    _check_level(level)
    if len(values) < MIN_BOOTSTRAP_VALUES:
        raise TooFewValues(len(values))
    if min(values) == max(values):
        return None
    from scipy.stats import bootstrap  # type: ignore[import-untyped]

    found = bootstrap(
        (list(values),),
        statistic,
        n_resamples=resamples,
        confidence_level=level,
        method="BCa",
        vectorized=True,
        random_state=generator,
    ).confidence_interval
    return float(found.low), float(found.high)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level = {level}, must be between 0 and 1")
