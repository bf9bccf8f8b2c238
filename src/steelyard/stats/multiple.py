"""p-values of several comparisons, adjusted so that looking often does not find by chance. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust for the chance of any false finding among them (Holm 1979).

    In order of size, the i-th of m becomes max over j <= i of (m - j + 1) p_j, at most 1.

    Args:
        p_values: (m,), in [0, 1].

    Returns:
        (m,), in the order given.

    Raises:
        ValueError: a p is out of range.
    """
    _check(p_values)
    m = len(p_values)
    found = [0.0] * m
    highest = 0.0
    for rank, index in enumerate(sorted(range(m), key=p_values.__getitem__)):
        highest = max(highest, (m - rank) * p_values[index])
        found[index] = min(1.0, highest)
    return found


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjust for the share of false findings among those found (Benjamini and Hochberg 1995).

    In order of size, the i-th of m becomes min over j >= i of m p_j / j; by SciPy.

    Args:
        p_values: (m,), in [0, 1].

    Returns:
        (m,), in the order given.

    Raises:
        ValueError: a p is out of range.
    """
    _check(p_values)
    if not p_values:
        return []
    from scipy.stats import false_discovery_control  # type: ignore[import-untyped]

    return [float(p) for p in false_discovery_control(list(p_values), method="bh")]


def _check(p_values: Sequence[float]) -> None:
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"p = {p}, must be in [0, 1]")
