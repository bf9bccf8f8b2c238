"""The standard error of a mean whose values come in clusters.

Answers to questions about one text, or attempts at one task, tell less than as many independent
ones. Formulas as in Miller 2024 (arXiv 2411.00640), with the small-sample factor of CR1.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt


@dataclass(frozen=True, slots=True)
class ClusteredError:
    """The standard errors of one mean; None where the data cannot say."""

    mean: float
    values: int
    clusters: int
    naive: float | None
    """sqrt(sum (x - m)^2 / (n - 1) / n): as if all were independent. None below 2 values."""
    cr0: float | None
    """sqrt(sum over clusters of (sum (x - m))^2) / n. None below 2 clusters."""
    cr1: float | None
    """cr0 * sqrt(G / (G - 1)); with one value a cluster this is the naive one."""


def clustered_error(values: Sequence[float], clusters: Sequence[Hashable]) -> ClusteredError | None:
    """Compute the mean and its standard errors.

    Args:
        values: (n,).
        clusters: (n,), which cluster each value belongs to.

    Returns:
        None where there are no values.

    Raises:
        ValueError: the lengths differ.
    """
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values, {len(clusters)} clusters")
    n = len(values)
    if n == 0:
        return None
    mean = fsum(values) / n
    deviations = [value - mean for value in values]
    squares = fsum(d * d for d in deviations)
    naive = sqrt(squares / (n - 1) / n) if n > 1 else None
    count = len(set(clusters))
    if count < 2:
        return ClusteredError(mean, n, count, naive, None, None)
    # The usual case, one value a cluster, needs no grouping: it saves the memory of 100,000 lists.
    cr0 = sqrt(squares if count == n else _squared_sums(deviations, clusters)) / n
    return ClusteredError(mean, n, count, naive, cr0, cr0 * sqrt(count / (count - 1)))


def _squared_sums(deviations: Sequence[float], clusters: Sequence[Hashable]) -> float:
    groups: dict[Hashable, list[float]] = {}
    for deviation, cluster in zip(deviations, clusters, strict=True):
        groups.setdefault(cluster, []).append(deviation)
    return fsum(fsum(group) ** 2 for group in groups.values())
