"""A harness of one's own, as an instance that remembers what it saw.

python examples/sdk/own_harness.py MODEL_URL
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict

import steelyard as sy

PACK = Path(__file__).parents[1] / "packs" / "refund-triage"


class VotingParams(BaseModel):
    """How often the model is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    votes: int = 3


class Voting(sy.Harness):
    """Asks several times, and answers what was said most often."""

    api = 1
    id = "voting"
    version = "1"
    traits = sy.HarnessTraits(calls_model=True)
    Params = VotingParams
    params: VotingParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        self.agreed: dict[str, float] = {}

    async def run(self, context: sy.HarnessContext) -> sy.HarnessResult:
        """Take the majority."""
        request = sy.ModelRequest(context.input.messages)
        answers = [(await context.model.generate(request)).text for _ in range(self.params.votes)]
        answer, count = Counter(answers).most_common(1)[0]
        self.agreed[context.task_id] = count / len(answers)
        context.step(sy.Step("agent", answer))
        return sy.HarnessResult(answer)


async def main(model_url: str) -> None:
    """Run it, and say how often its votes agreed."""
    harness = Voting(VotingParams(votes=3))
    run = await sy.arun(PACK, harness, sy.Model("small", base_url=model_url), limit=3)
    print(run.require_completed().score())
    print(f"agreement: {sum(harness.agreed.values()) / len(harness.agreed):.2f}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
