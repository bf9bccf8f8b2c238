"""Admission where money is short, rule by rule."""

from __future__ import annotations

from steelyard.engine.admission import BudgetLimits
from tests.engine.admitting import add, admission, places, start_all


def test_nobody_passes_a_head_that_waits_for_dollars() -> None:
    queue = admission(usd=10.0)
    add(queue, 0, tasks=2, budget=BudgetLimits(reserve_usd=6.0))
    add(queue, 1, tasks=2, budget=BudgetLimits(reserve_usd=1.0))
    assert places(start_all(queue)) == [(0, 0, 1)]
    assert queue.blocked_on(0) == "budget (usd)"


def test_a_head_that_waits_for_dollars_is_passed_by_those_who_need_none() -> None:
    queue = admission(usd=10.0)
    add(queue, 0, tasks=2, budget=BudgetLimits(reserve_usd=6.0))
    add(queue, 1, tasks=1, spends=False)
    assert places(start_all(queue)) == [(0, 0, 1), (1, 0, 1)]


def test_a_request_that_lacks_its_own_budget_closes_nothing_to_others() -> None:
    queue = admission(usd=10.0)
    add(queue, 0, tasks=2, budget=BudgetLimits(usd=1.0, reserve_usd=1.0))
    add(queue, 1, tasks=1, budget=BudgetLimits(reserve_usd=1.0))
    assert places(start_all(queue)) == [(0, 0, 1), (1, 0, 1)]
    assert queue.blocked_on(0) == "budget of request 0"


def test_a_large_claim_starts_though_small_ones_behind_it_never_end() -> None:
    """It needs a docker slot and 5 of 7 dollars; others behind it want one of the two each."""
    queue = admission(usd=7.0, providers={"docker": 1})
    queue.open_request(
        0,
        provider="docker",
        opens_environment=True,
        overlap=True,
        k=1,
        budget=BudgetLimits(reserve_usd=5.0),
    )
    add(queue, 1, tasks=1_000, spends=False)
    add(queue, 2, tasks=1_000, provider="modal", budget=BudgetLimits(reserve_usd=3.0))
    slot, money, more_money = start_all(queue)
    assert [slot.request, money.request, more_money.request] == [1, 2, 2]
    queue.add_tasks(0, 1, 0.0)
    # The money and the slot come back in turn, never both at once.
    queue.finish(money, 1.0)
    assert start_all(queue, 1.0) == []
    queue.finish(slot, 2.0)
    (slot,) = start_all(queue, 2.0)
    assert slot.request == 1, "the money is still short, and a slot is nobody's to hold"
    queue.finish(more_money, 3.0)
    assert start_all(queue, 3.0) == [], "enough for one behind, were it not promised"
    queue.finish(slot, 4.0)
    assert places(start_all(queue, 4.0)) == [(0, 0, 1)]


def test_what_the_budget_can_never_pay_is_named_only_when_nothing_can_free_enough() -> None:
    queue = admission(usd=4.0, reserve_usd=3.0)
    add(queue, 0, tasks=3)
    (first,) = start_all(queue)
    assert queue.skipped_by_budget() == [], "what runs may cost less than it reserved"
    queue.finish(first, 1.0, spent_usd=2.5)
    assert start_all(queue, 1.0) == []
    assert queue.skipped_by_budget() == [0]
    assert list(queue.close_request(0)) == [(1, 1), (2, 1)]
    assert queue.skipped_by_budget() == []


def test_what_a_hopeless_request_held_back_starts_once_it_is_closed() -> None:
    queue = admission(usd=4.0)
    add(queue, 0, tasks=1, budget=BudgetLimits(reserve_usd=9.0))
    add(queue, 1, tasks=1, budget=BudgetLimits(reserve_usd=1.0))
    assert start_all(queue) == []
    assert queue.skipped_by_budget() == [0]
    queue.close_request(0)
    assert places(start_all(queue)) == [(1, 0, 1)]
