"""Scanners that ask a judge: what that costs is held, what it does not say is a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelRequest, ModelResponse
from steelyard.components.scanner import Finding, ScannedAttempt, Scanner
from steelyard.components.values import Usage
from steelyard.evalset.chosen_scanners import JudgeModel
from steelyard.evalset.findings import ScanSpending
from steelyard.evalset.following import standing_of
from steelyard.evalset.spent import set_spending
from steelyard.models.allowance import Allowance
from steelyard.results.lock import RunLock
from steelyard.testing.fake_model import ScriptedEndpoint, response
from tests.evalset.living_sets import LivingSet, living_set
from tests.evalset.scanner_of_tests import (
    Asks,
    Words,
)
from tests.evalset.scanning_sets import log_of, made, scanned

STEPS = {"harness": {"steps": True}}


@pytest.fixture
def thinking(tmp_path: Path) -> LivingSet:
    """Four cells of two cases; in each the agent says `thinking`."""
    living = living_set(tmp_path)
    living.run_all(**STEPS)
    living.end()
    return living


def judge(*answers: object, usd: float | None = None, cost: float = 0.25) -> JudgeModel:
    """Give a judge whose calls cost so much, settled as a real client settles them."""
    allowance = Allowance(usd=usd)

    async def answer(_request: ModelRequest) -> ModelResponse:
        allowance.check()
        said = answers[0]
        if isinstance(said, Exception):
            raise said
        usage = Usage(10, 5, requests=1, cost_usd=cost)
        allowance.spend(usage)
        return response(str(said), usage=usage)

    class Endpoint(ScriptedEndpoint):
        def client(self, *_: object, **__: object):  # type: ignore[no-untyped-def]
            from steelyard.testing.fake_model import ScriptedModel

            return ScriptedModel(answer)

    return JudgeModel(Endpoint(), allowance)


def test_what_judges_cost_counts_with_the_set(thinking: LivingSet) -> None:
    result = scanned(thinking, made(Asks, Words), judge=judge("yes"))
    assert {one.scanner for one in result.new} == {"asks", "words"}
    assert result.spent.requests == 8
    assert result.spent.cost_usd == pytest.approx(2.0)
    assert ScanSpending(thinking.opened.files).read_on().cost_usd == pytest.approx(2.0)
    assert set_spending(thinking.opened).cost_usd == pytest.approx(2.0)
    assert standing_of(thinking.opened).spent.cost_usd == pytest.approx(2.0)
    assert scanned(thinking, made(Asks), judge=judge("yes")).spent.requests == 0


def test_a_judge_is_held_to_what_the_budget_has_left(thinking: LivingSet) -> None:
    result = scanned(thinking, made(Asks), judge=judge("yes", usd=0.5))
    assert result.exit_status == 4
    assert result.stopped is not None
    assert result.spent.cost_usd is not None
    assert result.spent.cost_usd <= 0.5 + 7 * 0.25  # one call for each that was under way
    assert result.read < 8
    assert result.fault_count == 0
    rest = scanned(thinking, made(Asks), judge=judge("yes"))
    assert rest.read == 8 - result.read


def test_a_judge_with_nothing_left_is_never_asked(thinking: LivingSet) -> None:
    result = scanned(thinking, made(Asks), judge=judge("yes", usd=0.0))
    assert (result.exit_status, result.spent.requests, result.read) == (4, 0, 0)


def test_a_judge_that_does_not_answer_is_a_fault_and_no_finding(thinking: LivingSet) -> None:
    fault = AttemptFault(IssueCode.MODEL_UNAVAILABLE, "gone")
    result = scanned(thinking, made(Asks), judge=judge(fault))
    assert result.fault_count == 8
    assert result.read == 0
    assert log_of(thinking).findings == {}


def test_a_scanner_that_did_not_say_so_gets_no_judge(thinking: LivingSet) -> None:
    class Sneaky(Asks):
        id = "sneaky"
        needs_model: ClassVar[bool] = False

    result = scanned(thinking, made(Sneaky), judge=judge("yes"))
    assert result.fault_count == 8
    assert "needs_model" in result.faults[0].message
    assert result.spent.requests == 0


def test_several_attempts_wait_for_the_judge_at_once(thinking: LivingSet) -> None:
    at_once, most = 0, 0

    class Slow(Scanner):
        api = 1
        id = "slow"
        needs_model: ClassVar[bool] = True

        async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.05)
            at_once -= 1
            return []

    from steelyard.components.environment import NoParams

    scanned(thinking, [Slow(NoParams())], judge=judge("yes"))
    assert 2 <= most <= 8


def test_a_cancelled_scan_ends_and_keeps_what_it_has(thinking: LivingSet) -> None:
    class Hangs(Words):
        id = "hangs"
        needs_model: ClassVar[bool] = True

        async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
            if attempt.record.task_id == "t1":
                await asyncio.Event().wait()
            return await super().scan(attempt)

    async def cancelled() -> None:
        from steelyard.evalset.scanning import scan_set

        async with asyncio.timeout(1.5):
            await scan_set(thinking.opened, made(Hangs), judge=judge("yes"))

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    assert len(log_of(thinking).findings) == 4
    assert RunLock.try_acquire(thinking.opened.files.scan_lock) is not None
