"""What the mock sends back, as a value that the connection plays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson


class Ending(StrEnum):
    """How a reply ends."""

    COMPLETE = "complete"
    RESET = "reset"
    """The connection is reset after what has been sent."""
    HANG = "hang"
    """Nothing more comes, and the connection stays open."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: after `delay_s` the head, then the body."""

    status: int | None
    """None: not even a status line is sent."""
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    chunks: Iterable[tuple[float, bytes]] | None = None
    """In place of `body`: pieces, each with the seconds to wait before it; sent as they come."""
    ending: Ending = Ending.COMPLETE


def json_reply(status: int, data: Any, *, delay_s: float = 0.0) -> Reply:
    """Make a reply of JSON."""
    return Reply(status, orjson.dumps(data), delay_s=delay_s)


@dataclass(frozen=True, slots=True)
class Received:
    """One request, as it came."""

    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
