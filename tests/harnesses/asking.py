"""A benchmark whose one task says what a test wants, and a way to run `command` on it for real."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    ScoringContext,
    Task,
    TaskInput,
    TaskLimits,
    binary,
)
from steelyard.components.clock import SystemClock
from steelyard.components.values import Message
from steelyard.config.schema.request import ModelSettings
from steelyard.config.secrets import SecretStore
from steelyard.engine.executor import InProcessExecutor
from steelyard.engine.services import EndpointPool, Maker
from steelyard.engine.spec import ComponentSpec, ExecutionResult, ExecutionSpec, RequestSpec
from tests.engine.fakes import Watch

AGENT = Path(__file__).with_name("agent.py").read_text()
"""An agent that asks its model once; its words are options."""


class AskParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    prompt: str = "hello"
    system: str | None = None
    right: str | None = None
    collects: bool = False
    run_seconds: float | None = None
    scores_timed_out: bool = False


class Asking(Benchmark):
    """One task; passes where the answer is `right`."""

    api = 1
    id = "asking"
    Params = AskParams

    def info(self) -> BenchmarkInfo:
        return BenchmarkInfo("asking", "1", (binary("passed"),), "passed", runs_model_code=False)

    def load_tasks(self) -> Sequence[Task]:
        return [Task("t", {})]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        asked: Any = self.params
        system = () if asked.system is None else (Message("system", asked.system),)
        return TaskInput(
            (*system, Message("user", asked.prompt)),
            collect=(".",) if asked.collects else (),
            limits=TaskLimits(run_seconds=asked.run_seconds),
            scores_timed_out=asked.scores_timed_out,
        )

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        asked: Any = self.params
        found = {
            path.name: path.read_text("utf-8", "replace")
            for folder in context.artifacts.values()
            for path in sorted(folder.iterdir())
            if path.is_file()
        }
        names = sorted(path.name for one in context.artifacts.values() for path in one.iterdir())
        return Evaluation(
            {"passed": asked.right is None or context.answer == asked.right},
            details={"names": names, "files": found},
        )


PLACES: dict[str, dict[str, Any]] = {}
"""Parameters of environments that need some: the engine of this test run, for one."""


def model_settings(url: str, **more: Any) -> dict[str, Any]:
    return ModelSettings(id="m", base_url=url).model_dump(mode="json") | more


def run_command(
    harness: dict[str, Any],
    *,
    environment: str = "host_process",
    model: dict[str, Any] | None = None,
    watch: Watch | None = None,
    cancel_when: str | None = None,
    attempts: int = 1,
    bounds: dict[str, Any] | None = None,
    **task: Any,
) -> ExecutionResult:
    """Run one attempt and give its result.

    Args:
        harness: parameters of `command`.
        environment: a provider's id.
        model: `ModelSettings` as JSON; None for model id `none`.
        watch: is told of its steps.
        cancel_when: cancels the attempt once a step's message holds this text.
        attempts: how many at once; the last one's result is given.
        bounds: `attempt_usd`, `attempt_tokens`, `prices`.
        task: parameters of the benchmark.
    """
    benchmark = ComponentSpec(f"{Path(__file__)}:Asking", task)
    request = RequestSpec(
        "r",
        benchmark,
        ComponentSpec("command", harness),
        ComponentSpec(environment, PLACES.get(environment, {})),
        model,
        **(bounds or {}),
    )
    seen = watch or Watch()

    async def main() -> ExecutionResult:
        clock, store = SystemClock(), SecretStore({})
        executor = InProcessExecutor(Maker(store, clock, EndpointPool(store, clock), Path.cwd()))
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(
                        executor.execute(
                            ExecutionSpec(
                                request, Task("t", {}), n + 1, 1, f"c{secrets.token_hex(8)}", 1
                            ),
                            seen,
                        )
                    )
                    for n in range(attempts)
                ]
                while cancel_when is not None and not tasks[0].done():
                    await asyncio.sleep(0.01)
                    if any(cancel_when in step.message for step in seen.steps):
                        tasks[0].cancel()
                        break
            assert not list(store.items())  # every token is forgotten
            return tasks[-1].result()
        finally:
            await executor.close()

    return asyncio.run(main())


def last_step(result: ExecutionResult) -> Any:
    """What the program's own last step holds."""
    return result.steps[-1].extra
