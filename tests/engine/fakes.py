"""Components whose every phase a test can script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    EnvironmentNeeds,
    Evaluation,
    ScoringContext,
    Task,
    TaskInput,
    TaskLimits,
    binary,
)
from steelyard.components.clock import SystemClock
from steelyard.components.environment import NoParams
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.values import Message
from steelyard.engine.services import Services
from steelyard.engine.spec import ComponentSpec, ExecutionSpec, RequestSpec, TimeLimits
from steelyard.testing.attempts import EventLog
from steelyard.testing.fake_environment import FakeEnvironment as FakeEnvironment
from steelyard.testing.fake_environment import FakeSession as FakeSession

Watch = EventLog
Hook = Callable[[Any], Awaitable[Any]]


class FakeBenchmark(Benchmark):
    """Scores `passed` true where the answer is `right`."""

    api = 1
    id = "fake"

    def __init__(
        self,
        *,
        tasks: int = 1,
        needs: bool = False,
        limits: TaskLimits | None = None,
        on_evaluate: Hook | None = None,
    ) -> None:
        super().__init__(NoParams())
        self.tasks = tasks
        self.needs = needs
        self.limits = limits or TaskLimits()
        self.on_evaluate = on_evaluate

    def info(self) -> BenchmarkInfo:
        return BenchmarkInfo("fake", "1", (binary("passed"),), "passed", runs_model_code=False)

    def load_tasks(self) -> Sequence[Task]:
        return [Task(f"t{index}", {"q": index}) for index in range(self.tasks)]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        return TaskInput(
            (Message("user", task.id),),
            collect=("out",) if self.needs else (),
            needs=EnvironmentNeeds(),
            limits=self.limits,
        )

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        if self.on_evaluate is not None:
            found = await self.on_evaluate(context)
            if found is not None:
                assert isinstance(found, Evaluation)
                return found
        return Evaluation({"passed": context.answer == "right"})


class FakeHarness(Harness):
    """Answers `right`, or what its hook returns."""

    api = 1
    id = "fake"
    traits = HarnessTraits(calls_model=False)

    def __init__(self, on_run: Hook | None = None) -> None:
        super().__init__(NoParams())
        self.on_run = on_run

    async def run(self, context: HarnessContext) -> HarnessResult:
        if self.on_run is None:
            return HarnessResult("right")
        found = await self.on_run(context)
        return found if isinstance(found, HarnessResult) else HarnessResult(found)


def services(
    benchmark: FakeBenchmark | None = None,
    harness: FakeHarness | None = None,
    environment: FakeEnvironment | None = None,
) -> Services:
    return Services(
        benchmark or FakeBenchmark(),
        harness or FakeHarness(),
        environment or FakeEnvironment(),
        None,
        SystemClock(),
    )


def spec(limits: TimeLimits | None = None, *, grace_s: float = 5.0) -> ExecutionSpec:
    component = ComponentSpec("fake")
    request = RequestSpec(
        "r", component, component, component, None, limits or TimeLimits(), cleanup_grace_s=grace_s
    )
    return ExecutionSpec(request, Task("t", {"q": 1}), 1, 1, "tok", 1)
