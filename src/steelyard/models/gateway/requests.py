"""What comes over a connection of the gateway, and who answers it: heads, replies, work."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from steelyard.models.gateway.connection import Connection

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long and how large a request may be."""

    max_body_bytes: int = 32 * 1024 * 1024
    head_s: float = 30.0
    """From the first byte to the last of a request's head."""
    body_idle_s: float = 60.0
    """Between two pieces of a request's body."""
    keep_alive_s: float = 600.0
    """Between two requests."""
    linger_s: float = 2.0
    """How long what is still sent after a refusal is read, so that the refusal arrives."""


@dataclass(frozen=True, slots=True)
class Head:
    """A request without its body."""

    method: str
    target: str
    headers: Headers
    """Names in lower case."""

    def get(self, name: bytes) -> bytes | None:
        """Give a header's first value."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", b"application/json"),)


class Work(Protocol):
    """A request that was let in."""

    def hold(self, body_bytes: int) -> Reply | None:
        """Account for a piece of its body; a refusal where it is too much."""
        ...

    def run(self, body: bytes, out: Connection) -> Coroutine[Any, Any, None]:
        """Answer it: one `reply`, or `start`, `write`…, then `end` or `abort`."""
        ...

    def close(self) -> None:
        """Let go of the body. Called once."""
        ...


class Answerer(Protocol):
    """Who decides what becomes of requests."""

    def has_room(self) -> bool:
        """Tell whether one more connection may be open; else it is dropped at once."""
        ...

    def admit(self, head: Head) -> Reply | Work:
        """Answer at once, or let the request in."""
        ...

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Own a task that answers a request."""
        ...


def too_large(max_bytes: int) -> Reply:
    """Refuse a body above its bound."""
    return Reply(
        413,
        b'{"type":"error","error":{"type":"request_too_large","message":"the body is larger than '
        + str(max_bytes).encode("ascii")
        + b' bytes"}}',
    )
