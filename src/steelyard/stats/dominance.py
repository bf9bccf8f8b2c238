"""How sure is it that one choice dominates another: by resampling their paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from numpy.random import Generator

MAX_EXACT_PAIRS: Final = 8
"""Up to here every resample is counted; there are n^n, in C(2n - 1, n) different ones."""
RESAMPLES: Final = 9_999
_SLACK: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Dominance:
    """The share of resamples whose means are nowhere worse and somewhere better."""

    probability: float
    resamples: int | None
    """None where every resample was counted."""


def dominance_probability(
    improvements: Sequence[Sequence[float]], generator: Generator | None = None
) -> Dominance | None:
    """Give the bootstrap probability that a choice dominates the one it is paired with.

    Pairs are drawn whole, so that objectives keep what they have in common (Efron 1979); up to
    eight pairs the whole bootstrap distribution is counted.

    Args:
        improvements: (pairs, objectives), more is better.
        generator: where chance comes from beyond eight pairs; `default_rng(0)` by default.

    Returns:
        None where there are no pairs.

    Raises:
        ValueError: the rows differ in length.
    """
    if len({len(row) for row in improvements}) > 1:
        raise ValueError("pairs with different objectives")
    n = len(improvements)
    if n == 0:
        return None
    if n <= MAX_EXACT_PAIRS:
        hits = 0
        for counts in _compositions(n, n):
            sums = [
                sum(c * row[j] for c, row in zip(counts, improvements, strict=True))
                for j in range(len(improvements[0]))
            ]
            if _dominates(sums, improvements):
                ways = factorial(n)
                for count in counts:
                    ways //= factorial(count)
                hits += ways
        return Dominance(hits / n**n, None)
    import numpy as np

    rows = np.asarray(improvements, dtype=float)
    drawn = (generator or np.random.default_rng(0)).integers(0, n, size=(RESAMPLES, n))
    sums = rows[drawn].sum(axis=1)
    slack = _SLACK * np.abs(rows).sum(axis=0)
    is_hit = (sums >= -slack).all(axis=1) & (sums > slack).any(axis=1)
    return Dominance(float(is_hit.mean()), RESAMPLES)


def _dominates(sums: Sequence[float], rows: Sequence[Sequence[float]]) -> bool:
    slack = [_SLACK * sum(abs(row[j]) for row in rows) for j in range(len(sums))]
    pairs = list(zip(sums, slack, strict=True))
    return all(value >= -least for value, least in pairs) and any(
        value > least for value, least in pairs
    )


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
