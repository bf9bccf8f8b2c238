"""A benchmark with a wrong reference, a task that doing nothing passes, and sound ones."""

from __future__ import annotations

from pathlib import Path

BENCHMARK = """
from collections.abc import Sequence

from steelyard import Benchmark, BenchmarkInfo, Evaluation, Reference, Task, TaskInput, binary
from steelyard import Message

TASKS = {"sound": ("a", "a"), "also-sound": ("b", "b"), "wrong": ("c", "d"), "free": (None, None)}


class Doubtful(Benchmark):
    api = 1
    id = "doubtful"
    has_references = True

    def info(self):
        return BenchmarkInfo(self.id, "1", (binary("passed"),), "passed", runs_model_code=False)

    def load_tasks(self):
        return [Task(name, {"right": right}) for name, (right, _) in TASKS.items()]

    def task_input(self, task, *, attempt, seed):
        return TaskInput((Message("user", "?"),))

    def reference(self, task):
        return Reference(TASKS[task.id][1] or "e") if self.has_references else None

    async def evaluate(self, task, context):
        right = task.data["right"]
        return Evaluation({"passed": right is None or context.answer == right})


class Bare(Doubtful):
    api = 1
    id = "bare"
    has_references = False
"""
DOUBTFUL = "./doubtful.py:Doubtful"
BARE = "./doubtful.py:Bare"


def write_benchmark(folder: Path) -> None:
    """Write the module that both ids name."""
    (folder / "doubtful.py").write_text(BENCHMARK)
