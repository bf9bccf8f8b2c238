"""Components whose score is a digest of all that was scored: any wrong data gives another score.

What the agent does depends on a stamp, a file outside of every identity: work of an earlier run and
work that was done again are told apart by their scores alone.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from steelyard.components.artifacts import ArtifactSpec
from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    ScoringContext,
    Task,
    TaskInput,
    scalar,
)
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits, Step
from steelyard.components.values import Message

LARGE = 80_000
"""Characters of an answer that lies beside its record."""
KINDS = ("plain", "large", "files", "tree", "steps")


def weight(version: str, answer: str, files: dict[str, bytes], steps: Sequence[str]) -> float:
    """The score of this work, in [0, 1)."""
    seen = hashlib.sha256(repr((version, answer, sorted(files.items()), list(steps))).encode())
    return int.from_bytes(seen.digest()[:6], "big") / 2**48


def work_of(kind: str, stamp: str) -> tuple[str, dict[str, bytes], list[str]]:
    """What the agent answers, leaves as files and says in steps."""
    answer = f"{kind} {stamp} " + ("x" * LARGE if kind == "large" else "")
    files: dict[str, bytes] = {}
    if kind == "files":
        files = {"out": f"out {stamp}".encode() * 50}
    if kind == "tree":
        files = {f"found/{n}.txt": f"{n} {stamp}".encode() * 20 for n in range(3)}
    return answer, files, [f"step of {stamp}"] * 3 if kind == "steps" else []


class WeighingParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    version: str = "1"
    kinds: tuple[str, ...] = KINDS
    fails: bool = False


class Weighing(Benchmark):
    """A task for each kind of work."""

    api = 1
    id = "weighing"
    Params = WeighingParams

    def info(self) -> BenchmarkInfo:
        params: Any = self.params
        metrics = (scalar("weight", bounds=(0, 1)),)
        return BenchmarkInfo("weighing", params.version, metrics, "weight", runs_model_code=False)

    def load_tasks(self) -> Sequence[Task]:
        params: Any = self.params
        return [Task(kind, {"kind": kind}) for kind in params.kinds]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        tree = ArtifactSpec(globs=("found/**",)) if task.id == "tree" else None
        return TaskInput(
            (Message("user", task.id),),
            collect=("out",) if task.id == "files" else (),
            artifacts=tree,
            scores_steps=task.id == "steps",
        )

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        params: Any = self.params
        if params.fails:
            await asyncio.sleep(0.15)  # long enough for its work to be put on the disk
            raise RuntimeError("as asked")
        files = {path: source.read_bytes() for path, source in context.artifacts.items()}
        steps = [step.message for step in context.steps] if task.id == "steps" else []
        return Evaluation({"weight": weight(params.version, context.answer or "", files, steps)})


class StampParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    folder: str = ""
    """Holds `stamp` and gets `ran`, a line for each time the agent runs."""


class Stamped(Harness):
    """Does the work that its task names."""

    api = 1
    id = "stamped"
    traits = HarnessTraits(calls_model=False)
    Params = StampParams

    async def run(self, context: HarnessContext) -> HarnessResult:
        params: Any = self.params
        folder = Path(params.folder)
        with (folder / "ran").open("a") as ran:
            ran.write(f"{context.task_id}\n")
        answer, files, steps = work_of(context.task_id, (folder / "stamp").read_text())
        if files:
            session = await context.session()
            for path, data in files.items():
                await session.write_file(path, data)
        for message in steps:
            context.step(Step("agent", message))
        return HarnessResult(answer)
