"""One straight HTTP/1.1 connection to an endpoint: a request at a time, kept open between them.

httptools parses; reading stops while nobody takes what has come. A general client costs five
times as much a call, most of it in layers that a POST to one address has no use for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, cast

import httptools

from steelyard.models.failures import ConnectionFailed, TooLarge, connection_failed

MAX_AHEAD_BYTES: Final = 256 * 1024
"""What may have come and not been taken; reading stops above it."""
MAX_HEAD_BYTES: Final = 256 * 1024
"""Of an answer's head, as far as it may come in pieces."""


class DirectConnection(asyncio.Protocol):
    """A connection; `post` must not be called before the last answer was closed.

    Args:
        free: told when it can be used again.
        gone: told when it is lost.
    """

    def __init__(
        self,
        free: Callable[[DirectConnection], None],
        gone: Callable[[DirectConnection], None],
    ) -> None:
        self._free = free
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._is_lost = False
        self._answer: DirectAnswer | None = None
        self.idle_since_s = 0.0
        """By the loop's clock."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be ready."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self._answer is None or self._answer.is_over:
            # Nothing was asked: whatever it is, it answers no question of ours.
            self._is_lost = True
            self._transport.abort()
            return
        self._answer.feed(data)

    def eof_received(self) -> bool:
        """Close: an endpoint that sends no more answers no more."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits for an answer."""
        self._is_lost = True
        self._gone(self)
        if self._answer is not None:
            self._answer.lost(exc)

    @property
    def is_usable(self) -> bool:
        """True where another request can be sent."""
        return not self._is_lost and not self._transport.is_closing()

    async def post(
        self, target: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> DirectAnswer:
        """Send a POST and wait for the head of its answer.

        Raises:
            ConnectionFailed: no answer came.
        """
        lines = [b"POST %b HTTP/1.1" % target.encode("ascii")]
        lines += [b"%b: %b" % pair for pair in headers]
        answer = self._answer = DirectAnswer(self, self._loop)
        self._transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        try:
            await answer.head()
        except BaseException:
            self.abort()
            raise
        return answer

    def abort(self) -> None:
        """Drop the connection at once."""
        self._is_lost = True
        self._answer = None
        self._transport.abort()

    def pause(self) -> None:
        """Stop to read."""
        self._transport.pause_reading()

    def resume(self) -> None:
        """Go on reading."""
        self._transport.resume_reading()

    def answered(self, is_reusable: bool) -> None:
        """An answer was let go of."""
        if is_reusable and self.is_usable:
            self._answer = None
            self.idle_since_s = self._loop.time()
            self._free(self)
        else:
            self.abort()


class DirectAnswer:
    """An `OpenAnswer` that comes over a straight connection; also what its parser calls."""

    def __init__(self, connection: DirectConnection, loop: asyncio.AbstractEventLoop) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_over = False
        """True once its last byte has come."""
        self._connection: DirectConnection | None = connection
        self._loop = loop
        self._parser: Any = httptools.HttpResponseParser(self)
        self._has_head = False
        self._head_bytes = 0
        self._is_framed = False
        self._keeps_alive = False
        self._pieces: deque[bytes] = deque()
        self._ahead_bytes = 0
        self._is_paused = False
        self._error: ConnectionFailed | None = None
        self._waiter: asyncio.Future[None] | None = None

    # What the connection calls.

    def feed(self, data: bytes) -> None:
        """Take bytes."""
        if not self._has_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionFailed(f"not HTTP/1.1: {error or type(error).__name__}"))
        else:
            if not self._has_head and self._head_bytes > MAX_HEAD_BYTES:
                self._fail(ConnectionFailed("the head of its answer is too large"))
        self._wake()

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        if self._has_head and not self._is_framed and error is None:
            self.is_over = True  # a body that ends where the connection does
        elif not self.is_over and self._error is None:
            where = "in mid-answer" if self._has_head else "without an answer"
            closed = ConnectionFailed(f"it closed the connection {where}")
            self._error = closed if error is None else connection_failed(error)
        self._wake()

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        if self.is_over:
            return
        self.headers.append((name, value))
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._is_framed = True

    def on_headers_complete(self) -> None:
        """Take the end of the head; one of status 1xx is not it."""
        status = self._parser.get_status_code()
        if self.is_over:
            self._keeps_alive = False  # an answer to nothing: what comes next may be one, too
        elif status >= 200:
            self.status = status
            self._has_head = True
            self._keeps_alive = self._parser.should_keep_alive()
            self._is_framed = self._is_framed or status in (204, 304)

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        if self.is_over:
            return
        self._pieces.append(data)
        self._ahead_bytes += len(data)
        if self._ahead_bytes > MAX_AHEAD_BYTES and self._connection and not self._is_paused:
            self._is_paused = True
            self._connection.pause()

    def on_message_complete(self) -> None:
        """Take the end."""
        if self._has_head:
            self.is_over = True
        else:
            self.headers.clear()

    # What its reader calls.

    async def head(self) -> None:
        """Wait for status and headers; raise `ConnectionFailed` where they do not come."""
        while not self._has_head:
            if self._error is not None:
                raise self._error
            await self._wait()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it comes."""
        while True:
            while self._pieces:
                yield self._taken()
            if self.is_over:
                return
            if self._error is not None:
                raise self._error
            await self._wait()

    async def read(self, max_bytes: int) -> bytes:
        """Give the whole body.

        Raises:
            ConnectionFailed: it broke off.
            TooLarge: it is larger than `max_bytes`.
        """
        taken: list[bytes] = []
        size = 0
        while True:
            while self._pieces:
                taken.append(self._taken())
                size += len(taken[-1])
            if size > max_bytes:
                raise TooLarge(f"above {max_bytes} bytes")
            if self.is_over:
                return taken[0] if len(taken) == 1 else b"".join(taken)
            if self._error is not None:
                raise self._error
            await self._wait()

    async def close(self) -> None:
        """Let go of it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.answered(self.is_over and self._keeps_alive and not self._is_paused)

    def _taken(self) -> bytes:
        piece = self._pieces.popleft()
        self._ahead_bytes -= len(piece)
        if self._is_paused and self._ahead_bytes <= MAX_AHEAD_BYTES // 2 and self._connection:
            self._is_paused = False
            self._connection.resume()
        return piece

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: ConnectionFailed) -> None:
        if self._error is None:
            self._error = error
        self._keeps_alive = False
