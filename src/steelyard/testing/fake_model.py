"""A model that says what a test wrote down, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from steelyard.components.clock import AgentTimer
from steelyard.components.model import ModelClient, ModelRequest, ModelResponse
from steelyard.components.values import NO_USAGE, Usage
from steelyard.models.allowance import Allowance

Answer = str | ModelResponse | Exception | Callable[[ModelRequest], Awaitable[ModelResponse]]
"""A text; a whole response; what is raised (`AttemptFault`, mostly); or what makes a response."""

ONE_CALL = Usage(input_tokens=10, output_tokens=5, requests=1)


def response(text: str, *, usage: Usage = ONE_CALL) -> ModelResponse:
    """Make a response that says a text and asks for no tool."""
    return ModelResponse(text, (), "stop", usage, True, "scripted", 0.0, 0)


class ScriptedModel:
    """A `ModelClient` that gives its answers in order, then the last one again and again."""

    def __init__(self, *answers: Answer, model_id: str = "scripted") -> None:
        self._answers = answers or ("",)
        self._model_id = model_id
        self._usage = NO_USAGE
        self._succeeded = 0
        self.requests: list[ModelRequest] = []

    @property
    def model_id(self) -> str:
        """The id that would be sent."""
        return self._model_id

    @property
    def usage(self) -> Usage:
        """What the answers so far say they consumed."""
        return self._usage

    @property
    def calls_succeeded(self) -> int:
        """How many calls brought an answer."""
        return self._succeeded

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Give the next answer; other tasks run meanwhile, as they would with a real model."""
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(request)
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            answer = response(answer)
        given = answer if isinstance(answer, ModelResponse) else await answer(request)
        self._usage = self._usage + given.usage
        self._succeeded += 1
        return given


class ScriptedEndpoint:
    """Gives every attempt the same `ScriptedModel`. A `ModelEndpoint`."""

    def __init__(self, *answers: Answer) -> None:
        self.model = ScriptedModel(*answers)

    def client(
        self, timer: AgentTimer, allowance: Allowance | None = None, seed: int | None = None
    ) -> ModelClient:
        """Give the model."""
        return self.model
