"""Quantiles of Student's t for whole degrees of freedom, without SciPy, which is slow to start.

For whole degrees the distribution function is a finite sum (Abramowitz and Stegun 1964, 26.7.3 and
26.7.4); its inverse is found by bisection, to the last bit but a few. For many degrees it is
expanded around the normal quantile (26.7.5).
"""

from __future__ import annotations

from functools import cache
from math import atan, cos, fsum, pi, sin, sqrt
from statistics import NormalDist
from typing import Final

MAX_DEGREES: Final = 400
"""Above, the sum is long, and its rounding grows with it."""
_EXPANSION_ERROR: Final = 1e-14
"""Of a quantile's size; less than what sums of so many terms are off by."""


def t_cdf(t: float, degrees: int) -> float:
    """Give the chance that a Student's t is at most t.

    Args:
        t: any finite number.
        degrees: of freedom, 1 or more.

    Raises:
        ValueError: degrees is below 1.
    """
    if degrees < 1:
        raise ValueError(f"{degrees} degrees of freedom")
    angle = atan(t / sqrt(degrees))
    cosine = cos(angle)
    square = cosine * cosine
    is_odd = degrees % 2 == 1
    term = cosine if is_odd else 1.0
    total = 0.0 if degrees == 1 else term
    first = 2 if is_odd else 1
    for step in range(first, degrees - 2, 2):
        term *= square * step / (step + 1)
        total += term
    if is_odd:
        return 0.5 + (angle + sin(angle) * total) / pi
    return 0.5 + sin(angle) * total / 2


@cache
def t_quantile(probability: float, degrees: int) -> float:
    """Give the t below which a Student's t lies with that chance.

    Args:
        probability: in (0, 1).
        degrees: of freedom, 1 or more.

    Raises:
        ValueError: an argument is out of range.
    """
    if not 0 < probability < 1:
        raise ValueError(f"a probability of {probability}")
    if degrees > MAX_DEGREES:
        found = _expanded(probability, degrees)
        if found is not None:
            return found
        from scipy.special import stdtrit  # type: ignore[import-untyped]

        return float(stdtrit(degrees, probability))
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < probability:
        low, high = high, high * 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle


def _expanded(probability: float, degrees: int) -> float | None:
    """Expand a quantile in 1/degrees (26.7.5); None where the terms left out could be seen."""
    x = NormalDist().inv_cdf(probability)
    terms = (
        x,
        (x**3 + x) / 4 / degrees,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96 / degrees**2,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384 / degrees**3,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160 / degrees**4,
    )
    # Each of the last is about 1/degrees of the one before: ten times that is on the safe side.
    is_exact = 10 * abs(terms[-1]) <= _EXPANSION_ERROR * degrees * abs(x)
    return fsum(terms) if is_exact else None
