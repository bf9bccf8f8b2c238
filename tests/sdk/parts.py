"""A benchmark and a harness for the SDK's tests, as a user would write them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

import steelyard as sy


class SumsParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    tasks: int = Field(default=3, ge=1)
    prefix: str = "sum"


class Sums(sy.Benchmark):
    """Adds numbers; the answer is the sum."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "sums"
    Params: ClassVar[type[BaseModel]] = SumsParams
    params: SumsParams

    def info(self) -> sy.BenchmarkInfo:
        return sy.BenchmarkInfo(
            id=self.id,
            version="1",
            metrics=(sy.binary("right"), sy.scalar("chars", bounds=(0.0, 100.0))),
            primary="right",
            runs_model_code=False,
        )

    def load_tasks(self) -> Sequence[sy.Task]:
        return [sy.Task(f"{self.params.prefix}-{n}", {"n": n}) for n in range(self.params.tasks)]

    def task_input(self, task: sy.Task, *, attempt: int, seed: int) -> sy.TaskInput:
        return sy.TaskInput((sy.Message("user", f"{task.data['n']} + 1"),))

    def reference(self, task: sy.Task) -> sy.Reference:
        return sy.Reference(answer=str(task.data["n"] + 1))

    async def evaluate(self, task: sy.Task, context: sy.ScoringContext) -> sy.Evaluation:
        answer = context.answer or ""
        return sy.Evaluation(
            {"right": answer == str(task.data["n"] + 1), "chars": float(len(answer))}
        )


class SayParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    text: str = "1"
    sleep_s: float = 0.0
    api_key: str | None = None


class Say(sy.Harness):
    """Says what it is told to say, after a while; remembers whom it worked for."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "say"
    traits: ClassVar[sy.HarnessTraits] = sy.HarnessTraits(calls_model=False)
    Params: ClassVar[type[BaseModel]] = SayParams
    params: SayParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        self.seen: list[str] = []
        self.closed = 0

    async def run(self, context: sy.HarnessContext) -> sy.HarnessResult:
        self.seen.append(context.task_id)
        context.step(sy.Step("agent", self.params.text))
        if self.params.text == "crash":
            raise RuntimeError("the harness fell over")
        await asyncio.sleep(self.params.sleep_s)
        return sy.HarnessResult(self.params.text)

    async def close(self) -> None:
        self.closed += 1


def orchestration(**request: Any) -> dict[str, Any]:
    """One request on `Sums`, as a mapping."""
    return {
        "requests": [
            {
                "name": "r",
                "benchmark": {"id": Sums},
                "harness": {"id": Say},
                "model": {"id": "none"},
            }
            | request
        ]
    }
