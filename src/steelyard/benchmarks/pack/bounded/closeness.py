"""Whether two numbers are close, as people who write decimals reckon it. Pure.

1.1 is within 0.1 of 1, though the difference of their floats is not.
"""

from __future__ import annotations

import math
from fractions import Fraction

_DOUBT = 1e-12
"""Nearer to the limit than this, by the size of the numbers, floats cannot say."""


def is_close(
    found: float | Fraction, expected: float | Fraction, *, tolerance: float, relative: float
) -> bool:
    """True where |found - expected| <= max(tolerance, relative * |expected|), in exact decimals.

    Args:
        found: a number; a float stands for the shortest decimal that reads as it.
        expected: likewise.
        tolerance: absolute, not negative.
        relative: as a fraction of the expected number, not negative.
    """
    try:
        one, other = float(found), float(expected)
        if not (math.isfinite(one) and math.isfinite(other)):
            return one == other
        limit, apart = max(tolerance, relative * abs(other)), abs(one - other)
        doubt = _DOUBT * max(abs(one), abs(other), limit)
        if abs(apart - limit) > doubt:
            return apart < limit
    except OverflowError:  # a whole number that no float holds
        pass
    wanted = _decimal(expected)
    most = max(_decimal(tolerance), _decimal(relative) * abs(wanted))
    return abs(_decimal(found) - wanted) <= most


def _decimal(number: float | Fraction) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
