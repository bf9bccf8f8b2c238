"""`anthropic`: POST /v1/messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from steelyard.components.model import AssistantTurn, ModelRequest, ToolCall, ToolTurn, Turn
from steelyard.models.protocols.encoding import (
    checked_counts,
    clean,
    decode,
    details,
    invalid,
    required_count,
    split_system,
    text_or_none,
    token_count,
)
from steelyard.models.protocols.form import Reading, TokenCounts, WireProtocol

PATH: Final = "/v1/messages"
DEFAULT_MAX_TOKENS: Final = 8192
"""The protocol demands `max_tokens`; this stands where `model.params` names none. Every model
now served takes it; raise it in `model.params` for long answers."""


def build(
    model_id: str, request: ModelRequest, params: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Make path and body; leading system messages become `system`, a plain string."""
    system, rest = split_system(request.messages)
    body: dict[str, Any] = {
        "model": model_id,
        "max_tokens": DEFAULT_MAX_TOKENS,
        "messages": [_form(turn) for turn in rest],
    }
    if system is not None:
        body["system"] = system
    if request.tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": dict(tool.parameters),
            }
            for tool in request.tools
        ]
    return PATH, {**body, **params, **request.params}


def _form(turn: Turn) -> dict[str, Any]:
    if isinstance(turn, ToolTurn):
        results = [
            {"type": "tool_result", "tool_use_id": call_id, "content": text}
            for call_id, text in turn.results
        ]
        return {"role": "user", "content": results}
    if not isinstance(turn, AssistantTurn) or not (turn.echo or turn.tool_calls):
        return {"role": turn.role, "content": turn.content}
    if turn.echo:
        return {"role": "assistant", "content": list(turn.echo)}
    said = [{"type": "text", "text": turn.content}] if turn.content else []
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)}
        for call in turn.tool_calls
    ]
    return {"role": "assistant", "content": [*said, *uses]}


def _input(call: ToolCall) -> Any:
    """Give the arguments as an object, which the protocol demands; `{}` where they are none."""
    try:
        data = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def read(body: bytes) -> Reading:
    """Read an answer's content blocks.

    Raises:
        AttemptFault: MODEL_RESPONSE_INVALID, it breaks the protocol.
        EndpointError: it is an error in an answer of status 2xx.
    """
    data = decode(body)
    content = data.get("content")
    if not isinstance(content, list):
        raise invalid("without content", body)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for block in content:
        if not isinstance(block, dict):
            raise invalid("with a content block that is no object", body)
        kind = block.get("type")
        if kind == "text":
            texts.append(text_or_none(block.get("text")) or "")
        elif kind == "thinking":
            thoughts.append(text_or_none(block.get("thinking")) or "")
        elif kind == "tool_use":
            name = text_or_none(block.get("name"))
            if name is None:
                raise invalid("with a tool call that names no tool", body)
            try:
                arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
            except RecursionError:
                raise invalid("with tool input nested too deeply", body) from None
            calls.append(ToolCall(text_or_none(block.get("id")) or "", name, clean(arguments)))
    return Reading(
        text="".join(texts),
        tool_calls=tuple(calls),
        stop_reason=text_or_none(data.get("stop_reason")),
        counts=read_usage(data.get("usage")),
        model=text_or_none(data.get("model")),
        reasoning="\n".join(thought for thought in thoughts if thought) or None,
        echo=tuple(content) if calls else (),
    )


def read_usage(usage: Any) -> TokenCounts | None:
    """Read `usage`, where `input_tokens` leaves out what touched the cache."""
    if not isinstance(usage, dict):
        return None
    try:
        cached = token_count(usage, "cache_read_input_tokens")
        written = token_count(usage, "cache_creation_input_tokens")
        return checked_counts(
            TokenCounts(
                required_count(usage, "input_tokens") + cached + written,
                required_count(usage, "output_tokens"),
                cached,
                token_count(details(usage, "output_tokens_details"), "thinking_tokens"),
                written,
            )
        )
    except ValueError:
        return None


PROTOCOL: Final = WireProtocol(
    name="anthropic",
    path=PATH,
    default_base_url="https://api.anthropic.com",
    reserved=frozenset({"model", "messages", "stream"}),
    auth_headers=lambda key: {"x-api-key": key},
    fixed_headers={"anthropic-version": "2023-06-01"},
    build=build,
    read=read,
)
