"""Which of several choices no other one beats in everything. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(points: Sequence[Sequence[float]]) -> list[int]:
    """Give the points that none dominates; less is better in each coordinate.

    A point dominates another where it is nowhere worse and somewhere better. Equal points do not
    dominate each other: duplicates all stay.

    Args:
        points: (n, objectives).

    Returns:
        Their indices, ascending.

    Raises:
        ValueError: the points differ in length.
    """
    if len({len(point) for point in points}) > 1:
        raise ValueError("points of different lengths")
    return [
        index
        for index, point in enumerate(points)
        if not any(_dominates(other, point) for other in points)
    ]


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
