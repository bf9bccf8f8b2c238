"""Connections through a proxy, by httpx2's transport: CONNECT, SOCKS and all their manners.

Each connection is a pool of one on a stack of our own: a pool of many walks all its connections
twice a request, which costs more than the request at 64.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

import httpcore2

from steelyard.models.address import Address
from steelyard.models.failures import connection_failed

CONNECT_TIMEOUT_S: Final = 30.0
KEEPALIVE_S: Final = 60.0


class ProxiedConnections:
    """Sends requests to one address by way of a proxy."""

    def __init__(self, address: Address, proxy: str, context: ssl.SSLContext | None) -> None:
        parts = address.parts
        self._scheme = parts.scheme.encode("ascii")
        self._host = (parts.hostname or "").encode("idna")
        self._port = parts.port
        self._proxy = proxy
        self._context = context
        self._idle: list[httpcore2.AsyncConnectionPool] = []
        self._open: set[httpcore2.AsyncConnectionPool] = set()

    async def open(
        self, target: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> ProxiedAnswer:
        """Send a POST and read the head of its answer.

        Raises:
            ConnectionFailed: no answer came.
        """
        url = httpcore2.URL(
            scheme=self._scheme, host=self._host, port=self._port, target=target.encode("ascii")
        )
        request = httpcore2.Request(
            b"POST",
            url,
            headers=headers,
            content=body,
            extensions={"timeout": {"connect": CONNECT_TIMEOUT_S}},
        )
        # The last one used first: the others grow old and are closed by their keep-alive.
        pool = self._idle.pop() if self._idle else self._make()
        response = None
        try:
            response = await pool.handle_async_request(request)
        except _failures() as error:
            raise connection_failed(error) from error
        finally:
            if response is None:
                self._idle.append(pool)
        return ProxiedAnswer(response, lambda: self._idle.append(pool))

    async def close(self) -> None:
        """Close every connection."""
        pools, self._open = self._open, set()
        self._idle.clear()
        for pool in pools:
            await pool.aclose()

    def _make(self) -> httpcore2.AsyncConnectionPool:
        options: dict[str, Any] = {
            "ssl_context": self._context,
            "max_connections": 1,
            "keepalive_expiry": KEEPALIVE_S,
        }
        parts = urlsplit(self._proxy)
        auth = None
        if parts.username is not None:
            auth = (unquote(parts.username), unquote(parts.password or ""))
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        pool: httpcore2.AsyncConnectionPool
        if parts.scheme.startswith("socks5"):
            pool = httpcore2.AsyncSOCKSProxy(proxy_url=where, proxy_auth=auth, **options)
        else:
            pool = httpcore2.AsyncHTTPProxy(proxy_url=where, proxy_auth=auth, **options)
        self._open.add(pool)
        return pool


class ProxiedAnswer:
    """An `OpenAnswer` that comes through a proxy."""

    __slots__ = ("_gone", "_response", "headers", "status")

    def __init__(self, response: httpcore2.Response, gone: Callable[[], None]) -> None:
        self._response = response
        self._gone: Callable[[], None] | None = gone
        self.status: int = response.status
        self.headers: list[tuple[bytes, bytes]] = response.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it comes."""
        try:
            async for piece in cast("AsyncIterator[bytes]", self._response.stream):
                yield piece
        except _failures() as error:
            raise connection_failed(error) from error

    async def close(self) -> None:
        """Let go of it."""
        gone, self._gone = self._gone, None
        if gone is None:
            return
        try:
            await self._response.aclose()
        except _failures() as error:
            raise connection_failed(error) from error
        finally:
            gone()


@cache
def _failures() -> tuple[type[Exception], ...]:
    """What the transport raises where the other side failed."""
    return (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
        httpcore2.TimeoutException,
        OSError,  # what TLS raises in mid-stream is not mapped
    )
