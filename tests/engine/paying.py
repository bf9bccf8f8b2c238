"""A harness that pays for each execution where a killed process cannot take it back."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.steps import Step
from steelyard.components.values import Usage
from tests.engine.launching import request

TASKS, K = 4, 2
LARGE_TASK = "t1"
"""Its answers lie in files beside the records."""


class PayParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    ledger: str
    large: str = LARGE_TASK


class Paying(Harness):
    """Appends to `paid` when it begins, to `done` when it ends."""

    api = 1
    id = "paying"
    traits = HarnessTraits(calls_model=False, uses_gateway=True)
    Params = PayParams

    async def run(self, context: HarnessContext) -> HarnessResult:
        params: Any = self.params
        note(Path(params.ledger) / "paid", f"{context.task_id} {context.attempt}")
        await asyncio.sleep(0.002)
        context.step(Step("agent", "paid", usage=Usage(requests=1, cost_usd=0.25)))
        note(Path(params.ledger) / "done", f"{context.task_id} {context.attempt}")
        large = context.task_id == params.large
        return HarnessResult("x" * 70_000 if large else "right")


def note(path: Path, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


def paying_request(folder: Path, *, reuse: bool) -> dict[str, Any]:
    return request(
        benchmark={"tasks": TASKS, "collects": True},
        harness={"id": f"{Path(__file__)}:Paying", "ledger": str(folder)},
        execution={"attempts": {"k": K}, "save_artifacts": ["out"], "analysis": True},
        runtime={"reuse": reuse},
    )
