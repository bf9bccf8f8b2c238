"""The three protocols from the server's side: what a call asks, and how an answer is written.

Pure. `mock/streams.py` writes the same answers as server-sent events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from steelyard.models.protocols import anthropic, openai_chat, openai_responses
from steelyard.models.protocols.form import TokenCounts

PATHS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic",
}
_READ_USAGE: Final[Mapping[str, Callable[[Any], TokenCounts | None]]] = {
    "openai-chat": openai_chat.read_usage,
    "openai-responses": openai_responses.read_usage,
    "anthropic": anthropic.read_usage,
}
CREATED: Final = 1_700_000_000
"""A fixed moment: answers are the same in every run."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message, its content flattened to text."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """One model call, independent of protocol."""

    protocol: str
    model: str
    turns: tuple[Turn, ...]
    """A system prompt first, wherever the protocol keeps it."""
    is_streaming: bool
    wants_usage: bool
    """False for an openai-chat stream that did not ask for usage."""
    body: Mapping[str, Any]
    nth: int = 0
    """Which call with these messages it is, counted from 0."""

    @property
    def prompt(self) -> str:
        """The last user text."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), "")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call in an answer."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON text; a text is sent as it is, malformed or not."""
        if isinstance(self.arguments, str):
            return self.arguments
        return orjson.dumps(self.arguments).decode()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the mock model says."""

    text: str = ""
    tool_calls: tuple[ToolUse, ...] = ()
    reasoning: str = ""
    stop_reason: str | None = None
    """The protocol's own word; None: the one that fits."""
    usage: Mapping[str, Any] | None = None
    """The protocol's own `usage`, in place of a count of the texts."""


class Malformed(ValueError):
    """A body that is not what the protocol asks for."""


def read_call(protocol: str, body: bytes) -> Call:
    """Read a request's body; raise `Malformed` where an endpoint would answer 400."""
    try:
        data = orjson.loads(body)
    except ValueError as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("model"), str):
        raise Malformed("`model` is required")
    is_streaming = data.get("stream") is True
    wants_usage = True
    if protocol == "openai-responses":
        turns = _responses_turns(data)
    else:
        messages = data.get("messages")
        if not isinstance(messages, list) or not messages:
            raise Malformed("`messages` is required")
        turns = _turns(messages)
        if protocol == "anthropic":
            if type(data.get("max_tokens")) is not int:
                raise Malformed("max_tokens: Field required")
            if data.get("system"):
                turns = [Turn("system", flat_text(data["system"])), *turns]
        elif is_streaming:
            options = data.get("stream_options")
            wants_usage = isinstance(options, dict) and options.get("include_usage") is True
    return Call(protocol, data["model"], tuple(turns), is_streaming, wants_usage, data)


def _responses_turns(data: Mapping[str, Any]) -> list[Turn]:
    given = data.get("input")
    if isinstance(given, str):
        turns = [Turn("user", given)]
    elif isinstance(given, list) and given:
        turns = _turns(given)
    else:
        raise Malformed("`input` is required")
    if data.get("instructions"):
        turns = [Turn("system", flat_text(data["instructions"])), *turns]
    return turns


def _turns(messages: Sequence[Any]) -> list[Turn]:
    turns = []
    for message in messages:
        if not isinstance(message, dict):
            raise Malformed("a message is not an object")
        kind = message.get("type")
        role = message.get("role")
        if not isinstance(role, str):
            role = "tool" if kind == "function_call_output" else "assistant"
        content = message.get("content", message.get("output", ""))
        turns.append(Turn(role, flat_text(content)))
    return turns


def flat_text(content: Any) -> str:
    """Give the text of a content that may come in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (
            part if isinstance(part, str) else flat_text(part.get("text", part.get("content", "")))
            for part in content
            if isinstance(part, str | dict)
        )
        return "".join(texts)
    return ""


def prompt_digest(turns: Sequence[Turn]) -> str:
    """Hash a conversation; the same in all three protocols.

    Leading system texts are joined, because two of the protocols keep only one.
    """
    leading: list[str] = []
    rest = list(turns)
    while rest and rest[0].role == "system":
        leading.append(rest.pop(0).text)
    parts = [["system", "\n\n".join(leading)]] if leading else []
    parts += [[turn.role, turn.text] for turn in rest]
    data = repr(parts).encode("utf-8", "backslashreplace")
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def token_estimate(text: str) -> int:
    """About four characters a token; at least one for any text."""
    return (len(text) + 3) // 4


def token_counts(call: Call, answer: Answer) -> tuple[int, int, int]:
    """Give input, output (reasoning included) and reasoning tokens of a call."""
    given = sum(token_estimate(turn.text) for turn in call.turns) + 3 * len(call.turns)
    reasoning = token_estimate(answer.reasoning)
    written = token_estimate(answer.text) + sum(
        token_estimate(use.name) + token_estimate(use.arguments_text) for use in answer.tool_calls
    )
    return given, written + reasoning, reasoning


def served_tokens(call: Call, answer: Answer) -> tuple[int, int]:
    """Give input and output tokens as the answer's usage says them; 0 where that is no usage."""
    if answer.usage is None:
        return token_counts(call, answer)[:2]
    counts = _READ_USAGE[call.protocol](answer.usage)
    return (0, 0) if counts is None else (counts.input_tokens, counts.output_tokens)


def usage_body(call: Call, answer: Answer) -> dict[str, Any]:
    """Write `usage` as the call's protocol has it."""
    if answer.usage is not None:
        return dict(answer.usage)
    given, written, reasoning = token_counts(call, answer)
    if call.protocol == "openai-chat":
        return {
            "prompt_tokens": given,
            "completion_tokens": written,
            "total_tokens": given + written,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    if call.protocol == "openai-responses":
        return {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": given + written,
        }
    return {
        "input_tokens": given,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": written,
    }


def answer_id(call: Call, prefix: str) -> str:
    """Give an id that depends on the call alone."""
    return f"{prefix}{prompt_digest(call.turns)[:16]}{call.nth}"


def stop_reason(call: Call, answer: Answer) -> str:
    """Give the protocol's word for why the answer ended."""
    if answer.stop_reason is not None:
        return answer.stop_reason
    if call.protocol == "openai-chat":
        return "tool_calls" if answer.tool_calls else "stop"
    if call.protocol == "openai-responses":
        return "completed"
    return "tool_use" if answer.tool_calls else "end_turn"


def answer_body(call: Call, answer: Answer) -> dict[str, Any]:
    """Write a whole answer as the call's protocol has it."""
    if call.protocol == "openai-chat":
        return chat_body(call, answer)
    if call.protocol == "openai-responses":
        return responses_body(call, answer)
    return messages_body(call, answer)


def chat_body(call: Call, answer: Answer) -> dict[str, Any]:
    """Write a `chat.completion`."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.text or not answer.tool_calls:
        message["content"] = answer.text
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = [
            {
                "id": answer_id(call, f"call_{index}_"),
                "type": "function",
                "function": {"name": use.name, "arguments": use.arguments_text},
            }
            for index, use in enumerate(answer.tool_calls)
        ]
    return {
        "id": answer_id(call, "chatcmpl-"),
        "object": "chat.completion",
        "created": CREATED,
        "model": call.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": stop_reason(call, answer),
            }
        ],
        "usage": usage_body(call, answer),
    }


def responses_items(call: Call, answer: Answer) -> list[dict[str, Any]]:
    """Write the output items of a `response`."""
    items: list[dict[str, Any]] = []
    if answer.reasoning:
        items.append(
            {
                "id": answer_id(call, "rs_"),
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": answer.reasoning}],
            }
        )
    if answer.text or not answer.tool_calls:
        items.append(
            {
                "id": answer_id(call, "msg_"),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
            }
        )
    items += [
        {
            "id": answer_id(call, f"fc_{index}_"),
            "type": "function_call",
            "status": "completed",
            "call_id": answer_id(call, f"call_{index}_"),
            "name": use.name,
            "arguments": use.arguments_text,
        }
        for index, use in enumerate(answer.tool_calls)
    ]
    return items


def responses_body(call: Call, answer: Answer, *, status: str | None = None) -> dict[str, Any]:
    """Write a `response`; with a status of its own where a stream is still under way."""
    is_done = status is None
    return {
        "id": answer_id(call, "resp_"),
        "object": "response",
        "created_at": CREATED,
        "status": status or stop_reason(call, answer),
        "error": None,
        "incomplete_details": None,
        "instructions": call.body.get("instructions"),
        "model": call.model,
        "output": responses_items(call, answer) if is_done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "usage": usage_body(call, answer) if is_done else None,
    }


def messages_blocks(call: Call, answer: Answer) -> list[dict[str, Any]]:
    """Write the content blocks of a `message`."""
    blocks: list[dict[str, Any]] = []
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": "mock"})
    if answer.text or not answer.tool_calls:
        blocks.append({"type": "text", "text": answer.text})
    for index, use in enumerate(answer.tool_calls):
        arguments = _as_object(use.arguments)
        blocks.append(
            {
                "type": "tool_use",
                "id": answer_id(call, f"toolu_{index}_"),
                "name": use.name,
                "input": arguments,
            }
        )
    return blocks


def _as_object(arguments: Mapping[str, Any] | str) -> Mapping[str, Any]:
    """This protocol carries tool input as an object: a malformed text has no form in it."""
    if not isinstance(arguments, str):
        return arguments
    try:
        data = orjson.loads(arguments)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def messages_body(call: Call, answer: Answer) -> dict[str, Any]:
    """Write a `message`."""
    return {
        "id": answer_id(call, "msg_"),
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": messages_blocks(call, answer),
        "stop_reason": stop_reason(call, answer),
        "stop_sequence": None,
        "usage": usage_body(call, answer),
    }


ERROR_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error_body(
    protocol: str, status: int, message: str, *, code: str | None = None
) -> dict[str, Any]:
    """Write an error as the protocol has it."""
    kind = ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    if protocol == "anthropic":
        return {
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": "req_mock",
        }
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
