"""One HTTP/1.1 connection of the mock: h11 reads, a reply is played step by step.

No task per request: waiting is a timer of the loop, so that a thousand calls in flight cost a
thousand timers.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Final, cast

import h11

from steelyard.models.mock.reply import Ending, Received, Reply, json_reply

MAX_BODY_BYTES: Final = 32 * 1024 * 1024


class Connection(asyncio.Protocol):
    """Serves requests one after another.

    Args:
        answer: gives the reply to a request; must not block.
        connections: where it enters itself while it is open.
        finished: told after each reply, and when a connection is lost during one.
    """

    def __init__(
        self,
        answer: Callable[[Received], Reply],
        connections: set[Connection],
        finished: Callable[[], None],
    ) -> None:
        self._answer = answer
        self._connections = connections
        self._finished = finished
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1024)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._is_playing = False
        self._timer: asyncio.TimerHandle | None = None
        self._chunks: Iterator[tuple[float, bytes]] | None = None
        self._ending = Ending.COMPLETE
        self._is_paused = False
        self._next: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was under way."""
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._is_playing:
            self._is_playing = False
            self._finished()

    def data_received(self, data: bytes) -> None:
        """Read on; a whole request is answered."""
        self._h11.receive_data(data)
        if self._is_playing:
            # Nobody needs to send on before the answer is there: it would wait in our memory.
            self._transport.pause_reading()
        self._read()

    def eof_received(self) -> bool:
        """Close: a client that is done sending is done."""
        return False

    def pause_writing(self) -> None:
        """Hold the next chunk back until the client has read."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Go on with what was held back."""
        self._is_paused = False
        if self._next is not None:
            step, self._next = self._next, None
            step()

    def abort(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()

    def _read(self) -> None:
        while not self._is_playing:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError:
                self._transport.abort()
                return
            if event is h11.NEED_DATA:
                if self._h11.they_are_waiting_for_100_continue:
                    self._send(h11.InformationalResponse(status_code=100, headers=[]))
                return
            if isinstance(event, h11.Request):
                self._request = event
                self._body.clear()
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > MAX_BODY_BYTES:
                    self._play(json_reply(413, {"error": {"message": "request body too large"}}))
            elif isinstance(event, h11.EndOfMessage):
                if self._request is not None:
                    self._respond(self._request)
            else:  # ConnectionClosed, or PAUSED
                if isinstance(event, h11.ConnectionClosed):
                    self._transport.close()
                return

    def _respond(self, request: h11.Request) -> None:
        target = request.target.decode("latin-1")
        received = Received(
            request.method.decode("ascii"),
            target.partition("?")[0],
            {k.decode("latin-1"): v.decode("latin-1") for k, v in request.headers},
            bytes(self._body),
        )
        self._play(self._answer(received))

    def _play(self, reply: Reply) -> None:
        self._is_playing = True
        if reply.delay_s > 0:
            self._timer = self._loop.call_later(reply.delay_s, self._start, reply)
        else:
            self._start(reply)

    def _start(self, reply: Reply) -> None:
        self._ending = reply.ending
        if reply.status is None:
            self._end()
            return
        headers = [("content-type", reply.content_type), *reply.headers.items()]
        if reply.chunks is None:
            headers.append(("content-length", str(len(reply.body))))
            data = self._h11.send(h11.Response(status_code=reply.status, headers=headers)) or b""
            body = b"" if self._is_head() else reply.body
            self._transport.write(data + (self._h11.send(h11.Data(data=body)) or b""))
            self._end()
            return
        headers.append(("transfer-encoding", "chunked"))
        self._send(h11.Response(status_code=reply.status, headers=headers))
        self._chunks = iter(reply.chunks)
        self._next_chunk()

    def _next_chunk(self) -> None:
        if self._is_paused:
            self._next = self._next_chunk
            return
        step = next(self._chunks, None) if self._chunks is not None else None
        if step is None:
            self._end()
            return
        wait_s, chunk = step
        self._timer = self._loop.call_later(wait_s, self._send_chunk, chunk)

    def _send_chunk(self, chunk: bytes) -> None:
        self._send(h11.Data(data=chunk))
        self._next_chunk()

    def _end(self) -> None:
        self._chunks = None
        if self._ending is Ending.HANG:
            return
        if self._ending is Ending.RESET:
            # What was written should arrive before the reset does.
            self._timer = self._loop.call_later(0.005, self._reset)
            return
        self._send(h11.EndOfMessage())
        self._is_playing = False
        self._finished()
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._transport.resume_reading()
            self._loop.call_soon(self._read)
        else:
            self._transport.close()

    def _reset(self) -> None:
        sock = self._transport.get_extra_info("socket")
        if sock is not None:  # linger 0: a reset, not an orderly end
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _is_head(self) -> bool:
        return self._request is not None and self._request.method == b"HEAD"

    def _send(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self._transport.write(data)
