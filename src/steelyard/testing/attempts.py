"""Run one attempt of a benchmark through the engine: no plan, no records, no command line."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import ClassVar, Literal

from steelyard.components.benchmark import Benchmark, Task
from steelyard.components.clock import Clock, SystemClock
from steelyard.components.environment import Environment, Kept, NoParams
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.issues import Phase
from steelyard.components.steps import Step
from steelyard.engine.attempt import execute
from steelyard.engine.services import Services
from steelyard.engine.spec import ComponentSpec, ExecutionResult, ExecutionSpec, RequestSpec
from steelyard.testing.fake_model import Answer, ScriptedEndpoint


class FixedAnswer(Harness):
    """A harness that gives one answer, in the file where the task wants it.

    Args:
        answer: what it says; None for nothing.
    """

    api: ClassVar[int] = 1
    id: ClassVar[str] = "fixed_answer"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=False)

    def __init__(self, answer: str | None) -> None:
        super().__init__(NoParams())
        self._answer = answer

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Answer."""
        path = context.input.answer_file
        if path is not None and self._answer is not None:
            session = await context.session()
            await session.write_file(path, self._answer.encode("utf-8", "surrogatepass"))
        return HarnessResult(self._answer)


class EventLog:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.sessions: list[tuple[str, str]] = []
        """Token and `opened`, `closed` or `kept`, in order."""
        self.checkpoints: list[str] = []
        self.steps: list[Step] = []
        """Those that are recorded as they happen."""

    def phase(self, token: str, phase: Phase) -> None:
        """Keep a phase."""
        self.phases.append(phase)

    def session(self, token: str, state: Literal["opened", "closed"], provider: str) -> None:
        """Keep what became of a session."""
        self.sessions.append((token, state))

    def kept(self, token: str, provider: str, kept: Kept) -> None:
        """Keep that a session stands."""
        self.sessions.append((token, "kept"))

    def checkpoint(self, token: str, path: str) -> None:
        """Keep a checkpoint."""
        self.checkpoints.append(path)

    def step(self, token: str, step: Step) -> None:
        """Keep a step."""
        self.steps.append(step)


async def run_attempt(
    benchmark: Benchmark,
    task: Task,
    harness: Harness,
    environment: Environment,
    *,
    model: Sequence[Answer] = (),
    judge: Sequence[Answer] = (),
    clock: Clock | None = None,
    observer: EventLog | None = None,
) -> ExecutionResult:
    """Run one execution of one attempt: set-up, agent, collection, scoring, clean-up.

    Args:
        benchmark: whose task it is.
        task: the task.
        harness: the agent.
        environment: opens the sessions of agent and scorer.
        model: what the agent's model says, call by call; nothing: the model id is `none`.
        judge: what the scorer's own model says.
        clock: the machine's own by default.
        observer: is told of phases and sessions.
    """
    component = ComponentSpec("suite")
    services = Services(
        benchmark,
        harness,
        environment,
        ScriptedEndpoint(*model) if model else None,
        clock or SystemClock(),
        judge_endpoint=(lambda _settings: ScriptedEndpoint(*judge)) if judge else None,
    )
    request = RequestSpec("suite", component, component, component, None)
    token = f"suite-{secrets.token_hex(8)}"
    return await execute(
        ExecutionSpec(request, task, 1, 1, token, 1), services, observer or EventLog()
    )


def run_attempt_now(
    benchmark: Benchmark, task: Task, harness: Harness, environment: Environment
) -> ExecutionResult:
    """Run one attempt in an event loop of its own, and close the environment."""

    async def whole() -> ExecutionResult:
        try:
            return await run_attempt(benchmark, task, harness, environment)
        finally:
            await environment.close()

    return asyncio.run(whole())
