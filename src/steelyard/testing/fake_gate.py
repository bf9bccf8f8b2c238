"""A model gateway that answers every request with one word, and one that is closed."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

ANSWER: Final = b"reached"

REACH: Final = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(sys.argv[1] + "/v1/models", timeout=20).read().decode())
"""
"""A Python program: run inside with the gateway's URL, it prints what was answered."""


class FakeGate:
    """A `ModelGate`, as a context: says `reached`, and keeps count of what it serves."""

    def __init__(self) -> None:
        self.serving = 0
        """Ways in that were handed over and not ended."""
        self.connections = 0
        self._folder = tempfile.TemporaryDirectory(prefix="gate-")
        self._servers: list[asyncio.Server] = []
        self._ended: list[asyncio.Server] = []
        self._url: str | None = None

    async def __aenter__(self) -> Self:
        server = await asyncio.start_unix_server(self._answer, str(self.socket_path))
        self._servers.append(server)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in self._servers:
            server.close()
        await asyncio.sleep(0)
        self._folder.cleanup()

    @property
    def socket_path(self) -> Path:
        """A Unix socket in a private folder."""
        return Path(self._folder.name) / "gate.sock"

    async def serve(self, listener: socket.socket) -> Callable[[], None]:
        """Serve what connects to a socket, until what is returned is called."""
        server = await asyncio.start_server(self._answer, sock=listener)
        self._servers.append(server)
        self.serving += 1

        def end() -> None:
            if server not in self._ended:
                self._ended.append(server)
                self.serving -= 1
            server.close()

        return end

    async def host_url(self) -> str:
        """Give an address on this host's loopback."""
        if self._url is None:
            server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
            self._servers.append(server)
            self._url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return self._url

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(ANSWER)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + ANSWER)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return  # whoever asked has gone
        finally:
            writer.close()


class ClosedGate:
    """A `ModelGate` that can no longer serve."""

    @property
    def socket_path(self) -> Path:
        """A path where nothing listens."""
        return Path(tempfile.gettempdir()) / "no-such-gate.sock"

    async def serve(self, listener: socket.socket) -> Callable[[], None]:
        """Refuse, the socket closed."""
        listener.close()
        raise RuntimeError("the gateway is closed")

    async def host_url(self) -> str:
        """Refuse."""
        raise RuntimeError("the gateway is closed")
