"""Components that fail a scripted number of times, and launches of them without long waits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from steelyard.components.benchmark import Evaluation, ScoringContext, Task
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits, Step
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelRequest
from steelyard.components.values import Message, Usage
from steelyard.engine.events import LaunchResult, Observer
from steelyard.engine.launch import launch, prepare
from steelyard.models.backoff import Backoff
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.results.layout import attempt_folder
from steelyard.results.reader import RunReader
from tests.engine.components import Counted, CountParams
from tests.engine.launching import request, resolved

NO_WAIT = Backoff(base_s=0.0, cap_s=0.0, retry_after_cap_s=0.0)
LONG_WAIT = Backoff(base_s=1e6, cap_s=1e6)
"""Longer than any test, whatever is drawn."""


class FlakyParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    ledger: str
    """A file with a line for each time the agent ran."""
    fails: dict[str, int] = {}
    """How many executions of each attempt at a task fail."""
    code: str = "harness_crashed"
    message: str = "as scripted"
    is_request_fault: bool = False
    retry_after_s: float | None = None
    calls: bool = False
    """Whether the model is called before anything else."""
    large: int = 0
    sleep_s: float = 0.0


class Flaky(Harness):
    """Fails the first so many times, then answers `right`."""

    api = 1
    id = "flaky"
    traits = HarnessTraits(calls_model=False)
    Params = FlakyParams

    async def run(self, context: HarnessContext) -> HarnessResult:
        script: Any = self.params
        done = ran_before(Path(script.ledger), f"{context.task_id} {context.attempt}")
        if script.calls:
            await context.model.generate(ModelRequest((Message("user", "go"),)))
        context.step(Step("agent", f"try {done + 1}"))
        await asyncio.sleep(script.sleep_s)
        if done < script.fails.get(context.task_id, 0):
            raise AttemptFault(
                IssueCode(script.code),
                script.message,
                request_fault=script.is_request_fault,
                retry_after_s=script.retry_after_s,
            )
        return HarnessResult("right" + "!" * script.large)


class ScorerParams(CountParams):
    scored: str
    """A file with a line for each time something was scored."""
    scorer_fails: int = 0
    fails_with: str = "a scorer that is out of order"


class FlakyScorer(Counted):
    """Crashes the first so many times at each attempt; each score costs a dollar."""

    id = "flaky-scorer"
    Params = ScorerParams  # type: ignore[assignment]  # narrower than those of `Counted`

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        script: Any = self.params
        if ran_before(Path(script.scored), task.id) < script.scorer_fails:
            raise RuntimeError(script.fails_with)
        is_right = (context.answer or "").startswith("right")
        return Evaluation({"passed": is_right}, usage=Usage(requests=1, cost_usd=1.0))


def ran_before(ledger: Path, line: str) -> int:
    """Note a line; say how often it stood there before."""
    lines = ledger.read_text().split("\n") if ledger.exists() else []
    with ledger.open("a") as file:
        file.write(line + "\n")
    return lines.count(line)


def flaky(
    tmp_path: Path,
    *,
    retries: int = 2,
    fails: dict[str, int] | None = None,
    patterns: list[str] | None = None,
    tasks: int = 1,
    script: dict[str, Any] | None = None,
    benchmark: dict[str, Any] | None = None,
    execution: dict[str, Any] | None = None,
    **rest: Any,
) -> dict[str, Any]:
    """A request whose agent fails the first so many times at each task of `fails`."""
    return request(
        benchmark={"tasks": tasks, **(benchmark or {})},
        harness={
            "id": f"{__file__}:{'Calling' if (script or {}).get('calls') else 'Flaky'}",
            "ledger": str(tmp_path / "ran"),
            "fails": {"t0": 1} if fails is None else fails,
            **(script or {}),
        },
        execution={"max_retries": retries, "retry_pattern_list": patterns, **(execution or {})},
        **rest,
    )


def run_flaky(
    tmp_path: Path,
    *requests: dict[str, Any],
    backoff: Backoff = NO_WAIT,
    observer: Observer | None = None,
    faults: Faults = NO_FAULTS,
    **top: Any,
) -> LaunchResult:
    prepared = prepare(resolved(tmp_path, *requests, **top))
    return asyncio.run(launch(prepared, observer=observer, faults=faults, backoff=backoff))


def agent_ran(tmp_path: Path) -> list[str]:
    path = tmp_path / "ran"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def files_of(run_dir: Path, task_id: str = "t0", attempt: int = 1) -> list[str]:
    """What lies beside an attempt's record, by its path in the attempt's folder."""
    folder = run_dir / attempt_folder(task_id, attempt)
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def events(run_dir: Path, kind: str) -> list[dict[str, Any]]:
    return [event for event in RunReader(run_dir).events() if event["kind"] == kind]


class Calling(Flaky):
    """Calls its model before it fails."""

    id = "calling"
    traits = HarnessTraits(calls_model=True)


class FlakyFirst(Flaky):
    """Fails at the first attempt of every task, always."""

    id = "flaky-first"

    async def run(self, context: HarnessContext) -> HarnessResult:
        if context.attempt == 1:
            raise AttemptFault(IssueCode.HARNESS_CRASHED, "the first attempt fails")
        return HarnessResult("right")


class Refused(Flaky):
    """Fails at the first task; at the second finds the endpoint shut for all."""

    id = "refused"

    async def run(self, context: HarnessContext) -> HarnessResult:
        if context.task_id == "t0":
            raise AttemptFault(IssueCode.HARNESS_CRASHED, "the first task fails")
        raise AttemptFault(
            IssueCode.MODEL_ENDPOINT_REJECTED, "the door is shut", request_fault=True
        )
