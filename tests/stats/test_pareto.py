"""Which points no other dominates: known fronts, and what must hold of any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.stats.pareto import pareto_front

KNOWN = [
    ([(1, 5), (2, 3), (4, 1), (3, 4)], [0, 1, 2]),
    ([(1, 2), (1, 2), (2, 1), (3, 3)], [0, 1, 2]),
    ([(2, 3)], [0]),
    ([(1, 4), (4, 1), (2, 2)], [0, 1, 2]),
    ([(1, 1), (5, 0.5)], [0, 1]),
    ([(1, 2, 3), (2, 1, 3), (3, 3, 1), (2, 2, 2), (3, 3, 3)], [0, 1, 2, 3]),
    ([(120, -0.97), (100, -0.95), (140, -0.99), (110, -0.95), (130, -0.96)], [0, 1, 2]),
    ([(1, 1, 1, 4), (4, 1, 1, 1), (1, 4, 1, 1), (1, 1, 4, 1), (2, 2, 2, 2)], [0, 1, 2, 3, 4]),
    ([], []),
]


@pytest.mark.parametrize(("points", "front"), KNOWN)
def test_known_fronts(points: list[tuple[float, ...]], front: list[int]) -> None:
    assert pareto_front(points) == front


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_a_point_is_left_out_only_where_one_of_the_front_beats_it(
    points: list[tuple[int, int]],
) -> None:
    front = pareto_front(points)
    for index, (x, y) in enumerate(points):
        beaten = any(points[f][0] <= x and points[f][1] <= y and points[f] != (x, y) for f in front)
        assert beaten == (index not in front)


def test_points_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        pareto_front([(1, 2), (1,)])
