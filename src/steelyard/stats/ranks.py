"""Do several choices differ at all, by their ranks in each block. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan


@dataclass(frozen=True, slots=True)
class Friedman:
    """Friedman's test (1937), corrected for ties; the gate of F-race (Birattari et al. 2002)."""

    statistic: float
    """Approximately χ² with choices - 1 degrees of freedom."""
    p: float


def friedman(blocks: Sequence[Sequence[float]]) -> Friedman | None:
    """Test whether choices differ, where each block measured all of them. By SciPy.

    Args:
        blocks: (blocks, choices).

    Returns:
        None below three choices or two blocks, and where every block is one big tie.

    Raises:
        ValueError: the blocks differ in length.
    """
    if len({len(block) for block in blocks}) > 1:
        raise ValueError("blocks of different lengths")
    if len(blocks) < 2 or len(blocks[0]) < 3:
        return None
    if all(min(block) == max(block) for block in blocks):
        return None
    from scipy.stats import friedmanchisquare  # type: ignore[import-untyped]

    found = friedmanchisquare(*zip(*blocks, strict=True))
    if isnan(found.statistic):
        return None
    return Friedman(float(found.statistic), float(found.pvalue))
