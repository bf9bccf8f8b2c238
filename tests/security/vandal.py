"""A harness that runs one script in the agent's environment, as a hostile agent would."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits


class Script(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    script: str
    answer: str = "done"


class Vandal(Harness):
    """Runs `script` with `sh`."""

    api = 1
    id = "vandal"
    Params = Script
    traits = HarnessTraits(calls_model=False, runs_model_code=True)
    params: Script

    async def run(self, context: HarnessContext) -> HarnessResult:
        session = await context.session()
        done = await session.exec(["sh", "-c", self.params.script], timeout_s=30)
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        return HarnessResult(self.params.answer if self.params.answer != "said" else said)
