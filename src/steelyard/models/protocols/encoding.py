"""JSON in and out, and the checks that every protocol makes on what an endpoint sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.model import Turn
from steelyard.models.protocols.form import EndpointError, TokenCounts

EXCERPT_CHARACTERS: Final = 300
"""How much of an endpoint's words a message quotes."""
MAX_TOKENS_PER_CALL: Final = 1_000_000_000
"""A count above it cannot be right."""


def encode(body: Mapping[str, Any]) -> bytes:
    """Write a request's body; whole numbers of any size and lone surrogates included.

    Raises:
        ValueError: it holds a number that JSON cannot carry (NaN, infinity).
    """
    try:
        return orjson.dumps(body)
    except TypeError:
        # orjson refuses integers beyond 64 bits and lone surrogates; both are legal JSON.
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode("ascii")


def decode(body: bytes) -> Mapping[str, Any]:
    """Read an answer's JSON object.

    Raises:
        AttemptFault: MODEL_RESPONSE_INVALID, it is none.
        EndpointError: it is an error object in an answer of status 2xx.
    """
    try:
        data = orjson.loads(body)
    except ValueError:
        try:
            # orjson refuses lone surrogates, which a model can make an endpoint write.
            data = json.loads(body)
        except (ValueError, RecursionError):
            raise invalid("not JSON", body) from None
    if not isinstance(data, dict):
        raise invalid("not a JSON object", body)
    error = data.get("error")
    if isinstance(error, dict | str) and error:
        code = error.get("code") if isinstance(error, dict) else None
        status = code if type(code) is int and 400 <= code <= 599 else None
        if status is not None:
            raise EndpointError(status, excerpt(body))
        if data.get("status") != "failed":
            raise invalid("an error with status 200", body)
    return data


def invalid(what: str, body: bytes) -> AttemptFault:
    """Make the fault of an answer that breaks its protocol."""
    return AttemptFault(
        IssueCode.MODEL_RESPONSE_INVALID,
        f"the endpoint's answer is {what}: {excerpt(body) or '(empty)'}",
    )


def excerpt(body: bytes) -> str:
    """Quote the start of an endpoint's words on one line; bounded, never raising."""
    text = body[: EXCERPT_CHARACTERS * 4].decode("utf-8", "replace")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= EXCERPT_CHARACTERS else line[:EXCERPT_CHARACTERS] + " …"


def clean(text: str) -> str:
    """Replace lone surrogates, which no file or record can hold, with U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def text_or_none(value: Any) -> str | None:
    """Give a non-empty text as it is, cleaned; None for everything else."""
    return clean(value) if isinstance(value, str) and value else None


def split_system(messages: Iterable[Turn]) -> tuple[str | None, list[Turn]]:
    """Part the leading `system` messages, joined by a blank line, from the conversation."""
    rest = list(messages)
    leading: list[str] = []
    while rest and rest[0].role == "system":
        leading.append(rest.pop(0).content)
    return ("\n\n".join(leading) if leading else None), rest


def token_count(usage: Mapping[str, Any], *names: str) -> int:
    """Read a count, 0 where no field of that name is there.

    Raises:
        ValueError: it is negative, not whole, or too large to be right.
    """
    for name in names:
        value = usage.get(name)
        if value is None:
            continue
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not 0 <= value <= MAX_TOKENS_PER_CALL:
            raise ValueError(f"{name} is {str(value)[:40]}")
        return value
    return 0


def required_count(usage: Mapping[str, Any], *names: str) -> int:
    """Read a count that must be there; raise `ValueError` where it is not, or is wrong."""
    if all(usage.get(name) is None for name in names):
        raise ValueError(f"no {names[0]}")
    return token_count(usage, *names)


def details(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Give the first nested object of these names, empty where there is none."""
    for name in names:
        value = usage.get(name)
        if isinstance(value, dict):
            return value
    return {}


def checked_counts(counts: TokenCounts) -> TokenCounts | None:
    """Give the counts, None where a part is larger than its whole."""
    if counts.cached_tokens + counts.cache_write_tokens > counts.input_tokens:
        return None
    if counts.reasoning_tokens > counts.output_tokens:
        return None
    return counts
