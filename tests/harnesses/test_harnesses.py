"""`chat`, `oracle` and `nop`, each against a context that notes what it touches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.benchmark import Reference, TaskInput
from steelyard.components.clock import AgentTimer, SystemClock
from steelyard.components.environment import NoParams, OpenRequest, Session
from steelyard.components.harness import Harness, HarnessResult, Step
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import ModelClient, ModelRequest, ModelResponse
from steelyard.components.registry import Kind, find
from steelyard.components.values import Message, Usage
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.chat import Chat
from steelyard.harnesses.nop import Nop
from steelyard.harnesses.oracle import Oracle


class OneAnswer:
    """A model that says one thing and keeps what it was asked."""

    def __init__(self, text: str = "42", reasoning: str | None = None) -> None:
        self.asked: list[ModelRequest] = []
        self._text, self._reasoning = text, reasoning

    async def generate(self, request: ModelRequest) -> ModelResponse:
        self.asked.append(request)
        return ModelResponse(
            self._text,
            (),
            "stop",
            Usage(3, 1, 0, 0, 1, 0.5),
            True,
            "m",
            0.1,
            0,
            reasoning=self._reasoning,
        )


class Context:
    """A harness context; sessions are real ones of `host_process`."""

    def __init__(
        self,
        messages: Sequence[Message] = (Message("user", "hi"),),
        reference: Reference | None = None,
        model: OneAnswer | None = None,
    ) -> None:
        self.task_id = "task"
        self.input = TaskInput(tuple(messages))
        self.attempt, self.seed = 1, 0
        self.reference = reference
        self.timer = AgentTimer(SystemClock())
        self.steps: list[Step] = []
        self.opened: Session | None = None
        self._model = model

    @property
    def model(self) -> ModelClient:
        assert self._model is not None, "the harness reached for a model"
        return self._model  # type: ignore[return-value]  # what the harness needs of it

    async def session(self) -> Session:
        if self.opened is None:
            self.opened = await HostProcess(NoParams()).open(OpenRequest("harness-test"))
        return self.opened

    def step(self, step: Step) -> None:
        self.steps.append(step)


def run(harness: Harness, context: Context, *read: str) -> tuple[HarnessResult, list[bytes]]:
    """Run a harness, then read files of the session it used."""

    async def whole() -> tuple[HarnessResult, list[bytes]]:
        try:
            result = await harness.run(context)
            found = [await (await context.session()).read_file(path) for path in read]
            return result, found
        finally:
            if context.opened is not None:
                await context.opened.close()

    return asyncio.run(whole())


def test_chat_sends_the_messages_as_they_are_in_one_request() -> None:
    messages = (Message("system", "be brief"), Message("user", "  2+2?\n"))
    model = OneAnswer(" 4 ")
    result, _ = run(Chat(NoParams()), Context(messages, model=model))
    assert [(tuple(r.messages), dict(r.params)) for r in model.asked] == [(messages, {})]
    assert result.answer == " 4 "


def test_chat_keeps_the_conversation_as_steps_with_the_reasoning() -> None:
    context = Context(
        (Message("user", "q"), Message("assistant", "a"), Message("user", "r")),
        model=OneAnswer("end", reasoning="because"),
    )
    run(Chat(NoParams()), context)
    assert [(s.source, s.message) for s in context.steps] == [
        ("user", "q"),
        ("agent", "a"),
        ("user", "r"),
        ("agent", "end"),
    ]
    assert context.steps[-1].extra == {"reasoning": "because", "stop_reason": "stop"}
    assert [s.usage for s in context.steps] == [None, None, None, Usage(3, 1, 0, 0, 1, 0.5)]


def test_chat_is_also_called_openai_chat() -> None:
    assert find(Kind.HARNESS, "openai_chat").component is Chat
    assert find(Kind.HARNESS, "openai_chat").id == "chat"


def test_nop_touches_neither_model_nor_environment() -> None:
    context = Context(reference=Reference(answer="secret"))
    result, _ = run(Nop(NoParams()), context)
    assert result.answer is None
    assert context.opened is None
    assert context.steps == []


def test_oracle_answers_with_the_reference_without_opening_anything() -> None:
    context = Context(reference=Reference(answer="seven"))
    result, _ = run(Oracle(NoParams()), context)
    assert result.answer == "seven"
    assert context.opened is None


@pytest.mark.integration
def test_oracle_lays_files_over_the_working_folder_before_its_command_runs(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.txt").write_text("from the reference")
    reference = Reference(files=tmp_path, command=("sh", "-c", "cp sub/a.txt b.txt"))
    _, found = run(Oracle(NoParams()), Context(reference=reference), "b.txt", "sub/a.txt")
    assert found == [b"from the reference", b"from the reference"]


def fault_of(reference: Reference | None) -> AttemptFault:
    with pytest.raises(AttemptFault) as caught:
        run(Oracle(NoParams()), Context(reference=reference))
    return caught.value


def test_a_task_without_a_reference_is_invalid_not_failed() -> None:
    fault = fault_of(None)
    assert fault.code is IssueCode.TASK_INVALID
    assert "no reference" in fault.message


@pytest.mark.integration
def test_a_reference_whose_command_fails_is_invalid_and_says_what_it_said() -> None:
    fault = fault_of(Reference(command=("sh", "-c", "echo broken >&2; exit 3")))
    assert fault.code is IssueCode.TASK_INVALID
    assert "exit code 3" in fault.message
    assert "broken" in fault.message


def test_traits_say_who_calls_models_and_who_sees_references() -> None:
    traits: dict[str, Any] = {h.id: h.traits for h in (Chat, Oracle, Nop)}
    assert {name: t.calls_model for name, t in traits.items()} == {
        "chat": True,
        "oracle": False,
        "nop": False,
    }
    assert [name for name, t in traits.items() if t.needs_reference] == ["oracle"]
