"""What the events of each protocol's stream say, gathered into one Reading. Pure."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from steelyard.components.issues import AttemptFault
from steelyard.components.model import ToolCall
from steelyard.models.protocols import anthropic, openai_chat, openai_responses
from steelyard.models.protocols.encoding import clean, details, text_or_none
from steelyard.models.protocols.form import EndpointError, Reading, TokenCounts

ERROR_STATUS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "invalid_request_error": 400,
        "invalid_prompt": 400,
        "context_length_exceeded": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "rate_limit_exceeded": 429,
        "overloaded_error": 529,
    }
)
"""What an error inside a stream would have been as a status; others are the endpoint's own, 500."""


@dataclass(frozen=True, slots=True)
class StreamError:
    """An error that came as an event."""

    status: int
    body: bytes
    """Its words, as the body of an answer would have held them."""


@dataclass(slots=True)
class _ToolCall:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    def made(self) -> ToolCall:
        return ToolCall(clean(self.id), clean(self.name), clean("".join(self.pieces)))


class Collector(ABC):
    """Gathers what the events of one stream say."""

    def __init__(self) -> None:
        self.is_complete = False
        self.error: StreamError | None = None
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[Any, _ToolCall] = {}
        self._counts: TokenCounts | None = None
        self._model: str | None = None
        self._stop: str | None = None

    @property
    def has_usage(self) -> bool:
        """True once what the call consumed is known for good."""
        return self._counts is not None

    @abstractmethod
    def take(self, event: Mapping[str, Any]) -> bool:
        """Read one event; True where it holds nothing but usage."""

    def reading(self) -> Reading:
        """Give what has been said so far."""
        return Reading(
            text=clean("".join(self._texts)),
            tool_calls=tuple(call.made() for call in self._calls.values()),
            stop_reason=self._stop,
            counts=self._counts,
            model=self._model,
            reasoning=clean("".join(self._thoughts)) or None,
        )

    def _failed(self, error: Any) -> None:
        status = 500
        if isinstance(error, dict):
            code = error.get("code")
            if type(code) is int and 400 <= code <= 599:
                status = code
            else:
                names = [error.get("type"), code]
                known = [ERROR_STATUS[n] for n in names if isinstance(n, str) and n in ERROR_STATUS]
                status = known[0] if known else 500
        self.error = StreamError(status, json.dumps({"error": error}).encode("ascii"))


class ChatCollector(Collector):
    """`openai-chat`: chunks of choices; usage in a chunk of its own."""

    def take(self, event: Mapping[str, Any]) -> bool:
        """Read a chunk."""
        if event.get("error"):
            self._failed(event["error"])
            return False
        if self._model is None:
            self._model = text_or_none(event.get("model"))
        usage = event.get("usage")
        if isinstance(usage, dict):
            self._counts = openai_chat.read_usage(usage)
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:
            return choices == [] and isinstance(usage, dict)
        choice = choices[0]
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            self._choice(choice)
        return False

    def _choice(self, choice: Mapping[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self._stop = clean(reason)
            self.is_complete = True
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        for name in ("content", "refusal"):
            if isinstance(delta.get(name), str):
                self._texts.append(delta[name])
        for name in ("reasoning_content", "reasoning"):
            if isinstance(delta.get(name), str):
                self._thoughts.append(delta[name])
                break
        calls = delta.get("tool_calls")
        for part in calls if isinstance(calls, list) else ():
            if isinstance(part, dict):
                self._tool_call(part)

    def _tool_call(self, part: Mapping[str, Any]) -> None:
        index = part.get("index")
        key = index if type(index) is int else part.get("id") or 0
        call = self._calls.setdefault(key if isinstance(key, int | str) else 0, _ToolCall())
        if isinstance(part.get("id"), str) and not call.id:
            call.id = part["id"]
        function = details(part, "function")
        if isinstance(function.get("name"), str) and not call.name:
            call.name = function["name"]
        if isinstance(function.get("arguments"), str):
            call.pieces.append(function["arguments"])


class MessagesCollector(Collector):
    """`anthropic`: blocks that start, grow and stop; usage at both ends."""

    def __init__(self) -> None:
        super().__init__()
        self._usage: dict[str, Any] = {}

    def take(self, event: Mapping[str, Any]) -> bool:
        """Read an event."""
        kind = event.get("type")
        if kind == "content_block_delta":
            self._delta(event)
        elif kind == "content_block_start":
            self._block(event)
        elif kind == "message_start":
            message = details(event, "message")
            self._model = text_or_none(message.get("model"))
            self._usage = dict(details(message, "usage"))
        elif kind == "message_delta":
            self._stop = text_or_none(details(event, "delta").get("stop_reason")) or self._stop
            final = details(event, "usage")
            if final:
                known = {name: value for name, value in final.items() if value is not None}
                self._counts = anthropic.read_usage({**self._usage, **known})
        elif kind == "message_stop":
            self.is_complete = True
        elif kind == "error":
            self._failed(event.get("error"))
        return False

    def _block(self, event: Mapping[str, Any]) -> None:
        block = details(event, "content_block")
        if block.get("type") == "tool_use":
            call = self._calls.setdefault(_index(event), _ToolCall())
            call.id = text_or_none(block.get("id")) or ""
            call.name = text_or_none(block.get("name")) or ""
            if block.get("input"):
                call.pieces.append(json.dumps(block["input"], ensure_ascii=False))
        elif isinstance(block.get("text"), str):
            self._texts.append(block["text"])

    def _delta(self, event: Mapping[str, Any]) -> None:
        delta = details(event, "delta")
        kind = delta.get("type")
        if kind == "text_delta" and isinstance(delta.get("text"), str):
            self._texts.append(delta["text"])
        elif kind == "thinking_delta" and isinstance(delta.get("thinking"), str):
            self._thoughts.append(delta["thinking"])
        elif kind == "input_json_delta" and isinstance(delta.get("partial_json"), str):
            call = self._calls.get(_index(event))
            if call is not None:
                call.pieces.append(delta["partial_json"])


class ResponsesCollector(Collector):
    """`openai-responses`: deltas, and the whole response in the last event."""

    def __init__(self) -> None:
        super().__init__()
        self._whole: Reading | None = None

    def take(self, event: Mapping[str, Any]) -> bool:
        """Read an event."""
        kind = event.get("type")
        delta = event.get("delta")
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            if isinstance(delta, str):
                self._texts.append(delta)
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            if isinstance(delta, str):
                self._thoughts.append(delta)
        elif kind == "response.output_item.done":
            item = details(event, "item")
            if item.get("type") == "function_call":
                call = self._calls.setdefault(len(self._calls), _ToolCall())
                call.id = text_or_none(item.get("call_id")) or text_or_none(item.get("id")) or ""
                call.name = text_or_none(item.get("name")) or ""
                call.pieces = [text_or_none(item.get("arguments")) or ""]
        elif kind == "response.created":
            self._model = text_or_none(details(event, "response").get("model"))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._end(details(event, "response"))
        elif kind == "error":
            self._failed(event.get("error") or dict(event))
        return False

    def _end(self, response: Mapping[str, Any]) -> None:
        self.is_complete = True
        self._counts = openai_responses.read_usage(response.get("usage"))
        if response.get("status") == "failed":
            self._failed(response.get("error"))
            return
        try:
            self._whole = openai_responses.read_object(response)
        except (AttemptFault, EndpointError):
            return

    def reading(self) -> Reading:
        """Give the last event's response; what the deltas said where there is none."""
        whole = self._whole
        if whole is not None and (whole.text or whole.tool_calls or not self._texts):
            return whole
        return super().reading()


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if type(index) is int else 0


COLLECTORS: Final[Mapping[str, Callable[[], Collector]]] = MappingProxyType(
    {
        "openai-chat": ChatCollector,
        "openai-responses": ResponsesCollector,
        "anthropic": MessagesCollector,
    }
)
