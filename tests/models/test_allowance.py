"""What an attempt may spend: each bound on its own, settled when calls end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.components.clock import AgentTimer, SystemClock
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import Usage
from steelyard.models.allowance import (
    HELD_TOKENS,
    MOST_ASSUMED_TOKENS,
    UNSEEN_TOKENS,
    Allowance,
    Charge,
    assumed_counts,
)
from steelyard.models.protocols.form import TokenCounts


def test_without_bounds_everything_is_allowed() -> None:
    allowance = Allowance()
    allowance.spend(Usage(10**9, 10**9, cost_usd=1e9))
    assert allowance.overrun() is None
    allowance.check()


@pytest.mark.parametrize(
    ("allowance", "name"),
    [(Allowance(usd=0.5), "attempt_usd"), (Allowance(tokens=30), "attempt_tokens")],
)
def test_a_bound_that_is_reached_refuses(allowance: Allowance, name: str) -> None:
    allowance.spend(Usage(10, 19, cost_usd=0.49))
    allowance.check()
    allowance.spend(Usage(1, 0, cost_usd=0.01))
    with pytest.raises(AttemptFault, match=name) as caught:
        allowance.check()
    assert caught.value.code is IssueCode.ATTEMPT_BUDGET
    assert not caught.value.request_fault


def test_nothing_granted_is_nothing_allowed() -> None:
    assert Allowance(usd=0).overrun() is not None
    assert Allowance(tokens=0).overrun() is not None


def test_unknown_costs_count_as_what_is_known_of_them() -> None:
    allowance = Allowance(usd=1.0, tokens=100)
    allowance.spend(Usage(40, 20, requests=1, cost_usd=None))
    assert allowance.overrun() is None
    allowance.spend(Usage(40, 0, cost_usd=0.1))
    assert "attempt_tokens" in (allowance.overrun() or "")


def test_a_call_of_which_nothing_is_known_counts_by_its_size() -> None:
    unknown = Usage(requests=1, cost_usd=None)
    allowance = Allowance(usd=1.0, tokens=100)
    allowance.spend(unknown, Usage(40, 2, cost_usd=0.5))
    assert (allowance.spent_tokens, allowance.spent_usd) == (42, 0.5)
    allowance.spend(Usage(1, 1, cost_usd=0.1), Usage(40, 2, cost_usd=0.5))
    assert (allowance.spent_tokens, allowance.spent_usd) == (44, 0.6)


def test_what_a_call_may_have_consumed_is_told_by_its_size() -> None:
    assert assumed_counts(401, 9) == TokenCounts(101, 3)
    assert assumed_counts(0, None) == TokenCounts(0, UNSEEN_TOKENS)
    assert assumed_counts(0, None, 17) == TokenCounts(0, 17)
    assert assumed_counts(0, None, 10**30) == TokenCounts(0, MOST_ASSUMED_TOKENS)
    assert assumed_counts(0, 8, 17) == TokenCounts(0, 2)


# -- calls side by side ------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """What one call asks for, and what it then consumes, in tokens that cost a dollar each."""

    begins: int
    lasts: int
    holds: int
    takes: int


CALLS = st.builds(
    Call, st.integers(0, 6), st.integers(0, 4), st.integers(0, 30), st.integers(0, 60)
)


@dataclass
class Played:
    allowance: Allowance
    excess: int = 0
    """The most, at any start, that the calls then under way took above what was held for them."""
    largest: int = 0
    refused: int = 0
    made: int = 0
    order: list[int] = field(default_factory=list)


async def played(allowance: Allowance, calls: list[Call]) -> Played:
    """Make calls side by side, a step of the loop for a unit of time."""
    seen = Played(allowance)
    under_way: list[Call] = []

    async def make(number: int, call: Call) -> None:
        for _ in range(call.begins):
            await asyncio.sleep(0)
        try:
            held = await allowance.hold(
                Usage(call.holds, cost_usd=float(call.holds)), AgentTimer(SystemClock())
            )
        except AttemptFault:
            seen.refused += 1
            return
        try:
            under_way.append(call)
            seen.order.append(number)
            seen.excess = max(seen.excess, sum(max(0, c.takes - c.holds) for c in under_way))
            for _ in range(call.lasts):
                await asyncio.sleep(0)
            allowance.spend(Usage(call.takes, cost_usd=float(call.takes)))
            seen.largest = max(seen.largest, call.takes)
            seen.made += 1
            under_way.remove(call)
        finally:
            allowance.release(held)

    async with asyncio.TaskGroup() as group:
        for number, call in enumerate(calls):
            group.create_task(make(number, call))
    return seen


def allowance_of(kind: str, bound: int) -> Allowance:
    return Allowance(usd=float(bound)) if kind == "usd" else Allowance(tokens=bound)


def spent(allowance: Allowance) -> float:
    return allowance.spent_usd if allowance.usd is not None else allowance.spent_tokens


@pytest.mark.parametrize("kind", ["usd", "tokens"])
@settings(deadline=None)
@given(calls=st.lists(CALLS, max_size=12), bound=st.integers(0, 100))
def test_calls_side_by_side_pass_a_bound_by_what_they_take_above_what_was_held(
    kind: str, calls: list[Call], bound: int
) -> None:
    seen = asyncio.run(played(allowance_of(kind, bound), calls))
    # A call that goes alone may hold more than is left: it may pass the bound by itself.
    assert spent(seen.allowance) <= bound + max(seen.excess, 0) + seen.largest
    assert seen.made + seen.refused == len(calls)
    assert (seen.allowance.held_usd, seen.allowance.held_tokens) == (0, 0)
    assert seen.allowance.under_way == 0
    if seen.refused:
        assert spent(seen.allowance) >= bound


@pytest.mark.parametrize("kind", ["usd", "tokens"])
@settings(deadline=None)
@given(calls=st.lists(CALLS, max_size=12), bound=st.integers(0, 100))
def test_calls_that_keep_to_what_was_held_pass_a_bound_by_one_call_at_most(
    kind: str, calls: list[Call], bound: int
) -> None:
    kept = [replace(call, takes=min(call.takes, call.holds)) for call in calls]
    seen = asyncio.run(played(allowance_of(kind, bound), kept))
    assert spent(seen.allowance) < bound + max(1, seen.largest)


def test_calls_that_fit_together_do_not_wait_for_each_other() -> None:
    calls = [Call(0, 3, 10, 10) for _ in range(4)]

    async def run() -> int:
        allowance = Allowance(tokens=40)
        most = 0

        async def make() -> None:
            nonlocal most
            held = await allowance.hold(Usage(10), AgentTimer(SystemClock()))
            most = max(most, allowance.under_way)
            await asyncio.sleep(0)
            allowance.release(held)

        await asyncio.gather(*(make() for _ in calls))
        return most

    assert asyncio.run(run()) == 4


def test_calls_that_wait_go_in_the_order_of_asking() -> None:
    calls = [Call(0, 2, 60, 1), Call(0, 2, 60, 1), Call(0, 2, 60, 1), Call(1, 2, 5, 1)]
    seen = asyncio.run(played(Allowance(tokens=100), calls))
    assert seen.order == [0, 1, 2, 3]


def test_a_call_that_is_cancelled_while_it_waits_leaves_its_turn_to_the_next() -> None:
    async def run() -> bool:
        allowance = Allowance(tokens=100)
        timer = AgentTimer(SystemClock())
        first = await allowance.hold(Usage(90), timer)
        loop = asyncio.get_running_loop()
        second = loop.create_task(allowance.hold(Usage(90), timer))
        third = loop.create_task(allowance.hold(Usage(50), timer))
        await asyncio.sleep(0)
        allowance.release(first)  # wakes the second, which is cancelled before it can go
        second.cancel()
        held = await asyncio.wait_for(third, 5)
        allowance.release(held)
        return second.cancelled() and allowance.under_way == 0

    assert asyncio.run(run())


def test_waiting_for_a_turn_is_not_the_agents_time() -> None:
    async def run() -> float:
        allowance, timer = Allowance(tokens=100), AgentTimer(SystemClock())
        first = await allowance.hold(Usage(90), timer)
        asyncio.get_running_loop().call_later(0.02, allowance.release, first)
        await allowance.hold(Usage(90), timer)
        return timer.waited_s

    assert asyncio.run(run()) >= 0.015


def test_what_is_held_grows_with_the_longest_answer_seen() -> None:
    allowance = Allowance(tokens=10**6)
    assert allowance.most_of(200, 7) == TokenCounts(100, 7)
    assert allowance.most_of(0) == TokenCounts(0, HELD_TOKENS)
    allowance.spend(Usage(5, 3 * HELD_TOKENS))
    assert allowance.most_of(0) == TokenCounts(0, 3 * HELD_TOKENS)
    assert allowance.most_of(0, 10**30) == TokenCounts(0, MOST_ASSUMED_TOKENS)


def test_what_is_charged_says_whether_a_cost_is_missing() -> None:
    allowance = Allowance()
    allowance.charge_earlier(Charge(1.0, 10))
    allowance.spend(Usage(3, 2, cost_usd=0.5))
    assert allowance.charge == Charge(1.5, 15)
    allowance.spend(Usage(requests=1, cost_usd=None), Usage(4, 1, cost_usd=0.25))
    assert allowance.charge == Charge(1.75, 20)
    allowance.spend(Usage(1, 1, cost_usd=None))
    assert allowance.charge == Charge(1.75, 22, is_whole=False)
    assert Charge.of(Usage(1, 2, cost_usd=None)) == Charge(0.0, 3, is_whole=False)
