"""Quantiles of Student's t for whole degrees of freedom, without SciPy, which is slow to start.

For whole degrees the distribution function is a finite sum (Abramowitz and Stegun 1964, 26.7.3 and
26.7.4); its inverse is found by bisection, to the last bit but a few.
"""

from __future__ import annotations

from functools import cache
from math import atan, cos, pi, sin, sqrt
from typing import Final

MAX_DEGREES: Final = 400
"""Above, the sum is long, and SciPy is worth its start."""


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
