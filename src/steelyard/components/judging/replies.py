"""Read a judge's reply as one JSON object; nothing in it is guessed at or mended. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Final

MAX_REPLY_CHARS: Final = 64 * 1024
_FENCED: Final = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)


class NotAVerdict(ValueError):
    """A reply that is not a verdict; says what is wrong with it."""


def json_object(reply: str) -> dict[str, Any]:
    """Read a reply that must be one JSON object; a fence of backquotes around it is passed over.

    Raises:
        NotAVerdict: it is anything else: longer, not JSON, a field twice, a number that is none.
    """
    if len(reply) > MAX_REPLY_CHARS:
        raise NotAVerdict(f"the reply is longer than {MAX_REPLY_CHARS} characters")
    text = reply.strip()
    if not text:
        raise NotAVerdict("the reply is empty")
    fenced = _FENCED.fullmatch(text)
    try:
        data = json.loads(
            fenced[1] if fenced else text,
            object_pairs_hook=_without_doubles,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, NotAVerdict):
            raise
        raise NotAVerdict("the reply is not one JSON object and nothing else") from None
    if not isinstance(data, dict):
        raise NotAVerdict("the reply is JSON, but not an object")
    return data


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise NotAVerdict("a field stands in it twice")
    return data


def _refuse_constant(name: str) -> Any:
    raise NotAVerdict(f"{name} is not JSON")
