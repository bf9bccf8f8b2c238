"""Agents of the sets in these tests: each does one thing that a test looks at."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.steps import Step
from steelyard.components.values import Usage


class Ledger(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    ledger: str
    """A folder that outlives the run."""
    usd: float = 0.25
    seconds: float = 0.002


class Paying(Harness):
    """Appends to `paid` when it begins, to `done` when it ends, and costs money."""

    api = 1
    id = "paying"
    traits = HarnessTraits(calls_model=False, uses_gateway=True)
    Params = Ledger

    async def run(self, context: HarnessContext) -> HarnessResult:
        params: Any = self.params
        name = f"{context.seed} {context.task_id}"
        note(Path(params.ledger) / "paid", name)
        await asyncio.sleep(params.seconds)
        context.step(Step("agent", "paid", usage=Usage(requests=1, cost_usd=params.usd)))
        note(Path(params.ledger) / "done", name)
        return HarnessResult("right")


class Flaky(Harness):
    """Fails FATAL until the file `mended` is there; counts its executions in `tried`."""

    api = 1
    id = "flaky"
    traits = HarnessTraits(calls_model=False)
    Params = Ledger

    async def run(self, context: HarnessContext) -> HarnessResult:
        params: Any = self.params
        note(Path(params.ledger) / "tried", context.task_id)
        if context.task_id == "case-2" and not (Path(params.ledger) / "mended").exists():
            raise AttemptFault(IssueCode.ENVIRONMENT_LOST, "the machine went away")
        if context.task_id == "case-3":
            raise AttemptFault(IssueCode.TURN_LIMIT, "too many turns")
        return HarnessResult("right")


class Sleeping(Harness):
    """Sleeps until it is ended; says in `asleep` that it does."""

    api = 1
    id = "sleeping"
    traits = HarnessTraits(calls_model=False)
    Params = Ledger
    naps: ClassVar[float] = 600

    async def run(self, context: HarnessContext) -> HarnessResult:
        params: Any = self.params
        if (Path(params.ledger) / "awake").exists():
            return HarnessResult("right")
        note(Path(params.ledger) / "asleep", context.task_id)
        await asyncio.sleep(self.naps)
        return HarnessResult("late")


def note(path: Path, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)
