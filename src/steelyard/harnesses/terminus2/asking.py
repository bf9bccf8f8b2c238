"""The model's answers to the package: what comes of a call, and when it is no use to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from steelyard.components.harness import HarnessContext
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import AssistantTurn, ModelRequest, Turn
from steelyard.components.steps import Step
from steelyard.components.values import Message, Usage

MAX_REFUSED: Final = 12
"""Calls in a row that brought nothing usable. The package asks again without end: one summary of a
conversation that is too long takes up to six calls, and then it tries once more."""
_CUT: Final = frozenset({"length", "max_tokens", "max_output_tokens"})


class Asking:
    """One attempt's conversation with its model, and its steps."""

    def __init__(self, context: HarnessContext) -> None:
        self._context = context
        self._refused = 0
        self._usage: Usage | None = None
        """Of the calls since the last step of the agent; None where one is not known, or none."""
        self._calls = 0
        self.last_text: str | None = None
        self.overflow: AttemptFault | None = None
        """The last refusal of a conversation that was too long."""

    async def answer(self, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Ask the model; give what the package is told.

        Raises:
            AttemptFault: the model cannot be asked, or answers nothing usable again and again.
        """
        turns = tuple(_turn(one) for one in messages)
        try:
            response = await self._context.model.generate(ModelRequest(turns))
        except AttemptFault as fault:
            if fault.code is not IssueCode.CONTEXT_OVERFLOW:
                raise
            self.overflow = fault
            self._count_refused(fault)
            return {"error": "context"}
        self._add(response.usage if response.usage_known else None)
        if response.stop_reason in _CUT:
            self._count_refused(
                AttemptFault(
                    IssueCode.MODEL_OUTPUT_TOO_LARGE,
                    f"the model's last {MAX_REFUSED} answers were all cut off; "
                    "give it more output tokens in model.params",
                )
            )
            return {"error": "output", "text": response.text}
        self._refused = 0
        return {
            "text": response.text,
            "reasoning": response.reasoning,
            "model": response.model,
            "input_tokens": response.usage.input_tokens,
            "output_tokens": response.usage.output_tokens,
            "cached_tokens": response.usage.cached_tokens,
        }

    def tell(self, step: Step) -> None:
        """Put a step on record; the agent's own with what its calls consumed."""
        if step.source == "agent":
            step = replace(step, usage=self._usage)
            self._usage, self._calls = None, 0
            self.last_text = step.message or self.last_text
            self._context.keep_answer(self.last_text)
        self._context.step(step)

    def _add(self, usage: Usage | None) -> None:
        self._calls += 1
        if usage is None or (self._usage is None and self._calls > 1):
            self._usage = None
        else:
            self._usage = usage if self._usage is None else self._usage + usage

    def _count_refused(self, fault: AttemptFault) -> None:
        self._refused += 1
        if self._refused >= MAX_REFUSED:
            raise fault


def _turn(message: Mapping[str, str]) -> Turn:
    role, content = message["role"], message["content"]
    if role == "assistant":
        return AssistantTurn(content)
    return Message("system" if role == "system" else "user", content)
