"""The direct call: one request to the model, its text is the answer.

Nothing is added to the task's messages: what a chat model needs to be told, the benchmark says.
"""

from __future__ import annotations

from typing import ClassVar

from steelyard.components.harness import (
    Harness,
    HarnessContext,
    HarnessResult,
    HarnessTraits,
    Step,
)
from steelyard.components.model import ModelRequest


class Chat(Harness):
    """One non-streaming request per attempt, no environment.

    Tools that `model.params` offer are not run; that the model asked for them stands in its step.
    """

    id: ClassVar[str] = "chat"
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=True)

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Send the task's messages, answer with the model's text."""
        messages = context.input.messages
        for message in messages:
            # A model's turn in the prompt is an example, which no scorer may take for its work.
            is_example = message.role == "assistant"
            mark = {"given": True} if is_example else {}
            context.step(Step("agent" if is_example else message.role, message.content, mark))
        response = await context.model.generate(ModelRequest(messages))
        extra = {"reasoning": response.reasoning} if response.reasoning else {}
        if response.stop_reason is not None:  # that an answer was cut off is seen nowhere else
            extra["stop_reason"] = response.stop_reason
        context.step(Step("agent", response.text, extra, response.tool_calls, usage=response.usage))
        return HarnessResult(response.text, details={"stop_reason": response.stop_reason})
