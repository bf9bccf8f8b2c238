"""What a status other than success means: one table from answers to causes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import orjson

from steelyard.components.issues import IssueCode
from steelyard.models.protocols.encoding import excerpt


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a call that got no answer."""

    code: IssueCode
    is_transient: bool = False
    """True: the request is tried again."""
    is_request_fault: bool = False
    """True: every attempt of the request would meet it, unless a call has already succeeded."""
    is_throttle: bool = False
    """True: the endpoint asks for fewer calls at once."""


_REJECTED: Final = Verdict(IssueCode.MODEL_ENDPOINT_REJECTED, is_request_fault=True)
_REFUSED: Final = Verdict(IssueCode.MODEL_REQUEST_REFUSED)
_OVERFLOW: Final = Verdict(IssueCode.CONTEXT_OVERFLOW)
_UNAVAILABLE: Final = Verdict(IssueCode.MODEL_UNAVAILABLE, is_transient=True)
_THROTTLED: Final = Verdict(IssueCode.MODEL_UNAVAILABLE, is_transient=True, is_throttle=True)

BY_STATUS: Final[Mapping[int, Verdict]] = MappingProxyType(
    {
        400: _REFUSED,
        401: _REJECTED,
        402: _REJECTED,
        403: _REJECTED,
        404: _REJECTED,
        408: _UNAVAILABLE,
        409: _UNAVAILABLE,
        413: _REFUSED,
        422: _REFUSED,
        429: _THROTTLED,
        529: _THROTTLED,
    }
)
"""5xx not named here is unavailable; what else is not (redirects, 405, …) is a wrong address and
as such rejected: unknown must not blame the agent."""

OVERFLOW_STATUS: Final = frozenset({400, 413, 422})
OVERFLOW_CODES: Final = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "model_context_window_exceeded",
        "string_above_max_length",
    }
)
OVERFLOW_PHRASES: Final = (
    "maximum context length",
    "context length exceeded",
    "context_length_exceeded",
    "exceeds the context",
    "exceed context limit",
    "exceeds the model's context",
    "exceeds the available context",
    "exceeds context window",
    "context window",
    "prompt is too long",
    "input is too long",
    "input length and `max_tokens` exceed",
    "reduce the length of the messages",
    "reduce the length of the prompt",
    "too many input tokens",
    "input token count exceeds",
    "maximum number of tokens allowed",
)
"""As endpoints word it, in lower case."""
QUOTA_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""429 with one of these means that money is out, as 402 does: trying again helps nobody."""


def verdict(status: int, body: bytes) -> Verdict:
    """Tell what an answer that is no success means."""
    found = BY_STATUS.get(status)
    if found is None:
        found = _UNAVAILABLE if 500 <= status <= 599 else _REJECTED
    if status in OVERFLOW_STATUS and _says_overflow(body):
        return _OVERFLOW
    if status == 429 and _words(body)[0] & QUOTA_CODES:
        return _REJECTED
    return found


def endpoint_words(body: bytes) -> str:
    """Quote an endpoint's error message, bounded; the start of the body where it has none."""
    message = _words(body)[1]
    return excerpt(message.encode("utf-8", "replace")) if message else excerpt(body)


def address_hint(status: int, target: str) -> str:
    """Ask after the usual slip where nothing is found at an address without a version; else ''.

    Args:
        status: of the answer.
        target: the path (and query) that was asked for.
    """
    path = target.partition("?")[0]
    if status == 404 and not re.search(r"/v\d", path):
        return " (did you leave out /v1? base_url ends with it at most endpoints)"
    return ""


def _says_overflow(body: bytes) -> bool:
    codes, message = _words(body)
    if codes & OVERFLOW_CODES:
        return True
    text = (message or body[:4096].decode("utf-8", "replace")).lower()
    return any(phrase in text for phrase in OVERFLOW_PHRASES)


def _words(body: bytes) -> tuple[frozenset[str], str]:
    """Give the codes and the message of an error body; nothing where it has another shape."""
    try:
        data: Any = orjson.loads(body)
    except ValueError:
        return frozenset(), ""
    if not isinstance(data, dict):
        return frozenset(), ""
    error = data.get("error", data)
    if isinstance(error, str):
        return frozenset(), error
    if not isinstance(error, dict):
        return frozenset(), ""
    codes = frozenset(error[key] for key in ("code", "type") if isinstance(error.get(key), str))
    message = error.get("message") or error.get("detail")
    return codes, message if isinstance(message, str) else ""
