"""How a run stands: qualified, on the frontier, eligible, stagnated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from steelyard.fix.board import Board, Entry, board, invalidated
from steelyard.fix.policies import Policy, Terms, decide
from steelyard.fix.verify.constraints import Constraint
from steelyard.fix.verify.measured import Objective, measured_of
from steelyard.fix.verify.qualification import ReviewState

OBJECTIVES = (Objective("latency_ms", "min"), Objective("quality", "max"))
RULES = (
    Constraint("quality", "gte", 0.9),
    Constraint("latency_ms", "lte", 1.5, "baseline_ratio"),
)


def entry(name: str, latency: float, quality: float, **changes: Any) -> Entry:
    found = Entry(
        candidate=name,
        parent="c0",
        round=int(name[1:]),
        measured={
            "latency_ms": measured_of(name, "latency_ms", [latency - 1, latency, latency + 1]),
            "quality": measured_of(name, "quality", [quality] * 3),
        },
        completed=3,
        review=ReviewState.ACCEPTED,
        is_at_end=True,
    )
    return replace(found, **changes)


BASE = entry("c0", 100, 0.95, parent=None)


def stands(*entries: Entry) -> Board:
    return board(
        entries, objectives=OBJECTIVES, constraints=RULES, repetitions=3, stagnation_rounds=3
    )


def test_tradeoffs_stay_and_what_is_dominated_says_by_whom() -> None:
    found = stands(BASE, entry("c1", 80, 0.95), entry("c2", 120, 0.99), entry("c3", 90, 0.94))
    assert found.frontier == ("c1", "c2")
    assert found.place("c0").dominated_by == ("c1",)
    assert found.place("c3").dominated_by == ("c1",)
    assert [one.candidate for one in found.eligible] == ["c0", "c1", "c2", "c3"]
    assert found.eligible[1].values == {"latency_ms": 80, "quality": 0.95}
    with pytest.raises(KeyError):
        found.place("c9")


@pytest.mark.parametrize(
    "changes",
    [
        {"completed": 2},
        {"failed_checks": ("regressions",)},
        {"review": ReviewState.MISSING},
        {"review": ReviewState.REJECTED},
        {"review": ReviewState.STALE},
        {"is_invalidated": True},
        {"measured": {}},
    ],
)
def test_who_is_not_verified_neither_stands_on_the_frontier_nor_dominates(
    changes: dict[str, Any],
) -> None:
    found = stands(BASE, entry("c1", 50, 0.99, **changes))
    assert found.frontier == ("c0",)
    assert not found.place("c0").dominated_by
    assert [one.candidate for one in found.eligible] == ["c0"]
    assert found.place("c1").qualification.lacking


def test_constraints_are_anchored_to_the_original_baseline() -> None:
    child = entry("c2", 160, 0.99, parent="c1")
    found = stands(BASE, entry("c1", 140, 0.96), child)
    assert found.place("c1").qualification.is_feasible
    assert not found.place("c2").qualification.is_feasible
    assert found.place("c2").shown.constraints[1].value == pytest.approx(1.6)


def test_an_exhausted_candidate_still_dominates_and_is_not_expanded() -> None:
    found = stands(BASE, entry("c1", 80, 0.95, is_exhausted=True), entry("c2", 85, 0.95))
    assert found.frontier == ("c1",)
    assert [one.candidate for one in found.eligible] == ["c0", "c2"]
    assert not any(one.is_on_frontier for one in found.eligible)


def test_invalidation_reaches_every_descendant() -> None:
    family = [
        BASE,
        entry("c1", 80, 0.95, is_invalidated=True),
        entry("c2", 70, 0.95, parent="c1"),
        entry("c3", 60, 0.95, parent="c2"),
        entry("c4", 90, 0.95),
    ]
    assert invalidated(family) == {"c1", "c2", "c3"}
    assert stands(*family).frontier == ("c4",)
    assert stands(replace(BASE, is_invalidated=True), *family[1:]).frontier == ()


def test_a_baseline_that_breaks_a_constraint_is_expanded_and_not_on_the_frontier() -> None:
    found = stands(entry("c0", 100, 0.5, parent=None))
    assert found.frontier == ()
    assert [one.candidate for one in found.eligible] == ["c0"]


def test_rounds_count_once_all_their_candidates_are_at_an_end() -> None:
    worse = [entry(f"c{n}", 110, 0.93) for n in (1, 2, 3)]
    assert stands(BASE, *worse).stagnation.is_reached
    waiting = [*worse[:2], replace(worse[2], is_at_end=False)]
    assert stands(BASE, *waiting).stagnation.rounds_without_new == 2
    together = [replace(one, round=1) for one in worse]
    assert stands(BASE, *together).stagnation.rounds_without_new == 1
    gone = [replace(one, is_at_end=False, is_invalidated=True) for one in worse]
    assert stands(BASE, *gone).stagnation.rounds_without_new == 3
    failed = [replace(one, review=ReviewState.MISSING, failed_checks=("x",)) for one in worse]
    assert stands(BASE, *failed).stagnation.is_reached


def test_policies_choose_from_the_board() -> None:
    tasks = {"read": measured_of("c1", "read", [0.1, 0.3, 0.2])}
    found = stands(BASE, entry("c1", 80, 0.95, tasks=tasks, last=4), entry("c2", 120, 0.99))
    assert found.eligible[1].tasks == {"read": 0.2}
    terms = Terms("run-1", {"latency_ms": "min", "quality": "max"}, {})
    assert decide(Policy(), found.eligible, terms, 5).parent == "c2"
    assert decide(Policy("argmax", "latency_ms"), found.eligible, terms, 5).parent == "c1"


def test_a_ratio_to_nothing_fails_with_its_reason_and_an_empty_run_has_no_frontier() -> None:
    zero = replace(
        BASE,
        measured={
            "latency_ms": measured_of("c0", "latency_ms", [0, 0, 0]),
            "quality": measured_of("c0", "quality", [0.95] * 3),
        },
    )
    failed = stands(zero).place("c0").shown.constraints[1]
    assert not failed.is_kept
    assert "a ratio to it means nothing" in str(failed.reason)
    assert stands().frontier == ()
