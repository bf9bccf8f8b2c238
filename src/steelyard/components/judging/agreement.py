"""What several verdicts make together, and how far they agree. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

Rule = Literal["majority", "mean", "median", "all"]

_SAME: Final = 1e-9
"""Means by weight are decimal fractions: 4.1 - 3.1 is one step."""


def aggregate(values: Sequence[float], rule: Rule) -> float:
    """Make one value of those of the samples.

    `majority` is the most frequent value, of equally frequent ones the lowest; `median` is the
    middle one, of an even number the mean of the middle two; `all` is the lowest.

    Args:
        values: of the valid samples, each from 0 to 1; at least one.
        rule: how.

    Raises:
        ValueError: there are none.
    """
    if not values:
        raise ValueError("no valid samples")
    if rule == "mean":
        return min(max(statistics.fmean(values), min(values)), max(values))
    if rule == "median":
        return statistics.median(values)
    if rule == "all":
        return min(values)
    counts = Counter(values)
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most)


def agreement(positions: Sequence[float], tolerance: float) -> float:
    """Give the largest share of samples that lie within `tolerance` steps of one of them.

    max over i of |{j : |p_j - p_i| <= tolerance}| / n. With a tolerance of 0 it is the share of
    the majority.

    Args:
        positions: of the valid samples, in steps of the scale; at least one.
        tolerance: in steps.

    Raises:
        ValueError: there are none.
    """
    if not positions:
        raise ValueError("no valid samples")
    within = tolerance + _SAME
    near = (sum(abs(other - one) <= within for other in positions) for one in positions)
    return max(near) / len(positions)


def is_quorate(valid: int, asked: int) -> bool:
    """True where more than half of the samples that were asked for are valid."""
    return 2 * valid > asked
