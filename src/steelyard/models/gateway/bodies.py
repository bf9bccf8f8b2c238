"""A request's body: read, held against the one model, `model.params` laid over it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from steelyard.models.protocols.encoding import encode


class Unreadable(ValueError):
    """A body that is no JSON object."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as it goes on."""

    data: Mapping[str, Any]
    """As the agent wrote it."""
    body: bytes
    """As it is sent."""
    strips_usage: bool
    """True where usage is asked for on our own behalf, and taken out of the stream again."""


def read_body(raw: bytes) -> dict[str, Any]:
    """Read a body.

    Raises:
        Unreadable: it is no JSON object.
    """
    try:
        data = orjson.loads(raw)
    except ValueError as error:
        if b"\\ud" not in raw and b"\\uD" not in raw:
            raise Unreadable(f"the body is not JSON: {error}") from None
        try:  # orjson refuses lone surrogates, which are legal JSON
            data = json.loads(raw)
        except (ValueError, RecursionError):
            raise Unreadable("the body is not JSON") from None
    if not isinstance(data, dict):
        raise Unreadable("the body is not a JSON object")
    return data


def prepare(
    raw: bytes, data: Mapping[str, Any], protocol: str, params: Mapping[str, Any], reserved: Any
) -> Prepared:
    """Lay `model.params` over a call's body; ask for usage where a stream would carry none.

    Args:
        raw: the body as it came.
        data: the same, read.
        protocol: of the path.
        params: of the model; they win.
        reserved: fields that stay the agent's own.

    Raises:
        ValueError: it holds a number that JSON cannot carry.
    """
    laid = {key: value for key, value in params.items() if key not in reserved}
    strips_usage = False
    if protocol == "openai-chat" and data.get("stream") is True:
        given = data.get("stream_options")
        options = given if isinstance(given, dict) else {}
        strips_usage = options.get("include_usage") is not True
        over = laid.get("stream_options", options)
        options = {**(over if isinstance(over, dict) else {}), "include_usage": True}
        if options != given:
            laid["stream_options"] = options
    return Prepared(data, _laid_over(raw, data, laid), strips_usage)


def _laid_over(raw: bytes, data: Mapping[str, Any], laid: Mapping[str, Any]) -> bytes:
    """Give the body with fields laid over it: byte for byte as it came wherever that is safe.

    A field written twice means one thing to us and may mean another to the endpoint: such a
    body is written anew, of what we have read.
    """
    is_plain = b"\\u00" not in raw and all(raw.count(_key(name)) == 1 for name in data)
    if not is_plain or not laid.keys().isdisjoint(data):
        return encode({**data, **laid})
    if not laid:
        return raw
    head = raw.rstrip()[:-1]
    return head + (b"," if data else b"") + encode(laid)[1:]


def _key(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass")
