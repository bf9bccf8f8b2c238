"""Do values rise or fall with time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

MIN_VALUES: Final = 4
"""Below four values no order is rare enough to say anything."""


@dataclass(frozen=True, slots=True)
class Kendall:
    """Kendall's rank correlation (1938), τ-b."""

    tau: float
    """From -1 to 1."""
    p: float
    """Two-sided; exact where there are no ties."""


def kendall(times: Sequence[float], values: Sequence[float]) -> Kendall | None:
    """Correlate the ranks of two rows. By SciPy.

    Args:
        times: (n,).
        values: (n,).

    Returns:
        None below four values, and where either row is all one.

    Raises:
        ValueError: the lengths differ.
    """
    if len(times) != len(values):
        raise ValueError(f"{len(times)} times, {len(values)} values")
    if len(times) < MIN_VALUES or len(set(times)) < 2 or len(set(values)) < 2:
        return None
    from scipy.stats import kendalltau  # type: ignore[import-untyped]

    found = kendalltau(times, values)
    return None if isnan(found.statistic) else Kendall(float(found.statistic), float(found.pvalue))
