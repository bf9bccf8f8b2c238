"""The connections to one address: sends a request's bytes, gives back the answer's.

Knows HTTP and nothing of models. Straight connections are our own (`direct.py`); where the
environment names a proxy, httpx2's transport makes them (`proxied.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.models.address import Address, proxy_url
from steelyard.models.direct import DirectAnswer, DirectConnection
from steelyard.models.failures import ConnectionFailed, TooLarge, connection_failed

if TYPE_CHECKING:
    import ssl

    from steelyard.models.mock.served import ServedMock
    from steelyard.models.proxied import ProxiedConnections

CONNECT_TIMEOUT_S: Final = 30.0
HAPPY_EYEBALLS_S: Final = 0.25
"""How long one address of a host is tried alone (RFC 8305, 5)."""
KEEPALIVE_S: Final = 60.0
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer, whole."""

    status: int
    headers: Headers
    body: bytes

    @property
    def retry_after(self) -> str | None:
        """What it says of when to come again."""
        value = header(self.headers, b"retry-after")
        return None if value is None else value.decode("latin-1")


class OpenAnswer(Protocol):
    """An answer whose head has come; its body comes in pieces. Whoever is handed it closes it."""

    @property
    def status(self) -> int:
        """Its status."""
        ...

    @property
    def headers(self) -> Headers:
        """Its headers, in whatever case they came."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it comes; little is read ahead of who asks.

        Raises:
            ConnectionFailed: it broke off.
        """
        ...

    async def close(self) -> None:
        """Let go of it; a connection with an unread rest is closed. Safe to call twice."""
        ...


class Upstream:
    """Sends requests to one address over connections that are kept open."""

    def __init__(self, address: Address) -> None:
        parts = address.parts
        self.address = address
        self._host = (parts.hostname or "").encode("idna").decode("ascii")
        self._is_tls = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_tls else 80)
        self._idle: list[DirectConnection] = []
        self._open: set[DirectConnection] = set()
        self._context: ssl.SSLContext | None = None
        self._proxied: ProxiedConnections | None = None
        self._is_ready = False
        self._mock = AsyncExitStack()
        """Ends the mock endpoint that is served here, where one is."""
        self._mock_starts = asyncio.Lock()

    async def post(self, target: str, headers: Headers, body: bytes, max_bytes: int) -> HttpAnswer:
        """Send a POST and read its answer, as far as it may be read.

        Raises:
            ConnectionFailed: no whole answer came.
            TooLarge: it is larger than `max_bytes`.
        """
        opened = await self.open(target, headers, body)
        try:
            data = await read_all(opened, max_bytes)
        finally:
            await opened.close()
        return HttpAnswer(opened.status, opened.headers, data)

    async def open(self, target: str, headers: Headers, body: bytes) -> OpenAnswer:
        """Send a POST and read the head of its answer; whoever is handed it closes it.

        Raises:
            ConnectionFailed: no answer came.
        """
        if not self._is_ready:
            if self.address.mock is not None:
                await self._serve(self.address.mock)
            self._prepare()
        if self._proxied is not None:
            return await self._proxied.open(target, headers, body)
        connection = self._take() or await self._connect()
        return await connection.post(target, headers, body)

    async def close(self) -> None:
        """Close every connection."""
        connections, self._open = self._open, set()
        self._idle.clear()
        for connection in connections:
            connection.abort()
        if self._proxied is not None:
            await self._proxied.close()
        if connections:
            await asyncio.sleep(0)  # the aborted transports close their sockets
        await self._mock.aclose()

    async def _serve(self, wanted: ServedMock) -> None:
        """Serve the mock endpoint ourselves, once, until the connections are closed."""
        from steelyard.models.mock.served import served

        async with self._mock_starts:
            if self._is_ready:
                return
            self._host = "127.0.0.1"
            self._port = await self._mock.enter_async_context(served(wanted))
            self._prepare()

    def _prepare(self) -> None:
        """Look at the environment, once, when the first request is sent."""
        self._is_ready = True
        proxy = proxy_url(self.address)
        if not self._is_tls and proxy is None:
            return
        import httpcore2

        if self._is_tls:
            self._context = httpcore2.default_ssl_context()
        if proxy is not None:
            from steelyard.models.proxied import ProxiedConnections

            self._proxied = ProxiedConnections(self.address, proxy, self._context)
        elif self._context is not None:
            self._context.set_alpn_protocols(["http/1.1"])

    def _take(self) -> DirectConnection | None:
        """Give an idle connection: the one used last, so that the others grow old."""
        now_s = asyncio.get_running_loop().time()
        while self._idle and self._idle[0].idle_since_s < now_s - KEEPALIVE_S:
            self._idle.pop(0).abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                return connection
        return None

    async def _connect(self) -> DirectConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    lambda: DirectConnection(self._free, self._open.discard),
                    self._host,
                    self._port,
                    ssl=self._context,
                    server_hostname=self._host if self._context is not None else None,
                    happy_eyeballs_delay=HAPPY_EYEBALLS_S,
                )
        except TimeoutError as error:
            raise ConnectionFailed(f"no connection within {CONNECT_TIMEOUT_S:g} s") from error
        except OSError as error:
            raise connection_failed(error) from error
        self._open.add(connection)
        return connection

    def _free(self, connection: DirectConnection) -> None:
        if connection in self._open:
            self._idle.append(connection)


async def read_all(answer: OpenAnswer, max_bytes: int) -> bytes:
    """Read a whole body.

    Raises:
        ConnectionFailed: it broke off.
        TooLarge: it is larger than `max_bytes`.
    """
    if isinstance(answer, DirectAnswer):
        return await answer.read(max_bytes)
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.pieces():
        size += len(piece)
        if size > max_bytes:
            raise TooLarge(f"above {max_bytes} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def header(headers: Headers, name: bytes) -> bytes | None:
    """Give the first value of a header, whose name is in lower case; None where there is none."""
    return next((value for key, value in headers if key.lower() == name), None)
