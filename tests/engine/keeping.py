"""Components of launches that keep environments, and the command line that looks into them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pydantic import BaseModel, ConfigDict

from steelyard.cli.env import env
from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import Evaluation, ScoringContext, Task, TaskInput
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import Message
from tests.engine.components import Counted, CountParams
from tests.engine.launching import COMPONENTS, request

HERE = Path(__file__)


class LookParams(CountParams):
    mode: EvaluationMode = EvaluationMode.FRESH


class Looked(Counted):
    """Scored by a program in an environment."""

    id = "looked"
    Params = LookParams

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        params: Any = self.params
        return TaskInput((Message("user", task.id),), evaluation=params.mode)

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        session = await context.session()
        await session.write_file("scored.txt", b"by the scorer\n")
        await session.exec(["true"])
        return Evaluation({"passed": True})


class WriteParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    fails_once: str | None = None
    """A file: while it is not there, an execution makes it and fails."""
    sleeps: int | None = None
    """How long, in seconds, a program of the agent sleeps; that the limit ends is what is meant."""


class Writer(Harness):
    """Leaves a file in its environment."""

    api = 1
    id = "writer"
    traits = HarnessTraits(calls_model=False)
    Params = WriteParams

    async def run(self, context: HarnessContext) -> HarnessResult:
        params: Any = self.params
        session = await context.session()
        await session.write_file("agent.txt", b"by the agent\n")
        if params.sleeps:
            await session.exec(["sleep", str(params.sleeps)])
        if params.fails_once and not Path(params.fails_once).exists():
            Path(params.fails_once).touch()
            await session.write_file("agent.txt", b"by the one that failed\n")
            raise AttemptFault(IssueCode.ENVIRONMENT_LOST, "as asked")
        return HarnessResult("right")


def looking(
    environment: str = "sandbox",
    *,
    benchmark: dict[str, Any] | None = None,
    harness: dict[str, Any] | None = None,
    **execution: Any,
) -> dict[str, Any]:
    """Give a request that keeps its environments."""
    return request(
        benchmark={"id": f"{HERE}:Looked", "tasks": 1, **(benchmark or {})},
        harness={"id": f"{HERE}:Writer", **(harness or {})},
        environment={"id": environment},
        execution={"keep_environment": True, **execution},
    )


def command(*words: str, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `steelyard` as a person would; it must end with `status`."""
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", *words],
        env={**os.environ, "PYTHONPATH": str(COMPONENTS.parents[2]), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def listed(folder: Path) -> list[dict[str, Any]]:
    """Give what `env list` shows."""
    shown = CliRunner().invoke(env, ["list", str(folder), "--json"], catch_exceptions=False)
    document = json.loads(shown.stdout)
    assert document["problems"] == []
    found: list[dict[str, Any]] = document["environments"]
    return found


def closed(folder: Path, *words: str) -> dict[str, Any]:
    """Give what `env close` did."""
    done = CliRunner().invoke(
        env, ["close", str(folder), *(words or ("--all",)), "--json"], catch_exceptions=False
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def pasted(one: dict[str, Any], *words: str, status: int = 0) -> str:
    """Enter an environment with the very command that is shown, and a program behind it."""
    assert one["enter"][0] == "steelyard"
    return command(*one["enter"][1:], *words, status=status).stdout
