"""Quantiles of what was seen; they describe and estimate nothing."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor


def quantile(ordered: Sequence[float], q: float) -> float | None:
    """Give a quantile by linear interpolation (Hyndman and Fan 1996, type 7; NumPy's default).

    Args:
        ordered: values, lowest first.
        q: in [0, 1].

    Returns:
        The quantile, in the values' unit; None where there are none.

    Raises:
        ValueError: q is out of range.
    """
    if not 0 <= q <= 1:
        raise ValueError(f"q = {q}, must be in [0, 1]")
    if not ordered:
        return None
    position = q * (len(ordered) - 1)
    below = floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
