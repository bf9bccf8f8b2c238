"""A harness: ask several times at once, answer what was said most often."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits, Step
from steelyard.components.model import ModelRequest, ModelResponse


class VoteParams(BaseModel):
    """What people write beside `id` under `harness:`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    votes: Annotated[int, Field(ge=1, le=25)] = 3


class Vote(Harness):
    """Nothing of an attempt is kept on `self`: one instance serves all of them at once."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "vote"
    version: ClassVar[str] = "1"  # changes when behaviour changes
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=True)
    Params: ClassVar[type[BaseModel]] = VoteParams
    params: VoteParams

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Ask; of answers said equally often take the one that came first in order of asking."""
        for message in context.input.messages:
            context.step(Step("user", message.content))
        responses = await self._ask(context)
        for response in responses:
            context.step(Step("agent", response.text, usage=response.usage))
        votes = Counter(response.text.strip() for response in responses)
        answer, count = votes.most_common(1)[0]
        return HarnessResult(answer or None, details={"votes": count, "asked": len(responses)})

    async def _ask(self, context: HarnessContext) -> list[ModelResponse]:
        request = ModelRequest(context.input.messages)
        try:
            async with asyncio.TaskGroup() as group:  # every task ends with it, whatever happens
                asked = [
                    group.create_task(context.model.generate(request))
                    for _ in range(self.params.votes)
                ]
        except* Exception as faults:
            # The engine knows causes, not groups of them: pass on the first.
            raise faults.exceptions[0] from faults
        return [task.result() for task in asked]
