"""Components for launches in tests, named as `FILE:Class` in orchestrations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict

from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    ScoringContext,
    Task,
    TaskInput,
    binary,
    scalar,
)
from steelyard.components.environment import Environment, OpenRequest, Session
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits, Step
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import Message
from tests.engine.fakes import FakeEnvironment, FakeSession


class CountParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    tasks: int = 5
    version: str = "1"
    overlap: bool = True
    fails_to_load: bool = False
    scorer_crashes: bool = False
    collects: bool = False
    loads_after: str | None = None
    """A file; loading waits until it is there."""


class Counted(Benchmark):
    """Tasks t0, t1, …; passes where the answer is `right`."""

    api = 1
    id = "counted"
    Params = CountParams

    @property
    def counted(self) -> CountParams:
        assert isinstance(self.params, CountParams)
        return self.params

    def info(self) -> BenchmarkInfo:
        return BenchmarkInfo(
            "counted",
            self.counted.version,
            (binary("passed"),),
            "passed",
            runs_model_code=False,
            attempts_may_overlap=self.counted.overlap,
        )

    def load_tasks(self) -> Sequence[Task]:
        if self.counted.fails_to_load:
            raise OSError("the data is gone")
        deadline = time.monotonic() + 30
        while self.counted.loads_after and not Path(self.counted.loads_after).exists():
            if time.monotonic() > deadline:
                raise OSError("what loading waits for never came")
            time.sleep(0.01)
        return [Task(f"t{index}", {"n": index}) for index in range(self.counted.tasks)]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        collect = ("out",) if self.counted.collects else ()
        return TaskInput((Message("user", task.id),), collect=collect)

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        if self.counted.scorer_crashes:
            raise RuntimeError("as asked")
        return Evaluation({"passed": context.answer == "right"})


class Seeded(Counted):
    """The same tasks; each attempt is told its seed, and any answer passes."""

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        return TaskInput((Message("user", str(seed)),))

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        return Evaluation({"passed": True})


class Selfish(Counted):
    """Fails to share what it has read."""

    def share(self, earlier: Self) -> None:
        raise OSError("mine")


class Twice(Counted):
    """Its second task's id is also its last one's."""

    def load_tasks(self) -> Sequence[Task]:
        return [*super().load_tasks(), Task("t1", {"n": 0})]


class Weighed(Counted):
    """The same tasks, scored on a scale."""

    def info(self) -> BenchmarkInfo:
        metrics = (scalar("weight", bounds=(0, 1)),)
        return BenchmarkInfo("weighed", "1", metrics, "weight", runs_model_code=False)


class ScriptParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    sleep_s: float = 0.0
    right: dict[str, list[int]] = {}
    """Which attempts of which tasks are right; every one where it is empty."""
    fatal: list[str] = []
    errors: list[str] = []
    refused: bool = False
    large: int = 0
    opens: bool = False
    ledger: str | None = None
    """A file that gets a line for each time the agent runs."""
    steps: bool = False
    execs: str | None = None
    """A command line that is run in the agent's session."""


class Scripted(Harness):
    """Does what its parameters say."""

    api = 1
    id = "scripted"
    traits = HarnessTraits(calls_model=False)
    Params = ScriptParams

    async def run(self, context: HarnessContext) -> HarnessResult:
        script: Any = self.params
        if script.ledger:
            with Path(script.ledger).open("a") as file:
                file.write(f"{context.task_id} {context.attempt}\n")
        if script.execs:
            await (await context.session()).exec(script.execs.split())
        if script.opens:
            await context.session()
        if script.steps:
            context.step(Step("agent", "thinking"))
        if script.sleep_s:
            await asyncio.sleep(script.sleep_s)
        if context.task_id in script.fatal:
            raise AttemptFault(IssueCode.HARNESS_CRASHED, "as scripted")
        if context.task_id in script.errors:
            raise AttemptFault(IssueCode.AGENT_FAILED, "as scripted")
        if script.refused:
            raise AttemptFault(IssueCode.MODEL_ENDPOINT_REJECTED, "401", request_fault=True)
        if script.large:
            return HarnessResult("x" * script.large)
        is_right = not script.right or context.attempt in script.right.get(context.task_id, [])
        return HarnessResult("right" if is_right else "wrong")


class Counting(Harness):
    """Notes how many of it run at once: a line for each beginning, with the count."""

    api = 1
    id = "counting"
    traits = HarnessTraits(calls_model=False)
    Params = ScriptParams
    running: ClassVar[int] = 0

    async def run(self, context: HarnessContext) -> HarnessResult:
        script: Any = self.params
        Counting.running += 1
        with Path(script.ledger).open("a") as file:
            file.write(f"{Counting.running}\n")
        await asyncio.sleep(script.sleep_s)
        Counting.running -= 1
        return HarnessResult("right")


class Closing(Scripted):
    """Notes when it is let go of."""

    id = "closing"

    async def close(self) -> None:
        script: Any = self.params
        with Path(script.ledger).open("a") as file:
            file.write("closed\n")


class SaysItsSeed(Harness):
    """Answers with the seed in the task's text and its own."""

    api = 1
    id = "says_its_seed"
    traits = HarnessTraits(calls_model=False)

    async def run(self, context: HarnessContext) -> HarnessResult:
        return HarnessResult(f"{context.input.messages[0].content} {context.seed}")


class Stuck(Environment):
    """Opens sessions that cannot be closed."""

    api = 1
    id = "stuck"

    async def open(self, request: OpenRequest) -> Session:
        return FakeSession(FakeEnvironment(on_close=_for_ever), request)


class NoteParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    note: str | None = None


class Remote(Stuck):
    """Lives elsewhere; leaves a note when a session opens."""

    id = "remote"
    is_local = False
    Params = NoteParams

    async def open(self, request: OpenRequest) -> Session:
        params: Any = self.params
        if params.note:
            Path(params.note).touch()
        return await super().open(request)


class Elsewhere(Stuck):
    """Another provider of this machine, in which nothing need be opened."""

    id = "elsewhere"


class Absent(Stuck):
    """Cannot work here."""

    id = "absent"

    @classmethod
    def unavailable(cls) -> str | None:
        return "there is no such engine; install one"


async def _for_ever(_: Any) -> None:
    await asyncio.sleep(600)
