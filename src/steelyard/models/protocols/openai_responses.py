"""`openai-responses`: POST /responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steelyard.components.model import AssistantTurn, ModelRequest, ToolCall, ToolTurn, Turn
from steelyard.models.protocols.encoding import (
    checked_counts,
    decode,
    details,
    excerpt,
    invalid,
    required_count,
    split_system,
    text_or_none,
    token_count,
)
from steelyard.models.protocols.form import EndpointError, Reading, TokenCounts, WireProtocol

PATH: Final = "/responses"

FAILED_STATUS: Final[Mapping[str, int]] = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
}
"""A response that says `failed` comes with status 200; what its code would have been."""


def build(
    model_id: str, request: ModelRequest, params: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Make path and body; leading system messages become `instructions`."""
    system, rest = split_system(request.messages)
    body: dict[str, Any] = {
        "model": model_id,
        "input": [form for turn in rest for form in _forms(turn)],
    }
    if system is not None:
        body["instructions"] = system
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            }
            for tool in request.tools
        ]
    return PATH, {**body, **params, **request.params}


def _forms(turn: Turn) -> list[Mapping[str, Any]]:
    if isinstance(turn, ToolTurn):
        return [
            {"type": "function_call_output", "call_id": call_id, "output": text}
            for call_id, text in turn.results
        ]
    if not isinstance(turn, AssistantTurn):
        return [{"role": turn.role, "content": turn.content}]
    if turn.echo:
        return list(turn.echo)
    said = [{"role": "assistant", "content": turn.content}] if turn.content else []
    return [
        *said,
        *(
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }
            for call in turn.tool_calls
        ),
    ]


def read(body: bytes) -> Reading:
    """Read an answer's output items.

    Raises:
        AttemptFault: MODEL_RESPONSE_INVALID, it breaks the protocol.
        EndpointError: it is a failed response in an answer of status 2xx.
    """
    return read_object(decode(body), body)


def read_object(data: Mapping[str, Any], body: bytes = b"") -> Reading:
    """Read a `response`, as an answer or a stream's last event holds it; raises as `read` does.

    Args:
        data: the object.
        body: what is quoted of it where it breaks the protocol.
    """
    status = data.get("status")
    if status == "failed":
        error = data.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        number = FAILED_STATUS.get(code, 500) if isinstance(code, str) else 500
        raise EndpointError(number, excerpt(body))
    output = data.get("output")
    if not isinstance(output, list) or status not in (None, "completed", "incomplete"):
        raise invalid("without finished output", body)
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    for item in output:
        if not isinstance(item, dict):
            raise invalid("with an output item that is no object", body)
        kind = item.get("type")
        if kind == "message":
            texts += _texts(item.get("content"), "text", "refusal")
        elif kind == "reasoning":
            reasoning += _texts(item.get("summary"), "text")
            reasoning += _texts(item.get("content"), "text")
        elif kind == "function_call":
            name = text_or_none(item.get("name"))
            if name is None:
                raise invalid("with a tool call that names no function", body)
            call_id = text_or_none(item.get("call_id")) or text_or_none(item.get("id")) or ""
            calls.append(ToolCall(call_id, name, text_or_none(item.get("arguments")) or ""))
    why = text_or_none(details(data, "incomplete_details").get("reason"))
    return Reading(
        text="".join(texts),
        tool_calls=tuple(calls),
        stop_reason=why or text_or_none(status),
        counts=read_usage(data.get("usage")),
        model=text_or_none(data.get("model")),
        reasoning="\n".join(reasoning) or None,
        echo=tuple(output) if calls else (),
    )


def read_usage(usage: Any) -> TokenCounts | None:
    """Read `usage`; None where it is missing or cannot be right."""
    if not isinstance(usage, dict):
        return None
    try:
        return checked_counts(
            TokenCounts(
                required_count(usage, "input_tokens"),
                required_count(usage, "output_tokens"),
                token_count(details(usage, "input_tokens_details"), "cached_tokens"),
                token_count(details(usage, "output_tokens_details"), "reasoning_tokens"),
            )
        )
    except ValueError:
        return None


def _texts(parts: Any, *fields: str) -> list[str]:
    if not isinstance(parts, list):
        return []
    found = (
        text_or_none(part.get(name)) for part in parts if isinstance(part, dict) for name in fields
    )
    return [text for text in found if text is not None]


PROTOCOL: Final = WireProtocol(
    name="openai-responses",
    path=PATH,
    default_base_url="https://api.openai.com/v1",
    reserved=frozenset({"model", "input", "stream"}),
    auth_headers=lambda key: {"authorization": f"Bearer {key}"},
    fixed_headers={},
    build=build,
    read=read,
)
