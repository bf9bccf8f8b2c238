"""What the model's answers become, and what a step is said to have consumed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import AssistantTurn, ModelResponse
from steelyard.components.steps import Step
from steelyard.components.values import Message, Usage
from steelyard.harnesses.terminus2.asking import MAX_REFUSED, Asking
from steelyard.testing.fake_harness_context import FakeHarnessContext
from steelyard.testing.fake_model import ScriptedModel

ASKED = [
    {"role": "user", "content": "do"},
    {"role": "assistant", "content": "done"},
    {"role": "user", "content": "sure?"},
]


def asking(*answers: Any) -> tuple[Asking, FakeHarnessContext]:
    context = FakeHarnessContext(model=ScriptedModel(*answers))
    return Asking(context), context


def answered(text: str = "x", *, known: bool = True, stop: str = "stop") -> ModelResponse:
    return ModelResponse(text, (), stop, Usage(10, 5, 4, requests=1), known, "m-1", 0.0, 0, "hm")


def test_the_conversation_goes_out_in_our_turns_and_the_answer_comes_back() -> None:
    one, context = asking(answered("yes"))
    said = asyncio.run(one.answer(ASKED))
    model = context.model
    assert isinstance(model, ScriptedModel)
    assert model.requests[0].messages == (
        Message("user", "do"),
        AssistantTurn("done"),
        Message("user", "sure?"),
    )
    assert said == {
        "text": "yes",
        "reasoning": "hm",
        "model": "m-1",
        "input_tokens": 10,
        "output_tokens": 5,
        "cached_tokens": 4,
    }


def test_a_step_of_the_agent_has_what_all_its_calls_consumed() -> None:
    one, context = asking(answered(stop="length"), answered(), answered())
    for _ in range(2):
        asyncio.run(one.answer(ASKED))
    one.tell(Step("user", "told"))
    one.tell(Step("agent", "first"))
    asyncio.run(one.answer(ASKED))
    one.tell(Step("agent", "second"))
    usages = [step.usage for step in context.steps]
    assert usages == [None, Usage(20, 10, 8, requests=2), Usage(10, 5, 4, requests=1)]
    assert context.kept_answer == "second"


def test_what_is_unknown_of_one_call_is_unknown_of_the_step() -> None:
    one, context = asking(answered(known=False), answered(), answered())
    asyncio.run(one.answer(ASKED))
    asyncio.run(one.answer(ASKED))
    one.tell(Step("agent", "first"))
    asyncio.run(one.answer(ASKED))
    one.tell(Step("agent", "second"))
    assert [step.usage is None for step in context.steps] == [True, False]


def test_refusals_in_a_row_end_it_and_an_answer_between_begins_anew() -> None:
    overflow = AttemptFault(IssueCode.CONTEXT_OVERFLOW, "too long")
    few = [overflow] * (MAX_REFUSED - 1)
    one, _ = asking(*few, answered(), overflow)
    for _ in few:
        assert asyncio.run(one.answer(ASKED)) == {"error": "context"}
    assert asyncio.run(one.answer(ASKED))["text"] == "x"
    for _ in few:
        asyncio.run(one.answer(ASKED))
    with pytest.raises(AttemptFault) as caught:
        asyncio.run(one.answer(ASKED))
    assert caught.value is overflow
