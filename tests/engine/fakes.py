"""Components whose every phase a test can script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

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
from steelyard.components.environment import (
    Environment,
    EnvironmentDescription,
    ExecResult,
    NoParams,
    OpenRequest,
    Session,
)
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.issues import Phase
from steelyard.components.steps import Step
from steelyard.components.values import Message, Trust
from steelyard.engine.services import Services
from steelyard.engine.spec import ComponentSpec, ExecutionSpec, RequestSpec, TimeLimits

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


class FakeSession(Session):
    """Keeps what was asked of it."""

    def __init__(self, environment: FakeEnvironment, token: str) -> None:
        self.environment = environment
        self.token = token
        self.workdir = "/fake"
        self.trust = environment.trust
        self.description = EnvironmentDescription("fake")
        self.closed = 0

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
        max_output_bytes: int = 0,
    ) -> ExecResult:
        return ExecResult(0, b"", b"")

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self.environment.files[path] = data

    async def read_file(self, path: str, *, max_bytes: int = 0) -> bytes:
        try:
            return self.environment.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    async def upload(self, source: Path, path: str) -> None:
        self.environment.uploads.append((self.token, path))

    async def download(self, path: str, target: Path) -> None:
        data = await self.read_file(path)
        await asyncio.to_thread(target.write_bytes, data)

    async def close(self) -> None:
        if self.environment.on_close is not None:
            await self.environment.on_close(self)
        self.closed += 1


class FakeEnvironment(Environment):
    """Opens sessions that do nothing."""

    api = 1
    id = "fake"
    best_trust: ClassVar[Trust] = Trust.ISOLATED

    def __init__(
        self,
        *,
        trust: Trust = Trust.ISOLATED,
        on_open: Hook | None = None,
        on_close: Hook | None = None,
    ) -> None:
        super().__init__(NoParams())
        self.trust = trust
        self.on_open = on_open
        self.on_close = on_close
        self.sessions: list[FakeSession] = []
        self.files: dict[str, bytes] = {}
        self.uploads: list[tuple[str, str]] = []

    async def open(self, request: OpenRequest) -> Session:
        if self.on_open is not None:
            await self.on_open(request)
        session = FakeSession(self, request.token)
        self.sessions.append(session)
        return session


class Watch:
    """Keeps what an observer was told."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.sessions: list[tuple[str, str]] = []
        self.steps: list[Step] = []

    def phase(self, token: str, phase: Phase) -> None:
        self.phases.append(phase)

    def session(self, token: str, state: str, provider: str) -> None:
        self.sessions.append((token, state))

    def step(self, token: str, step: Step) -> None:
        self.steps.append(step)


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
