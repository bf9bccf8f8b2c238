"""A benchmark of one task that a suite writes down, to run a harness in another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    Reference,
    ScoringContext,
    Task,
    TaskInput,
    binary,
)
from steelyard.components.values import Message


def probe_task(shown: TaskInput, reference: Reference | None) -> Task:
    """Write a task down as JSON."""
    known = reference or Reference()
    return Task(
        "probe",
        {
            "messages": [[message.role, message.content] for message in shown.messages],
            "workspace": [str(folder) for folder in shown.workspace],
            "answer_file": shown.answer_file,
            "answer_command": shown.answer_command,
            "collect": list(shown.collect),
            "config": dict(shown.config),
            "reference": {
                "answer": known.answer,
                "files": None if known.files is None else str(known.files),
                "command": known.command,
            },
        },
    )


class ProbeBenchmark(Benchmark):
    """Shows the task it is handed; `answered` is true where there is an answer."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "probe"

    def info(self) -> BenchmarkInfo:
        """One binary metric."""
        return BenchmarkInfo("probe", "1", (binary("answered"),), "answered", False)

    def load_tasks(self) -> Sequence[Task]:
        """One task that shows nothing."""
        return [probe_task(TaskInput((Message("user", "probe"),)), None)]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        """What was written down."""
        data: Mapping[str, Any] = task.data
        command = data["answer_command"]
        return TaskInput(
            tuple(Message(role, content) for role, content in data["messages"]),
            workspace=tuple(Path(folder) for folder in data["workspace"]),
            answer_file=data["answer_file"],
            answer_command=None if command is None else tuple(command),
            collect=tuple(data["collect"]),
            config=data["config"],
        )

    def reference(self, task: Task) -> Reference | None:
        """What was written down."""
        known = task.data["reference"]
        return Reference(
            known["answer"],
            None if known["files"] is None else Path(known["files"]),
            None if known["command"] is None else tuple(known["command"]),
        )

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        """Only whether there is an answer."""
        return Evaluation({"answered": context.answer is not None})
