"""Events of a stream → a Reading, as they pass; usage that only we asked for is taken out. Pure.

However a stream is cut into pieces, the Reading is the same, and so are the bytes passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from steelyard.models.gateway.events import COLLECTORS, Collector, StreamError
from steelyard.models.protocols.form import Reading

_END: Final = rb"(?:\r\n|\n|\r(?=[^\n]))"
_BLANK_LINE: Final = re.compile(_END + _END)
MAX_HELD_BYTES: Final = 1024 * 1024
"""A block above it is not the small one that is taken out; it is passed on as it comes."""


class EventSplitter:
    """Cuts a stream of bytes into the blocks of server-sent events."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take a piece; give the blocks that are now whole, blank line included."""
        self._rest += data
        blocks = []
        at = 0
        for found in _BLANK_LINE.finditer(self._rest, self._searched):
            blocks.append(bytes(self._rest[at : found.end()]))
            at = found.end()
        if at:
            del self._rest[:at]
        # A blank line may have begun; no more than four bytes of it.
        self._searched = max(0, len(self._rest) - 4)
        return blocks

    @property
    def rest_bytes(self) -> int:
        """How much of a block has come that is not whole yet."""
        return len(self._rest)

    def peek(self) -> bytes:
        """Give the part of a block that has come; it stays."""
        return bytes(self._rest)

    def rest(self) -> bytes:
        """Give what is left when the stream has ended."""
        data = bytes(self._rest)
        self._rest.clear()
        self._searched = 0
        return data


def payload_of(block: bytes) -> bytes:
    """Give the data of a block, its lines joined; empty where it has none."""
    lines = [line[5:].removeprefix(b" ") for line in _lines(block) if line[:5] == b"data:"]
    return lines[0] if len(lines) == 1 else b"\n".join(lines)


def _lines(block: bytes) -> Iterator[bytes]:
    for line in block.splitlines():
        yield line.removeprefix(b"\xef\xbb\xbf")


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """What came of a stream."""

    reading: Reading
    """As far as it came."""
    is_complete: bool
    """True where the protocol's own end was seen."""
    has_events: bool
    """False where nothing that it sent could be read."""
    error: StreamError | None
    """What an event said went wrong."""


class StreamReader:
    """Reads a stream while it passes.

    Args:
        protocol: whose events they are.
        strips_usage: True where the chunk that holds nothing but usage is taken out.
    """

    def __init__(self, protocol: str, *, strips_usage: bool = False) -> None:
        self._splitter = EventSplitter()
        self._collector: Collector = COLLECTORS[protocol]()
        self._strips_usage = strips_usage
        self._events = 0

    def feed(self, data: bytes) -> bytes:
        """Take a piece; give what is passed on of it, and of what was held before."""
        blocks = self._splitter.feed(data)
        if not self._strips_usage:
            for block in blocks:
                self._take(block)
            return data
        # Held until it is whole: of half an event no client can make anything.
        kept = [block for block in blocks if not self._take(block)]
        if self._splitter.rest_bytes > MAX_HELD_BYTES:
            self._strips_usage = False
            kept.append(self._splitter.peek())
        return kept[0] if len(kept) == 1 else b"".join(kept)

    def close(self) -> bytes:
        """The stream has ended: give what was still held."""
        rest = self._splitter.rest()
        if not rest:
            return b""
        is_usage = self._take(rest)
        return rest if self._strips_usage and not is_usage else b""

    def end(self) -> StreamEnd:
        """Give what the stream has said."""
        collector = self._collector
        return StreamEnd(
            collector.reading(), collector.is_complete, self._events > 0, collector.error
        )

    @property
    def has_usage(self) -> bool:
        """True once what the call consumed is known for good."""
        return self._collector.has_usage

    @property
    def events(self) -> int:
        """How many have come."""
        return self._events

    def _take(self, block: bytes) -> bool:
        """Read a block; True where it holds nothing but usage."""
        payload = payload_of(block)
        if not payload:
            return False
        if payload == b"[DONE]":
            self._events += 1
            self._collector.is_complete = True
            return False
        try:
            event = orjson.loads(payload)
        except ValueError:
            return False
        if not isinstance(event, dict):
            return False
        self._events += 1
        return self._collector.take(event)
