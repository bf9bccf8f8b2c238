"""A benchmark: numbers to be written as Roman numerals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

NUMERALS = (
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
)


def roman(number: int) -> str:
    """Write a number from 1 to 3999 as a Roman numeral."""
    written = ""
    for value, numeral in NUMERALS:
        count, number = divmod(number, value)
        written += numeral * count
    return written


class RomanNumeralsParams(BaseModel):
    """What people write beside `id` under `benchmark:`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tasks: Annotated[int, Field(ge=1, le=100)] = 5


class RomanNumerals(Benchmark):
    """Right is right; `shared` says how much of a wrong numeral's beginning is."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "roman-numerals"
    Params: ClassVar[type[BaseModel]] = RomanNumeralsParams
    params: RomanNumeralsParams

    def info(self) -> BenchmarkInfo:
        """Describe it."""
        return BenchmarkInfo(
            id=self.id,
            version="1",  # changes when scoring changes
            metrics=(binary("correct"), scalar("shared", bounds=(0.0, 1.0), on_failure=0.0)),
            primary="correct",
            runs_model_code=False,
            license="Apache-2.0",
        )

    def load_tasks(self) -> Sequence[Task]:
        """Spread the numbers over 14 to 3999, always the same ones."""
        numbers = [14 + index * 3985 // 100 for index in range(self.params.tasks)]
        return [
            Task(f"n{number}", {"number": number}, category=f"{len(str(number))} digits")
            for number in numbers
        ]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        """Ask for the numeral alone."""
        text = f"Write {task.data['number']} as a Roman numeral. Answer with the numeral alone."
        return TaskInput((Message("user", text),))

    def reference(self, task: Task) -> Reference | None:
        """Give the numeral."""
        return Reference(roman(task.data["number"]))

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        """Compare, without case and surrounding space. A wrong answer is a low score."""
        right = roman(task.data["number"])
        given = (context.answer or "")[:100].strip().upper()
        metrics: Mapping[str, Any] = {
            "correct": given == right,
            "shared": 1.0 if given == right else _shared(given, right) / len(right),
        }
        return Evaluation(metrics, details={"expected": right})


def _shared(given: str, right: str) -> float:
    """How many letters both begin with; never all of them, where one is longer."""
    same = next(
        (i for i, (a, b) in enumerate(zip(given, right, strict=False)) if a != b),
        min(len(given), len(right)),
    )
    return min(same, len(right) - 0.5)
