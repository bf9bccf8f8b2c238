"""A benchmark in one file: sums of given sizes, drawn from a seed.

steelyard run ./examples/components/arithmetic.py:Arithmetic oracle none -P benchmark.tasks=5
"""

import random
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    Reference,
    ScoringContext,
    Task,
    TaskInput,
    binary,
    scalar,
)
from steelyard.components.values import Message


class ArithmeticParams(BaseModel):
    """What `-P benchmark.…` and the `benchmark:` section may set; anything else is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tasks: Annotated[int, Field(ge=1, le=10_000)] = 20
    digits: Annotated[int, Field(ge=1, le=30)] = 3
    seed: int = 0


class Arithmetic(Benchmark):
    """Sums of two numbers."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "arithmetic"
    Params: ClassVar[type[BaseModel]] = ArithmeticParams
    params: ArithmeticParams

    def info(self) -> BenchmarkInfo:
        """Name the metrics; `version` changes whenever scoring does."""
        return BenchmarkInfo(
            id=self.id,
            version="1",
            metrics=(binary("correct"), scalar("error", higher_is_better=False)),
            primary="correct",
            runs_model_code=False,
        )

    def load_tasks(self) -> Sequence[Task]:
        """Draw the tasks; the same parameters give the same ones, or nothing could be compared."""
        draw = random.Random(self.params.seed)  # noqa: S311 — tasks, not secrets
        top = 10**self.params.digits
        return [
            Task(f"sum-{n}", {"a": draw.randrange(top), "b": draw.randrange(top)})
            for n in range(self.params.tasks)
        ]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        """Say what the agent is told; nothing of the answer may be in it."""
        text = f"What is {task.data['a']} + {task.data['b']}? Answer with the number alone."
        return TaskInput((Message("user", text),))

    def generation_content(self, task: Task) -> Any:
        """Give all that the agent sees; a change here makes old work unusable."""
        return {"a": task.data["a"], "b": task.data["b"]}

    def reference(self, task: Task) -> Reference:
        """Give what `oracle` answers."""
        return Reference(answer=str(task.data["a"] + task.data["b"]))

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        """Score; a wrong or missing answer is a low score, an exception would be our own fault."""
        expected = task.data["a"] + task.data["b"]
        text = (context.answer or "").strip().replace(",", "")
        if not text.isdecimal() or len(text) > 40:
            return Evaluation({"correct": False}, details={"reason": "not a number"})
        found = int(text)
        return Evaluation({"correct": found == expected, "error": abs(found - expected)})
