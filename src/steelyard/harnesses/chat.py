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
    """One non-streaming request per attempt, no tools, no environment."""

    id: ClassVar[str] = "chat"
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=True)

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Send the task's messages, answer with the model's text."""
        messages = context.input.messages
        for message in messages:
            source = "agent" if message.role == "assistant" else message.role
            context.step(Step(source, message.content))
        response = await context.model.generate(ModelRequest(messages))
        extra = {"reasoning": response.reasoning} if response.reasoning else {}
        context.step(Step("agent", response.text, extra))
        return HarnessResult(response.text, details={"stop_reason": response.stop_reason})
