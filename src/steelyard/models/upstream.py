"""The connections to one address: sends a request's bytes, gives back the answer's.

Knows HTTP and nothing of models. Each connection is a pool of one on a stack of our own: a pool
of many walks all its connections twice a request, which costs more than the request at 64.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

from steelyard.config.errors import BadInput, Where

if TYPE_CHECKING:
    import ssl

    import httpcore2

CONNECT_TIMEOUT_S: Final = 30.0
KEEPALIVE_S: Final = 60.0
RESERVED: Final = "/?#[]@!$&'()*+,;=:%"
"""Characters of a URL that are sent as they are; what is quoted already stays so."""


class ConnectionFailed(Exception):
    """No answer came: refused, reset, cut off, or not HTTP."""


class CertificateRefused(ConnectionFailed):
    """The server's certificate is not trusted; trying again helps nobody."""


class TooLarge(Exception):
    """The answer is larger than it may be; the rest was not read."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer, whole."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def retry_after(self) -> str | None:
        """What it says of when to come again."""
        value = header(self.headers, b"retry-after")
        return None if value is None else value.decode("latin-1")


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL, taken apart."""

    parts: SplitResult

    @property
    def origin(self) -> str:
        """Scheme, host and port: what messages may show."""
        host = self.parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        port = "" if self.parts.port is None else f":{self.parts.port}"
        return f"{self.parts.scheme}://{host}{port}"

    @property
    def is_local(self) -> bool:
        """True for an address of this machine, which no proxy may see."""
        host = (self.parts.hostname or "").rstrip(".")
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def target(self, path: str) -> str:
        """Give path and query of a request below the base URL.

        A version that both end and begin with is written once: `…/v1` and `/v1/messages`.
        """
        base = self.parts.path.rstrip("/")
        if base.endswith("/v1") and path.startswith("/v1/"):
            base = base.removesuffix("/v1")
        whole = f"{base}{path}" + (f"?{self.parts.query}" if self.parts.query else "")
        return quote(whole, safe=RESERVED)

    @property
    def basic_auth(self) -> str | None:
        """The header that carries the URL's user info."""
        if self.parts.username is None:
            return None
        pair = f"{unquote(self.parts.username)}:{unquote(self.parts.password or '')}"
        return "Basic " + base64.b64encode(pair.encode()).decode("ascii")


def parse_address(base_url: str) -> Address:
    """Read a base URL.

    Raises:
        BadInput: it is no http or https URL with a host.
    """
    try:
        parts = urlsplit(base_url)
        is_sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        is_sound = False
    if not is_sound or any(c.isspace() or ord(c) < 32 for c in base_url):
        # Not quoted: it may carry a secret.
        raise BadInput(
            "not an http or https URL with a host",
            where=Where(field="model.base_url"),
            remedy="write it as https://host/v1",
        )
    return Address(parts)


def proxy_url(address: Address) -> str | None:
    """Give the proxy that the environment names for an address, None for none."""
    from urllib.request import getproxies, proxy_bypass

    if address.is_local or proxy_bypass(address.parts.hostname or ""):
        return None
    proxies = getproxies()
    found = proxies.get(address.parts.scheme) or proxies.get("all")
    if not found:
        return None
    return found if "://" in found else f"http://{found}"


class Upstream:
    """Sends requests to one address over connections that are kept open."""

    def __init__(self, address: Address) -> None:
        parts = address.parts
        self.address = address
        self._scheme = parts.scheme.encode("ascii")
        self._host = (parts.hostname or "").encode("idna")
        self._port = parts.port
        self._idle: list[httpcore2.AsyncConnectionPool] = []
        self._open: set[httpcore2.AsyncConnectionPool] = set()
        self._context: ssl.SSLContext | None = None
        self._proxy: str | None = None
        self._is_ready = False

    async def post(
        self, target: str, headers: list[tuple[bytes, bytes]], body: bytes, max_bytes: int
    ) -> HttpAnswer:
        """Send a POST and read its answer, as far as it may be read.

        Raises:
            ConnectionFailed: no whole answer came.
            TooLarge: it is larger than `max_bytes`.
        """
        opened = await self.open(target, headers, body)
        try:
            data = await opened.read(max_bytes)
        finally:
            await opened.close()
        return HttpAnswer(opened.status, opened.headers, data)

    async def open(
        self, target: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> OpenAnswer:
        """Send a POST and read the head of its answer; whoever is handed it closes it.

        Raises:
            ConnectionFailed: no answer came.
        """
        import httpcore2

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
        pool = self._take()
        response = None
        try:
            response = await pool.handle_async_request(request)
        except failures() as error:
            raise _connection_failed(error) from error
        finally:
            if response is None:
                self._idle.append(pool)
        return OpenAnswer(response, lambda: self._idle.append(pool))

    async def close(self) -> None:
        """Close every connection."""
        pools, self._open = self._open, set()
        self._idle.clear()
        for pool in pools:
            await pool.aclose()

    def _take(self) -> httpcore2.AsyncConnectionPool:
        # The last one used first: the others grow old and are closed by their keep-alive.
        if self._idle:
            return self._idle.pop()
        pool = self._make()
        self._open.add(pool)
        return pool

    def _make(self) -> httpcore2.AsyncConnectionPool:
        import httpcore2

        if not self._is_ready:
            self._is_ready = True
            self._proxy = proxy_url(self.address)
            if self.address.parts.scheme == "https":
                self._context = httpcore2.default_ssl_context()
        options: dict[str, Any] = {
            "ssl_context": self._context,
            "max_connections": 1,
            "keepalive_expiry": KEEPALIVE_S,
        }
        if self._proxy is None:
            return httpcore2.AsyncConnectionPool(**options)
        parts = urlsplit(self._proxy)
        auth = None
        if parts.username is not None:
            auth = (unquote(parts.username), unquote(parts.password or ""))
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        if parts.scheme.startswith("socks5"):
            return httpcore2.AsyncSOCKSProxy(proxy_url=where, proxy_auth=auth, **options)
        return httpcore2.AsyncHTTPProxy(proxy_url=where, proxy_auth=auth, **options)


class OpenAnswer:
    """An answer whose head has come; its body comes in pieces."""

    __slots__ = ("_gone", "_response", "headers", "status")

    def __init__(self, response: httpcore2.Response, gone: Callable[[], None]) -> None:
        self._response = response
        self._gone: Callable[[], None] | None = gone
        self.status = response.status
        self.headers: list[tuple[bytes, bytes]] = response.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it comes; nothing is read ahead of who asks.

        Raises:
            ConnectionFailed: it broke off.
        """
        try:
            async for piece in cast("AsyncIterator[bytes]", self._response.stream):
                yield piece
        except failures() as error:
            raise _connection_failed(error) from error

    async def read(self, max_bytes: int) -> bytes:
        """Give the whole body.

        Raises:
            ConnectionFailed: it broke off.
            TooLarge: it is larger than `max_bytes`.
        """
        pieces: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > max_bytes:
                raise TooLarge(f"above {max_bytes} bytes")
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def close(self) -> None:
        """Let go of it; a connection with an unread rest is closed. Safe to call twice."""
        gone, self._gone = self._gone, None
        if gone is None:
            return
        try:
            await self._response.aclose()
        except failures() as error:
            raise _connection_failed(error) from error
        finally:
            gone()


def header(headers: list[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Give the first value of a header, whose name is in lower case; None where there is none."""
    return next((value for key, value in headers if key.lower() == name), None)


@cache
def failures() -> tuple[type[Exception], ...]:
    """What the transport raises where the other side failed."""
    import httpcore2

    return (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
        httpcore2.TimeoutException,
        OSError,  # what TLS raises in mid-stream is not mapped
    )


def _connection_failed(error: Exception) -> ConnectionFailed:
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CertificateRefused(f"its certificate is not trusted: {cause.verify_message}")
        cause = cause.__cause__ or cause.__context__
    return ConnectionFailed(str(error) or type(error).__name__)


def header_pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Encode headers for the wire.

    Raises:
        BadInput: one cannot stand in a header; its value is not quoted.
    """
    pairs = []
    for name, value in headers.items():
        try:
            if any(c in value for c in "\r\n\0"):
                raise ValueError
            pairs.append((name.encode("ascii"), value.strip().encode("latin-1")))
        except ValueError:
            raise BadInput(
                f"the header {name!r} holds a character that HTTP does not allow",
                where=Where(field="model"),
                remedy="check the key or model.extra_headers for line ends and stray characters",
            ) from None
    return pairs
