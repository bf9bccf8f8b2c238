"""`openai-chat`: POST /chat/completions."""

from __future__ import annotations

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
    text_or_none,
    token_count,
)
from steelyard.models.protocols.form import Reading, TokenCounts, WireProtocol

PATH: Final = "/chat/completions"


def build(
    model_id: str, request: ModelRequest, params: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Make path and body; texts stay plain strings, every parameter goes in as it is."""
    messages = [form for turn in request.messages for form in _forms(turn)]
    body: dict[str, Any] = {"model": model_id, "messages": messages}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    return PATH, {**body, **params, **request.params}


def _forms(turn: Turn) -> list[dict[str, Any]]:
    if isinstance(turn, ToolTurn):
        return [
            {"role": "tool", "tool_call_id": call_id, "content": text}
            for call_id, text in turn.results
        ]
    if isinstance(turn, AssistantTurn) and turn.tool_calls:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.tool_calls
        ]
        return [{"role": "assistant", "content": turn.content or None, "tool_calls": calls}]
    return [{"role": turn.role, "content": turn.content}]


def read(body: bytes) -> Reading:
    """Read an answer's first choice.

    Raises:
        AttemptFault: MODEL_RESPONSE_INVALID, it breaks the protocol.
        EndpointError: it is an error in an answer of status 2xx.
    """
    data = decode(body)
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise invalid("without a choice", body)
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise invalid("without a message", body)
    return Reading(
        text=_text(message, body),
        tool_calls=_tool_calls(message.get("tool_calls"), body),
        stop_reason=text_or_none(choice.get("finish_reason")),
        counts=read_usage(data.get("usage")),
        model=text_or_none(data.get("model")),
        reasoning=text_or_none(message.get("reasoning_content"))
        or text_or_none(message.get("reasoning")),
    )


def read_usage(usage: Any) -> TokenCounts | None:
    """Read `usage`; None where it is missing or cannot be right."""
    if not isinstance(usage, dict):
        return None
    inputs = details(usage, "prompt_tokens_details")
    outputs = details(usage, "completion_tokens_details")
    try:
        reasoning = token_count(outputs, "reasoning_tokens")
        given = required_count(usage, "prompt_tokens")
        output = required_count(usage, "completion_tokens")
        if reasoning and token_count(usage, "total_tokens") == given + output + reasoning:
            output += reasoning  # some endpoints leave reasoning out of completion_tokens
        return checked_counts(
            TokenCounts(given, output, token_count(inputs, "cached_tokens"), reasoning)
        )
    except ValueError:
        return None


def _text(message: Mapping[str, Any], body: bytes) -> str:
    content = message.get("content")
    if content is None:
        return text_or_none(message.get("refusal")) or ""
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):  # some endpoints answer in parts
        return "".join(
            text_or_none(part.get("text")) or "" for part in content if isinstance(part, dict)
        )
    raise invalid("without text", body)


def _tool_calls(calls: Any, body: bytes) -> tuple[ToolCall, ...]:
    if not calls:
        return ()
    if not isinstance(calls, list):
        raise invalid("with malformed tool calls", body)
    read_calls = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        name = text_or_none(function.get("name")) if isinstance(function, dict) else None
        if not isinstance(function, dict) or name is None:
            raise invalid("with a tool call that names no function", body)
        arguments = text_or_none(function.get("arguments")) or ""
        read_calls.append(ToolCall(text_or_none(call.get("id")) or "", name, arguments))
    return tuple(read_calls)


PROTOCOL: Final = WireProtocol(
    name="openai-chat",
    path=PATH,
    default_base_url="https://api.openai.com/v1",
    reserved=frozenset({"model", "messages", "stream"}),
    auth_headers=lambda key: {"authorization": f"Bearer {key}"},
    fixed_headers={},
    build=build,
    read=read,
    takes_seed=True,
)
