"""Which of several choices no other one beats in everything. Pure."""

from __future__ import annotations

from collections.abc import Sequence

Point = Sequence[float]


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
        if not any(dominates(other, point) for other in points)
    ]


def dominates(one: Point, other: Point) -> bool:
    """True where one point is nowhere worse than another and somewhere better; less is better."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def hypervolume(points: Sequence[Point], reference: Point) -> float:
    """Give the volume that points dominate up to a reference; less is better in each coordinate.

    Zitzler and Thiele 1998, computed by slicing one objective after another (HSO, While et al.
    2006): exponential in the objectives, fine for the handful that people declare.

    Args:
        points: (n, objectives). What is not better than the reference everywhere adds nothing.
        reference: (objectives,), worse than what is to count.

    Returns:
        A volume, in the product of the objectives' units; 0 where nothing counts.

    Raises:
        ValueError: the lengths differ.
    """
    if any(len(point) != len(reference) for point in points):
        raise ValueError("points and reference of different lengths")
    inside = [
        tuple(point)
        for point in points
        if all(value < limit for value, limit in zip(point, reference, strict=True))
    ]
    return _volume(list(dict.fromkeys(inside)), tuple(reference))


def _volume(points: Sequence[tuple[float, ...]], reference: tuple[float, ...]) -> float:
    if not points:
        return 0.0
    if len(reference) == 1:
        return reference[0] - min(point[0] for point in points)
    front = [points[index] for index in pareto_front(points)]
    heights = sorted({point[-1] for point in front})
    total = 0.0
    for low, high in zip(heights, [*heights[1:], reference[-1]], strict=True):
        slice_ = list({point[:-1] for point in front if point[-1] <= low})
        total += (high - low) * _volume(slice_, reference[:-1])
    return total
