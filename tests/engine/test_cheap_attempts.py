"""Attempts that do next to nothing share what is dear, and lose nothing by it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.benchmark import Evaluation
from steelyard.components.harness import HarnessResult
from steelyard.components.issues import Outcome
from steelyard.components.values import Usage
from steelyard.engine.attempt import execute
from steelyard.engine.kept_execution import is_cheap
from steelyard.engine.spec import ExecutionResult, PhaseTimes
from steelyard.results.files import NoFaults, WritePoint
from tests.engine.fakes import FakeBenchmark, FakeHarness, Watch, services, spec
from tests.engine.launching import records, request, run_all


class Counting(NoFaults):
    """Counts the writes at each point."""

    def __init__(self) -> None:
        self.writes: Counter[WritePoint] = Counter()

    def before(self, point: WritePoint) -> None:
        self.writes[point] += 1


def test_records_of_one_turn_are_one_write(tmp_path: Path) -> None:
    seen = Counting()
    result = run_all(tmp_path, request(benchmark={"tasks": 200}), faults=seen, task_concurrency=20)
    assert len(records(result)) == 200
    assert seen.writes[WritePoint.ATTEMPTS_APPENDED] <= 40
    assert seen.writes[WritePoint.EVENTS_APPENDED] <= 40


def test_what_was_paid_or_took_its_time_is_not_held_back() -> None:
    def result(**more: Any) -> ExecutionResult:
        return ExecutionResult(outcome=Outcome.SCORED, **more)

    assert is_cheap(result())
    assert not is_cheap(result(usage=Usage(requests=1)))
    for phase in ("setup_s", "agent_s", "collect_s", "evaluate_s"):
        assert not is_cheap(result(times=PhaseTimes(**{phase: 0.02})))


def answering(answer: str | None) -> Any:
    async def hook(_: Any) -> HarnessResult:
        return HarnessResult(answer)

    return hook


@pytest.mark.parametrize("answer", [None, "an answer"])
def test_an_execution_that_has_ended_is_gone_at_once(answer: str | None) -> None:
    """Whatever only the search for cycles frees costs every attempt a share of that search."""
    contexts: list[weakref.ref[Any]] = []

    async def note(context: Any) -> Evaluation:
        contexts.append(weakref.ref(context._work))
        return Evaluation({"passed": True})

    async def one() -> None:
        harness = FakeHarness(answering(answer))
        made = services(FakeBenchmark(on_evaluate=note), harness)
        await execute(spec(), made, Watch())

    gc.collect()
    gc.disable()
    try:
        asyncio.run(one())
        assert len(contexts) == 1
        assert contexts[0]() is None
    finally:
        gc.enable()
