"""How far a budget can be passed, on random launches; and that wrong accounts are told apart.

What is checked stands in `spending.py`: each start fits; in the end no pool is passed by more than
those in flight at its last start cost above what they had reserved; nothing is skipped that
something in flight could pay for; reservations come back; the ledger closes.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings

from steelyard.components.issues import Outcome
from steelyard.engine.admission import Admission, BudgetLimits, Start
from steelyard.engine.budget import RequestMoney, Reservation
from steelyard.engine.settlement import settled
from steelyard.models.allowance import Charge
from tests.engine.spending import SPREES, Played, Settle, Spender, Spree


@settings(max_examples=400, deadline=None)
@given(SPREES)
def test_a_budget_is_passed_by_no_more_than_its_bound(spree: Spree) -> None:
    Played(spree)


def spender(**changes: Any) -> Spender:
    given: dict[str, Any] = {
        "provider": "modal",
        "tasks": 40,
        "k": 1,
        "overlap": True,
        "budget": BudgetLimits(),
        "attempt_usd": None,
        "attempt_tokens": None,
        "calls": 4,
        "judge_calls": 2,
        "fails": 0.3,
        "retries": 2,
    }
    return Spender(**given | changes)


def spree(*requests: Spender, **changes: Any) -> Spree:
    given: dict[str, Any] = {
        "slots": 8,
        "provider_limit": 0,
        "budget": BudgetLimits(usd=30.0, reserve_usd=3.0),
        "requests": requests,
        "dearest": 4,
        "unknown": 0.1,
        "priceless": 0.0,
        "seed": 1,
    }
    return Spree(**given | changes)


def test_a_budget_that_is_short_is_used_and_says_what_it_left() -> None:
    played = Played(spree(spender()))
    assert played.usd[0].booked > 20
    assert played.outcomes[Outcome.SKIPPED_BUDGET] > 0
    assert played.outcomes[Outcome.SCORED] > 0


def test_a_bound_on_each_attempt_bounds_the_whole() -> None:
    for seed in range(30):
        one = spender(attempt_usd=1.0, tasks=60)
        played = Played(spree(one, seed=seed, budget=BudgetLimits(usd=10.0)))
        # Each of eight in flight may spend its dollar and the last call's.
        assert played.usd[0].booked <= 10 + 8 * (1.0 + 1.0)


# -- wrong accounts ----------------------------------------------------------------------------


class ReservesNothing(Admission):
    def _start(self, state: Any, now: float) -> Start:
        start = super()._start(state, now)
        place = (start.request, start.task, start.attempt)
        held = self._running[place]
        money = state.money
        if money is not None:
            self._running[place] = Reservation(0, 0, held.is_pilot)
            for pool in (money._usd, money._shared_usd):
                pool.reserved -= held.nano_usd
            for pool in (money._tokens, money._shared_tokens):
                pool.reserved -= held.tokens
        return start


class KeepsWhatARetryHadReserved(Admission):
    def retry(self, start: Start, ready_at: float, now: float, **cost: Any) -> bool:
        waits = super().retry(start, ready_at, now, **cost)
        self._usd.reserved += round(start.reserved_usd * 1e9)
        return waits


class ForgetsWhatARetryCost(Admission):
    def retry(self, start: Start, ready_at: float, now: float, **cost: Any) -> bool:
        return super().retry(start, ready_at, now)


class SkipsWhatIsInFlightCouldPayFor(Admission):
    def skipped_by_budget(self) -> list[int]:
        states = self._requests.items()
        return [n for n, one in states if one.queue.pending and one.running == 0 and short(one)]


def short(state: Any) -> bool:
    money: RequestMoney | None = state.money
    if money is None:
        return False
    usd = money._shared_usd.allows(money.need_usd) and money._usd.allows(money.need_usd)
    tokens = (money._shared_tokens, money._tokens)
    return not (usd and all(pool.allows(money.need_tokens) for pool in tokens))


class SkipsWhileItsOwnRun(Admission):
    def skipped_by_budget(self) -> list[int]:
        found = [n for n, one in self._requests.items() if one.queue.pending and one.money]
        return [n for n in found if self._requests[n].money.is_hopeless]  # type: ignore[union-attr]


class NeverSkips(Admission):
    def skipped_by_budget(self) -> list[int]:
        return []


class PilotsWithoutEnd(Admission):
    def _missing(self, state: Any, now: float) -> Any:
        if state.money is not None:
            state.money._pilots_started = min(state.money._pilots_started, 3)
        return super()._missing(state, now)


@pytest.mark.parametrize(
    "mutation",
    [
        ReservesNothing,
        KeepsWhatARetryHadReserved,
        ForgetsWhatARetryCost,
        SkipsWhatIsInFlightCouldPayFor,
        SkipsWhileItsOwnRun,
        NeverSkips,
        PilotsWithoutEnd,
    ],
    ids=lambda mutation: mutation.__name__,
)
def test_the_bound_tells_a_wrong_admission_from_the_right_one(mutation: type[Admission]) -> None:
    with pytest.raises(AssertionError):
        property_of(mutation)()


def takes_unknown_costs_for_none(start: Start, charge: Charge, **_: Any) -> tuple[float, int]:
    return charge.usd, charge.tokens


def books_what_was_reserved(start: Start, charge: Charge, **_: Any) -> tuple[float, int]:
    return start.reserved_usd, start.reserved_tokens


def never_books_less_than_reserved(start: Start, charge: Charge, **_: Any) -> tuple[float, int]:
    return max(charge.usd, start.reserved_usd), max(charge.tokens, start.reserved_tokens)


@pytest.mark.parametrize(
    "settle",
    [takes_unknown_costs_for_none, books_what_was_reserved, never_books_less_than_reserved],
    ids=lambda settle: settle.__name__,
)
def test_the_bound_tells_a_wrong_settlement_from_the_right_one(settle: Settle) -> None:
    with pytest.raises(AssertionError):
        property_of(Admission, settle)()


def test_the_right_ones_pass_on_the_same_draws() -> None:
    property_of(Admission, examples=150)()


def property_of(make: type[Admission], settle: Settle = settled, examples: int = 1_500) -> Any:
    """The very property of above, over the same draws each time."""

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
    )
    @given(SPREES)
    def keeps_its_bound(spree: Spree) -> None:
        Played(spree, make, settle)

    return keeps_its_bound
