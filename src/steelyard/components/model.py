"""What a harness sees of a model: one call, its answer and what it consumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from steelyard.components.values import Message, Usage


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model asks for."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON text, perhaps malformed."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may ask for."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """Its arguments, as a JSON Schema of type `object`."""


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """What the model said before, the tools it asked for included."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    echo: Sequence[Mapping[str, Any]] = ()
    """`ModelResponse.echo` of the answer: given, it is sent back in place of the rest, since
    some protocols demand reasoning back as it was."""

    @property
    def role(self) -> str:
        """`assistant`."""
        return "assistant"


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """What the tools of the turn before gave back, one for each call."""

    results: tuple[tuple[str, str], ...]
    """(id of the call, what came of it)."""

    @property
    def role(self) -> str:
        """`tool`."""
        return "tool"

    @property
    def content(self) -> str:
        """All of it as one text."""
        return "\n".join(text for _, text in self.results)


Turn = Message | AssistantTurn | ToolTurn


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call, independent of protocol."""

    messages: Sequence[Turn]
    """A leading `system` message goes where the protocol keeps it."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Laid over the model's own `params`."""
    tools: Sequence[Tool] = ()
    """Offered in the protocol's own form; none is sent where there are none."""


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """One answer."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    stop_reason: str | None
    """The protocol's own word."""
    usage: Usage
    usage_known: bool
    """False where the endpoint sent none, or one that cannot be right."""
    model: str | None
    """The model that the endpoint says answered."""
    latency_s: float
    """The successful try alone."""
    retries: int
    reasoning: str | None = None
    echo: Sequence[Mapping[str, Any]] = ()
    """The answer in the protocol's own form, where it must come back as it was."""


class ModelClient(Protocol):
    """A model, bound to one attempt: waits, retries and counts on its behalf."""

    @property
    def model_id(self) -> str:
        """The id that is sent to the endpoint."""
        ...

    @property
    def usage(self) -> Usage:
        """Everything this attempt has consumed so far, failed calls included where known."""
        ...

    @property
    def calls_succeeded(self) -> int:
        """How many calls brought an answer."""
        ...

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call.

        Raises:
            AttemptFault: with the code that the contract's table gives its cause.
        """
        ...
