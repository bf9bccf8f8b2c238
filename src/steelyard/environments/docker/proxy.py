"""The one way out of a session whose network is an allowlist: a proxy of ours, on the host.

It listens inside the container's network namespace, where nothing else is in reach, and serves
CONNECT and plain HTTP. Names are resolved here, once, and the address that was judged is the one
that is connected to.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from steelyard.environments.docker.allowlist import Allowlist, normal

log = logging.getLogger(__name__)

PORT: Final = 8378
"""Where it listens first; later ones take a port that is free, which no program can have held."""
_HEAD_BYTES: Final = 64 * 1024
_HEAD_WAIT_S: Final = 30.0
_CONNECT_WAIT_S: Final = 20.0
_PIECE_BYTES: Final = 64 * 1024
_MOST_CONNECTIONS: Final = 256
_HOP_HEADERS: Final = frozenset(
    {b"host", b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization"}
)


class Refused(Exception):
    """A request that does not go out; the words go back."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


class Proxy:
    """Serves one session."""

    def __init__(self, allowed: Allowlist, token: str) -> None:
        self._allowed = allowed
        self._token = token
        self._said: set[str] = set()
        self._open = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, listener: socket.socket) -> None:
        """Serve what connects to a listening socket."""
        self._server = await asyncio.start_server(self._serve, sock=listener, limit=_HEAD_BYTES)

    async def close(self) -> None:
        """End every connection."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._answer(reader, writer)
        except Refused as refused:
            body = f"steelyard: {refused}\n".encode()
            head = f"HTTP/1.1 {refused.status}\r\nContent-Length: {len(body)}\r\n"
            head += "Content-Type: text/plain\r\nConnection: close\r\n\r\n"
            with suppress(OSError):
                writer.write(head.encode() + body)
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked has gone, or said nothing that is a request
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) > _MOST_CONNECTIONS:
            raise Refused("503 Busy", "too many connections at once")
        async with asyncio.timeout(_HEAD_WAIT_S):
            head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = _parsed(head)
        if method == "CONNECT":
            host, port = _authority(target)
            out_reader, out_writer = await self._connected(host, port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            parts = urlsplit(target)
            if parts.scheme != "http" or not parts.hostname:
                raise Refused("400 Bad Request", "only http:// is passed on; https uses CONNECT")
            host, port = parts.hostname, parts.port or 80
            out_reader, out_writer = await self._connected(host, port)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            shown = f"[{host}]" if ":" in host else host
            at = shown if port == 80 else f"{shown}:{port}"
            # One request a connection: the next may name another host.
            begin = f"{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n"
            out_writer.write(begin.encode("latin-1") + headers + b"\r\n")
        self._writers.add(out_writer)
        try:
            await writer.drain()
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, out_writer))
                group.create_task(_pass_on(out_reader, writer))
        finally:
            self._writers.discard(out_writer)
            out_writer.close()

    async def _connected(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a host that is allowed, at an address that is.

        Raises:
            Refused: it is not, or does not answer.
        """
        name = normal(host)
        if name is None or not self._allowed.allows(name):
            self._say(host)
            raise Refused("403 Forbidden", f"{host} is not among the allowed hosts of this session")
        host = name
        loop = asyncio.get_running_loop()
        why = "it has no address"
        try:
            async with asyncio.timeout(_CONNECT_WAIT_S):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                for family, _, _, _, address in found:
                    if not self._allowed.allows_address(host, str(address[0])):
                        why = f"{address[0]} is a private address; name the host itself to allow it"
                        continue
                    try:
                        return await asyncio.open_connection(
                            str(address[0]), port, family=family, limit=_HEAD_BYTES
                        )
                    except OSError as error:
                        why = str(error)
        except (OSError, TimeoutError) as error:
            why = str(error) or "it does not answer"
        raise Refused("502 Bad Gateway", f"{host}: {why}")

    def _say(self, host: str) -> None:
        if host not in self._said and len(self._said) < 20:
            self._said.add(host)
            log.info("%s: a program asked for %r, which is not allowed", self._token, host[:200])


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _parsed(head: bytes) -> tuple[str, str, bytes]:
    """Give method, target, and the headers that go on."""
    first, _, rest = head.partition(b"\r\n")
    words = first.decode("latin-1").split(" ")
    if len(words) != 3 or not words[0].isalpha():
        raise Refused("400 Bad Request", "no HTTP request")
    kept = [
        line
        for line in rest.split(b"\r\n")
        if line and line.partition(b":")[0].strip().lower() not in _HOP_HEADERS
    ]
    return words[0].upper(), words[1], b"".join(line + b"\r\n" for line in kept)


def _authority(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise Refused("400 Bad Request", "CONNECT wants HOST:PORT")
    return host.strip("[]"), int(port)


def variables(port: int) -> dict[str, str]:
    """Give the variables by which programs find the proxy."""
    url = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")
    none = "127.0.0.1,localhost,::1"
    return {**dict.fromkeys(names, url), "NO_PROXY": none, "no_proxy": none}
