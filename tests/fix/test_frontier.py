"""The verified frontier, and when nothing new comes any more."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.fix.verify.frontier import Vector, dominated_by, frontier, vector
from steelyard.fix.verify.measured import Objective, measured_of
from steelyard.fix.verify.stagnation import Round, stagnation

LATENCY = Objective("latency_ms", "min", "ms")
QUALITY = Objective("quality", "max", "fraction")
BOTH = [LATENCY, QUALITY]


def vectors(*rows: tuple[float, float]) -> list[Vector]:
    return [Vector(f"c{i}", row) for i, row in enumerate(rows)]


def test_latency_down_and_quality_up_keep_several_tradeoffs() -> None:
    found = vectors((120, 0.97), (100, 0.95), (140, 0.99), (110, 0.95), (130, 0.96))
    assert frontier(found, BOTH) == ("c0", "c1", "c2")
    assert dominated_by(found, BOTH) == {"c3": ("c1",), "c4": ("c0",)}


def test_equal_vectors_all_stay() -> None:
    assert frontier(vectors((1, 2), (1, 2), (2, 2)), BOTH) == ("c0", "c1")


def test_a_vector_needs_every_objective() -> None:
    measured = {"latency_ms": measured_of("c1", "latency_ms", [3, 1, 2])}
    assert vector("c1", measured, [LATENCY]) == Vector("c1", (2,))
    assert vector("c1", measured, BOTH) is None
    assert vector("c1", {"latency_ms": measured_of("c1", "latency_ms", [])}, [LATENCY]) is None


# -- stagnation --------------------------------------------------------------------------------

START = Vector("c0", (100, 0.95))


def rounds(*rows: list[tuple[float, float]] | None) -> list[Round]:
    """Each row: the vectors of a round; None for one that is not complete."""
    return [
        Round(number, tuple(Vector(f"r{number}.{i}", row) for i, row in enumerate(found or ())),
              found is not None)
        for number, found in enumerate(rows, 1)
    ]  # fmt: skip


def without_new(*rows: list[tuple[float, float]] | None) -> int:
    return stagnation(START, rounds(*rows), BOTH, 3).rounds_without_new


def test_three_rounds_without_a_new_vector_stop_the_loop() -> None:
    worse = [(110.0, 0.90)]
    found = stagnation(START, rounds(worse, worse, worse), BOTH, 3)
    assert found.is_reached
    assert found.last_new_round is None
    assert not stagnation(START, rounds(worse, worse), BOTH, 3).is_reached
    assert stagnation(START, rounds(worse), BOTH, 1).is_reached


def test_a_new_tradeoff_starts_the_count_again() -> None:
    assert without_new([], [], [(120.0, 0.99)]) == 0
    assert without_new([], [(90.0, 0.95)], []) == 1


def test_an_equal_patch_stays_on_the_frontier_and_resets_nothing() -> None:
    equal = [(100.0, 0.95)]
    assert without_new([(90.0, 0.95)], [(90.0, 0.95)], equal) == 2
    twice = [(90.0, 0.95), (90.0, 0.95)]
    assert without_new(twice) == 0


def test_a_new_vector_that_its_own_round_dominates_is_no_other_round() -> None:
    assert without_new([(95.0, 0.95), (90.0, 0.95)]) == 0


def test_rounds_in_which_nothing_came_through_count() -> None:
    assert without_new([], [], []) == 3


def test_rounds_that_are_not_complete_are_passed_over() -> None:
    assert without_new([], None, [], None, []) == 3
    assert without_new(None, None, None) == 0


def test_rounds_are_judged_in_the_order_they_were_proposed() -> None:
    found = rounds([(90.0, 0.95)], [(95.0, 0.95)], [(80.0, 0.95)])
    for order in (found, found[::-1], [found[1], found[2], found[0]]):
        assert stagnation(START, order, BOTH, 3).rounds_without_new == 0
        assert stagnation(START, order, BOTH, 3).last_new_round == 3
    late = rounds([(80.0, 0.95)], [(90.0, 0.95)], [(85.0, 0.95)])
    assert stagnation(START, late, BOTH, 3).rounds_without_new == 2


def test_without_a_feasible_baseline_the_first_feasible_candidate_is_new() -> None:
    assert stagnation(None, rounds([(500.0, 0.1)]), BOTH, 3).rounds_without_new == 0


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3), max_size=6))
def test_the_count_is_that_of_a_slow_model(rows: list[list[tuple[float, float]]]) -> None:
    seen = [START.values]
    count = 0
    for row in rows:
        before = set(seen)
        seen += row
        fresh = [
            v
            for v in row
            if v not in before and not any(o[0] <= v[0] and o[1] >= v[1] and o != v for o in seen)
        ]
        count = 0 if fresh else count + 1
    assert without_new(*rows) == count
