"""One HTTP/1.1 connection of the gateway: whole requests in, answers out as they are made.

Knows HTTP and nothing of models. h11 reads and frames; whoever answers (`Answerer`) decides on the
head whether a body is wanted, and makes the answer in a task of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, cast

import h11

from steelyard.models.gateway.requests import (
    Answerer,
    Bounds,
    Head,
    Headers,
    Reply,
    Work,
    too_large,
)

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_AHEAD_BYTES: Final = 64 * 1024
"""What may be sent ahead while an answer is under way; reading pauses above it."""
MAX_EVENTS_A_TURN: Final = 64
"""Parts of requests that are read before others get their turn on the event loop."""
SERVER_ERROR: Final = b'{"error":{"message":"the gateway failed","type":"api_error"}}'


class _Known:
    """A request whose answer is known from its head; a `Work`."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def hold(self, body_bytes: int) -> Reply | None:
        raise AssertionError("it has no body")

    async def run(self, body: bytes, out: Connection) -> None:
        out.reply(self._reply)

    def close(self) -> None:
        pass


class Connection(asyncio.Protocol):
    """Serves requests one after another.

    Args:
        answerer: decides.
        open_connections: where it enters itself while it is open.
        bounds: of requests.
    """

    def __init__(
        self,
        answerer: Answerer,
        open_connections: set[Connection],
        bounds: Bounds,
    ) -> None:
        self._answerer = answerer
        self._open = open_connections
        self._bounds = bounds
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._is_lost = False
        self._severed: str | None = None
        self._is_refusing = False
        self._work: Work | None = None
        self._body = bytearray()
        self._is_resting = False
        self._ahead: deque[bytes] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_head = False
        self._ahead_bytes = 0
        self._drained: asyncio.Future[None] | None = None
        self._is_full = False
        self._since_s = 0.0
        self._allowed_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve."""
        self._transport = cast("asyncio.Transport", transport)
        if not self._answerer.has_room():
            self._transport.abort()
            return
        self._open.add(self)
        self._allow(self._bounds.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """End what was under way."""
        self._is_lost = True
        self._severed = _severed(exc)
        self._open.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self._task is not None:
            self._task.cancel("the agent hung up")
        elif self._work is not None:
            self._let_go()

    def data_received(self, data: bytes) -> None:
        """Read on; a whole request is answered."""
        if self._is_refusing:
            return
        if self._task is not None or self._is_resting:
            self._ahead.append(data)
            self._ahead_bytes += len(data)
            if self._ahead_bytes > MAX_AHEAD_BYTES:
                self._transport.pause_reading()
            return
        self._h11.receive_data(data)
        if self._work is not None:
            self._allow(self._bounds.body_idle_s)
        elif self._allowed_s == self._bounds.keep_alive_s:
            self._allow(self._bounds.head_s)
        self._read()

    def eof_received(self) -> bool:
        """Close: a client that is done sending is done."""
        return False

    def pause_writing(self) -> None:
        """Note that the client reads more slowly than is written."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Let the answer go on."""
        self._is_full = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # What the answer calls.

    @property
    def severed(self) -> str | None:
        """What cut the connection, where neither the client nor we did; else None."""
        return self._severed

    @property
    def is_full(self) -> bool:
        """True while nothing more should be written before `drained`."""
        return self._is_full

    async def drained(self) -> None:
        """Wait until the client has read what was written."""
        if self._is_full and not self._is_lost:
            self._drained = self._loop.create_future()
            try:
                await self._drained
            finally:
                self._drained = None

    def reply(self, reply: Reply) -> None:
        """Send a whole answer."""
        if self._is_lost:
            return
        headers = [*reply.headers, (b"content-length", str(len(reply.body)).encode("ascii"))]
        if self._is_refusing:
            headers.append((b"connection", b"close"))
        data = self._h11.send(h11.Response(status_code=reply.status, headers=headers)) or b""
        if not self._is_head:
            data += self._h11.send(h11.Data(data=reply.body)) or b""
        data += self._h11.send(h11.EndOfMessage()) or b""
        self._transport.write(data)
        self._finish()

    def start(self, status: int, headers: Headers) -> None:
        """Send the head of an answer that comes in pieces."""
        if not self._is_lost:
            framed = [*headers, (b"transfer-encoding", b"chunked")]
            self._send(h11.Response(status_code=status, headers=framed))

    def write(self, data: bytes) -> None:
        """Send a piece."""
        if not self._is_lost and data:
            self._send(h11.Data(data=data))

    def end(self) -> None:
        """Send the end of an answer in pieces."""
        if not self._is_lost:
            self._send(h11.EndOfMessage())
            self._finish()

    def abort(self) -> None:
        """Drop the connection at once: the client sees a broken answer."""
        if not self._is_lost:
            self._transport.abort()

    # Reading.

    def _read(self) -> None:
        left = MAX_EVENTS_A_TURN
        while self._task is None and not self._is_lost and not self._is_refusing:
            if not left:  # as where a body comes in crumbs
                self._is_resting = True
                self._loop.call_soon(self._read_on)
                return
            left -= 1
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse_malformed(error.error_status_hint)
                return
            if event is h11.NEED_DATA:
                if self._ahead:
                    self._take_ahead()
                    continue
                if self._work is not None and self._h11.they_are_waiting_for_100_continue:
                    self._send(h11.InformationalResponse(status_code=100, headers=[]))
                return
            if isinstance(event, h11.Request):
                self._head_read(event)
            elif isinstance(event, h11.Data):
                self._body_read(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._request_read()
            else:  # PAUSED cannot be: the answer's end starts the next cycle
                self._transport.close()
                return

    def _read_on(self) -> None:
        self._is_resting = False
        self._read()

    def _take_ahead(self) -> None:
        data = self._ahead.popleft()
        self._ahead_bytes -= len(data)
        self._h11.receive_data(data)
        if self._ahead_bytes <= MAX_AHEAD_BYTES:
            self._transport.resume_reading()

    def _head_read(self, request: h11.Request) -> None:
        self._is_head = request.method == b"HEAD"
        head = Head(
            request.method.decode("ascii"),
            request.target.decode("ascii", "replace"),
            [(name, value) for name, value in request.headers],
        )
        decided = self._answerer.admit(head)
        if isinstance(decided, Reply):
            has_body = head.get(b"content-length") not in (None, b"0")
            self._answer_early(decided, has_body or head.get(b"transfer-encoding") is not None)
            return
        self._work = decided
        self._allow(self._bounds.body_idle_s)
        length = head.get(b"content-length") or b"0"
        if int(length) > self._bounds.max_body_bytes:
            self._refuse(too_large(self._bounds.max_body_bytes))

    def _body_read(self, data: bytes) -> None:
        if self._work is None:
            return
        if len(self._body) + len(data) > self._bounds.max_body_bytes:
            self._refuse(too_large(self._bounds.max_body_bytes))
            return
        refusal = self._work.hold(len(data))
        if refusal is not None:
            self._refuse(refusal)
            return
        self._body += data

    def _request_read(self) -> None:
        if self._work is None:
            return  # answered early
        body = bytes(self._body)
        self._body.clear()
        self._allowed_s = None
        self._task = self._answerer.start(self._run(self._work, body))

    async def _run(self, work: Work, body: bytes) -> None:
        try:
            await work.run(body, self)
            # Answers that nobody reads must not pile up: the next one waits for this one's reader.
            await self.drained()
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._task = None
            self._let_go()
        if self._is_lost or self._is_refusing:
            return
        if self._h11.our_state is h11.SEND_RESPONSE:
            self.reply(Reply(500, SERVER_ERROR))
        elif self._h11.our_state is h11.SEND_BODY:
            self.abort()
        else:
            self._read()  # what was sent ahead

    def _let_go(self) -> None:
        if self._work is not None:
            self._work.close()
            self._work = None
        self._body.clear()

    # Writing.

    def _answer_early(self, reply: Reply, has_body: bool) -> None:
        """Answer on the head alone."""
        if has_body:
            self._refuse(reply)
        else:
            # The end of the request must be read first, or the next cycle cannot begin.
            self._h11.next_event()
            # In a task as all else, so that a thousand of them sent at once hold nobody up, and
            # answers that nobody reads are not made.
            self._task = self._answerer.start(self._run(_Known(reply), b""))

    def _refuse(self, reply: Reply) -> None:
        """Answer before the request has been read, and close once that has arrived."""
        self._is_refusing = True
        self._let_go()
        self.reply(reply)
        self._allow(None)
        self._timer = self._loop.call_later(self._bounds.linger_s, self._transport.close)

    def _refuse_malformed(self, status: int) -> None:
        body = (
            b'{"error":{"message":"not HTTP/1.1 as it should be","type":"invalid_request_error"}}'
        )
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refuse(Reply(status, body))
        else:
            self._transport.abort()

    def _finish(self) -> None:
        """Make ready for the next request, where there may be one."""
        if self._is_refusing:
            return
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._allow(self._bounds.keep_alive_s)
        else:
            self._transport.close()

    def _send(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self._transport.write(data)

    # Patience.

    def _allow(self, seconds: float | None) -> None:
        """Say how long the client may now be silent; None while it is not its turn."""
        self._since_s = self._loop.time()
        self._allowed_s = seconds
        if seconds is None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None:
            self._timer = self._loop.call_later(self._tick_s(), self._look)

    def _tick_s(self) -> float:
        bounds = self._bounds
        return min(bounds.head_s, bounds.body_idle_s, bounds.keep_alive_s)

    def _look(self) -> None:
        """Drop a client that has been silent for too long; one timer serves all bounds."""
        self._timer = None
        if self._allowed_s is not None and (self._loop.time() - self._since_s >= self._allowed_s):
            self._transport.abort()
            return
        self._timer = self._loop.call_later(self._tick_s(), self._look)


def _severed(error: Exception | None) -> str | None:
    """Say what cut a connection where its client did not: that ends or resets it."""
    if not isinstance(error, OSError) or isinstance(error, ConnectionResetError | BrokenPipeError):
        return None
    return error.strerror or str(error) or type(error).__name__
