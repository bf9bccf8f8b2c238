"""A harness in one file: ask, then let the model look at its answer once more.

steelyard run humaneval ./examples/components/second_thought.py:SecondThought MODEL
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits, Step
from steelyard.components.model import ModelRequest
from steelyard.components.values import Message


class SecondThoughtParams(BaseModel):
    """What `-P harness.…` and the `harness:` section may set."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rounds: Annotated[int, Field(ge=1, le=10)] = 1
    question: str = (
        "Check your answer. Give the final answer in full, whether you changed it or not."
    )


class SecondThought(Harness):
    """Two or more calls in one conversation; the last answer counts."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "second_thought"
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=True)
    Params: ClassVar[type[BaseModel]] = SecondThoughtParams
    params: SecondThoughtParams

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Work on one task. Errors of the model client pass through: the engine names their cause.

        One instance serves every attempt at once, so nothing of an attempt is kept on `self`.
        """
        messages = list(context.input.messages)
        answer = await self._ask(context, messages)
        for _ in range(self.params.rounds):
            messages += [Message("assistant", answer), Message("user", self.params.question)]
            answer = await self._ask(context, messages)
        return HarnessResult(answer, details={"rounds": self.params.rounds})

    async def _ask(self, context: HarnessContext, messages: list[Message]) -> str:
        response = await context.model.generate(ModelRequest(messages))
        context.step(Step("agent", response.text))
        return response.text
