"""What a protocol adapter is, and what it makes of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.components.model import ModelRequest, ToolCall
from steelyard.models.token_counts import TokenCounts as TokenCounts


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    stop_reason: str | None
    counts: TokenCounts | None
    """None where the endpoint sent none, or counts that cannot be right."""
    model: str | None
    reasoning: str | None
    echo: tuple[Mapping[str, Any], ...] = ()
    """The answer's own parts, where the protocol wants them back as they were."""


class EndpointError(Exception):
    """An answer of status 2xx that holds an error, as some gateways send; `status` is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """One protocol: pure functions and the constants that go with them."""

    name: str
    path: str
    """Behind the base URL."""
    default_base_url: str
    reserved: frozenset[str]
    """Fields of the body that `model.params` may not hold: they are the harness's own."""
    auth_headers: Callable[[str], Mapping[str, str]]
    """The headers that carry a key."""
    fixed_headers: Mapping[str, str]
    build: Callable[[str, ModelRequest, Mapping[str, Any]], tuple[str, dict[str, Any]]]
    """(model id, request, `model.params`) → path and body; the request's own params win."""
    read: Callable[[bytes], Reading]
    """Raises `AttemptFault` (MODEL_RESPONSE_INVALID) or `EndpointError`, nothing else."""
    takes_seed: bool = False
    """True where its calls have a field `seed`."""
