"""Calls that an agent makes side by side: what they may spend together, and how they are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.models.allowance import Allowance
from tests.models.calling import ask as question
from tests.models.gateway.serving import PATHS, Answer, Attempt, ask, body_of, served

CHAT = PATHS["openai-chat"]
MOCK = {"latency": "0.03"}


async def asked(attempt: Attempt, number: int, **fields: Any) -> Answer:
    return await ask(attempt, CHAT, body_of("openai-chat", f"n {number}", **fields))


async def one_call(bound: str) -> float:
    """What one of them spends."""
    async with served() as (attempt, _):
        await asked(attempt, 0, max_tokens=5)
        return spent(attempt.ticket.allowance, bound)


def spent(allowance: Allowance, bound: str) -> float:
    return allowance.spent_usd if bound == "usd" else allowance.spent_tokens


@pytest.mark.parametrize("bound", ["usd", "tokens"])
@pytest.mark.parametrize("fields", [{"max_tokens": 5}, {}], ids=["named", "unnamed"])
def test_calls_side_by_side_pass_a_bound_by_one_call_at_most(
    bound: str, fields: dict[str, Any]
) -> None:
    async def run() -> tuple[list[int], float, float, int]:
        each = await one_call(bound)
        limit = 4.5 * each
        made = Allowance(usd=limit) if bound == "usd" else Allowance(tokens=int(limit))
        async with served(allowance=made, mock=MOCK) as (attempt, mock):
            answers = await asyncio.gather(*(asked(attempt, n, **fields) for n in range(20)))
            statuses = sorted(answer.status for answer in answers)
            return statuses, spent(made, bound) - limit, each, mock.server.stats.calls

    statuses, over, each, calls = asyncio.run(run())
    assert statuses == [200] * 5 + [402] * 15
    assert calls == 5
    assert 0 <= over < each


def test_calls_that_fit_together_are_made_at_the_same_time() -> None:
    async def run() -> int:
        async with served(allowance=Allowance(tokens=5_000), mock=MOCK) as (attempt, mock):
            await asked(attempt, 0)  # the first call of an endpoint goes alone
            answers = await asyncio.gather(*(asked(attempt, n, max_tokens=9) for n in range(8)))
            assert {answer.status for answer in answers} == {200}
            return mock.server.stats.max_in_flight

    assert asyncio.run(run()) == 8


def test_an_attempt_whose_calls_were_refused_ends_once_with_402() -> None:
    async def run() -> Any:
        async with served(allowance=Allowance(tokens=3), mock=MOCK) as (attempt, _):
            answers = await asyncio.gather(*(asked(attempt, n) for n in range(4)))
            refused = [answer for answer in answers if answer.status == 402]
            return refused, attempt.faults, attempt.ticket.allowance

    refused, faults, allowance = asyncio.run(run())
    assert len(refused) == 3
    assert [fault.code for fault in faults] == [IssueCode.ATTEMPT_BUDGET]
    assert refused[0].json()["error"]["code"] == "attempt_budget"
    assert refused[0].headers["x-should-retry"] == "false"
    assert (allowance.under_way, allowance.held_tokens, allowance.held_usd) == (0, 0, 0)


def test_a_driver_side_client_and_programs_wait_for_each_other() -> None:
    async def run() -> Any:
        allowance = Allowance(tokens=3)
        async with served(allowance=allowance, mock=MOCK) as (attempt, mock):
            client = attempt.endpoint.client(attempt.timer, allowance)
            calls = [asked(attempt, 0), *(client.generate(question(str(n))) for n in range(4))]
            ended = await asyncio.gather(*calls, return_exceptions=True)
            return ended, mock.server.stats.calls

    ended, calls = asyncio.run(run())
    assert calls == 1
    refused = [each for each in ended if isinstance(each, AttemptFault)]
    assert len(refused) + sum(isinstance(e, Answer) and e.status == 402 for e in ended) == 4
    assert {fault.code for fault in refused} <= {IssueCode.ATTEMPT_BUDGET}


def test_calls_that_fail_or_are_cut_off_hold_nothing_any_more() -> None:
    async def run() -> Allowance:
        allowance = Allowance(tokens=10_000)
        async with served(
            faults=["500:every=2", "reset:every=3"], allowance=allowance, max_request_retries=0
        ) as (attempt, _):
            for number in range(6):
                await asked(attempt, number, max_tokens=9)
        async with served(mock={"latency": "30"}, allowance=allowance) as (attempt, _):
            calls = [asyncio.ensure_future(asked(attempt, n, max_tokens=9)) for n in range(3)]
            await asyncio.sleep(0.1)
            await attempt.ticket.revoke()
            await asyncio.gather(*calls, return_exceptions=True)
        return allowance

    allowance = asyncio.run(run())
    assert (allowance.under_way, allowance.held_tokens) == (0, 0)
