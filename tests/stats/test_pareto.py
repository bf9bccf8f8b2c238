"""Fronts, hypervolumes and dominance against pymoo's and moocore's values."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.stats.dominance import dominance_probability
from steelyard.stats.pareto import dominates, hypervolume, pareto_front

TABLE = [
    ([(1, 5), (2, 3), (4, 1), (3, 4)], (6, 6), [0, 1, 2], 17),
    ([(1, 2), (1, 2), (2, 1), (3, 3)], (4, 4), [0, 1, 2], 8),
    ([(2, 3)], (5, 5), [0], 6),
    ([(1, 4), (4, 1), (2, 2)], (4, 4), [0, 1, 2], 4),
    ([(1, 1), (5, 0.5)], (4, 4), [0, 1], 9),
    ([(1, 2, 3), (2, 1, 3), (3, 3, 1), (2, 2, 2), (3, 3, 3)], (4, 4, 4), [0, 1, 2, 3], 13),
    (
        [(120, -0.97), (100, -0.95), (140, -0.99), (110, -0.95), (130, -0.96)],
        (150, -0.90),
        [0, 1, 2],
        3.3,
    ),
    (
        [(1, 1, 1, 4), (4, 1, 1, 1), (1, 4, 1, 1), (1, 1, 4, 1), (2, 2, 2, 2)],
        (5, 5, 5, 5),
        [0, 1, 2, 3, 4],
        191,
    ),
]
points = st.integers(1, 3).flatmap(
    lambda size: st.lists(st.tuples(*[st.integers(0, 5)] * size), min_size=1, max_size=7)
)


@pytest.mark.parametrize(("given_points", "reference", "front", "volume"), TABLE)
def test_fronts_and_hypervolumes(
    given_points: list[tuple[float, ...]],
    reference: tuple[float, ...],
    front: list[int],
    volume: float,
) -> None:
    assert pareto_front(given_points) == front
    assert hypervolume(given_points, reference) == pytest.approx(volume)


@settings(deadline=None)
@given(points)
def test_a_hypervolume_is_the_count_of_unit_cells_that_are_dominated(
    found: list[tuple[int, ...]],
) -> None:
    size = len(found[0])
    cells = itertools.product(range(6), repeat=size)
    covered = sum(
        any(all(p <= c for p, c in zip(point, cell, strict=True)) for point in found)
        for cell in cells
    )
    assert hypervolume(found, (6,) * size) == covered


@settings(deadline=None)
@given(points)
def test_what_is_off_the_front_is_dominated_by_something_on_it(
    found: list[tuple[int, ...]],
) -> None:
    front = pareto_front(found)
    for index, point in enumerate(found):
        is_dominated = any(dominates(found[other], point) for other in front)
        assert is_dominated == (index not in front)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="lengths"):
        hypervolume([(1, 2)], (3,))
    with pytest.raises(ValueError, match="lengths"):
        pareto_front([(1, 2), (1,)])


def test_the_exact_probability_of_dominance() -> None:
    rows = list(zip([5, 5, 2, 5, 6], [0, 1, -1, 1, 1], strict=True))
    found = dominance_probability(rows)
    assert found is not None
    assert found.resamples is None
    assert Fraction(found.probability).limit_denominator(5000) == Fraction(2839, 3125)


def test_dominance_beyond_eight_pairs_is_drawn() -> None:
    rows = list(zip([5, 5, 2, 5, 6] * 2, [0, 1, -1, 1, 1] * 2, strict=True))
    found = dominance_probability(rows, np.random.default_rng(1))
    assert found is not None
    assert found.resamples == 9999
    assert 0.9 < found.probability < 1


def test_an_equal_choice_does_not_dominate() -> None:
    found = dominance_probability([(0.0, 0.0)] * 4)
    assert found is not None
    assert found.probability == 0
    assert dominance_probability([]) is None
