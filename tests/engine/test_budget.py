"""Reservations, estimates, and how far a budget can be passed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.engine.admission import Admission, BudgetLimits, Limits, Start
from steelyard.engine.budget import SAMPLE_SIZE, CostEstimate, nano_usd


def opened(
    budget: BudgetLimits, own: BudgetLimits, *, slots: int = 50, tasks: int = 100
) -> Admission:
    admission = Admission(Limits(slots), budget=budget)
    admission.open_request(
        0, provider="docker", opens_environment=True, overlap=True, k=1, budget=own
    )
    admission.add_tasks(0, tasks, 0.0)
    return admission


def start_all(admission: Admission) -> list[Start]:
    starts = []
    while (start := admission.start_next(0.0)) is not None:
        starts.append(start)
    return starts


NONE = BudgetLimits()


@pytest.mark.parametrize(
    ("costs", "estimate"),
    [
        ([7], 7),
        (list(range(1, 20)), 19),
        (list(range(1, 21)), 19),
        (list(range(100, 0, -1)), 95),
    ],
)
def test_the_estimate_is_the_95th_percentile_by_nearest_rank(
    costs: list[int], estimate: int
) -> None:
    costs_known = CostEstimate(None)
    for cost in costs:
        costs_known.add(cost)
    assert costs_known.value() == estimate


@given(st.lists(st.integers(1, 50), min_size=1, max_size=2 * SAMPLE_SIZE))
def test_the_estimate_looks_back_on_a_bounded_number_of_costs(costs: list[int]) -> None:
    estimate = CostEstimate(3)
    for cost in costs:
        estimate.add(cost)
    latest = sorted(costs[-SAMPLE_SIZE:])
    value = estimate.value()
    assert value is not None
    assert 20 * sum(cost <= value for cost in latest) >= 19 * len(latest)
    assert 20 * sum(cost < value for cost in latest) < 19 * len(latest)
    assert len(estimate._by_size) == len(latest)


def test_before_any_cost_is_known_the_given_amount_is_reserved() -> None:
    starts = start_all(opened(BudgetLimits(usd=10.0), BudgetLimits(reserve_usd=3.0)))
    assert [start.reserved_usd for start in starts] == [3.0, 3.0, 3.0]


def test_a_request_without_its_own_amount_takes_the_orchestrations() -> None:
    (start,) = start_all(opened(BudgetLimits(usd=3.0, reserve_usd=2.0), NONE))
    assert start.reserved_usd == 2.0


def test_without_an_amount_a_pilot_of_four_runs_first() -> None:
    admission = opened(BudgetLimits(usd=10.0), NONE)
    pilot = start_all(admission)
    assert [start.reserved_usd for start in pilot] == [0.0] * 4
    for start in pilot[:3]:
        admission.finish(start, 0.0, spent_usd=1.0)
    assert start_all(admission) == [], "the last of the pilot holds no reservation"
    admission.finish(pilot[3], 0.0, spent_usd=2.0)
    assert [start.reserved_usd for start in start_all(admission)] == [2.0, 2.0]


def test_a_token_budget_has_a_pilot_though_dollars_are_given() -> None:
    admission = opened(BudgetLimits(usd=100.0, tokens=1_000), BudgetLimits(reserve_usd=1.0))
    pilot = start_all(admission)
    assert len(pilot) == 4
    for start in pilot:
        admission.finish(start, 0.0, spent_usd=1.0, spent_tokens=300)
    assert start_all(admission) == []
    assert admission.skipped_by_budget() == [0]


def test_the_real_cost_is_settled_and_the_rest_given_back() -> None:
    admission = opened(BudgetLimits(usd=3.0), BudgetLimits(reserve_usd=2.0))
    (first,) = start_all(admission)
    admission.finish(first, 0.0, spent_usd=0.5)
    assert [start.reserved_usd for start in start_all(admission)] == [0.5] * 5


def test_an_unknown_cost_counts_as_what_was_reserved() -> None:
    admission = opened(BudgetLimits(usd=5.0), BudgetLimits(reserve_usd=2.0))
    for start in start_all(admission):
        admission.finish(start, 0.0, spent_usd=None)
    assert start_all(admission) == []
    assert admission.skipped_by_budget() == [0]


def test_a_budget_of_zero_starts_nothing() -> None:
    admission = opened(BudgetLimits(usd=0.0), NONE)
    assert start_all(admission) == []
    assert admission.skipped_by_budget() == [0]


def test_what_cost_nothing_does_not_lower_the_reservation() -> None:
    admission = opened(BudgetLimits(usd=6.0), BudgetLimits(reserve_usd=3.0))
    for start in start_all(admission):
        admission.finish(start, 0.0, spent_usd=0.0)
    assert [start.reserved_usd for start in start_all(admission)] == [3.0, 3.0]


def test_a_pilot_that_cost_nothing_ends_after_four() -> None:
    admission = opened(BudgetLimits(usd=1.0), NONE, slots=1, tasks=10)
    for _ in range(4):
        (start,) = start_all(admission)
        admission.finish(start, 0.0, spent_usd=0.0)
    admission.set_task_concurrency(50)
    assert [start.reserved_usd for start in start_all(admission)] == [0.0] * 6


def test_a_retry_reserves_and_settles_like_any_execution() -> None:
    admission = opened(BudgetLimits(usd=2.0), BudgetLimits(reserve_usd=1.0), slots=1, tasks=1)
    (first,) = start_all(admission)
    admission.retry(first, 0.0, 0.0, spent_usd=1.5)
    assert start_all(admission) == []
    assert admission.skipped_by_budget() == [0]


def test_ten_dimes_fit_a_dollar_exactly() -> None:
    starts = start_all(opened(BudgetLimits(usd=1.0), BudgetLimits(reserve_usd=0.1)))
    assert len(starts) == 10
    assert nano_usd(0.1) * 10 == nano_usd(1.0)


@given(
    seed=st.integers(0, 10_000),
    limit=st.integers(0, 60),
    slots=st.integers(1, 12),
    reserve=st.none() | st.integers(1, 5),
    own=st.none() | st.integers(0, 60),
)
def test_spending_passes_the_limit_only_by_what_those_in_flight_cost_above_reservation(
    seed: int, limit: int, slots: int, reserve: int | None, own: int | None
) -> None:
    random = Random(seed)
    admission = opened(
        BudgetLimits(usd=limit), BudgetLimits(usd=own, reserve_usd=reserve), slots=slots
    )
    bound = limit if own is None else min(limit, own)
    running: list[Start] = []
    spent = allowed = 0.0
    costs: dict[Start, float] = {}
    while True:
        for start in start_all(admission):
            running.append(start)
            costs[start] = random.choice((0.0, 0.5, 1.0, 2.0, 8.0))
            assert spent + sum(other.reserved_usd for other in running) <= bound
            excess = sum(max(0.0, costs[other] - other.reserved_usd) for other in running)
            allowed = max(allowed, bound + excess)
        if not running:
            break
        ended = running.pop(random.randrange(len(running)))
        spent += costs[ended]
        admission.finish(ended, 0.0, spent_usd=costs[ended])
    assert spent <= max(allowed, 0.0)
    if admission.pending(0):
        assert admission.skipped_by_budget() == [0]
