"""A gateway that answers every request with one word, and one that serves nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

REACH = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(sys.argv[1] + "/hello", timeout=20).read().decode())
"""
"""Run inside with the gateway's URL: prints what it answered."""


class FakeGate:
    """A `ModelGate`. Says `reached`; keeps count of what it serves."""

    def __init__(self) -> None:
        self.serving = 0
        self.connections = 0
        self.listeners: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []

    @property
    def socket_path(self) -> Path:
        raise AssertionError("nobody binds it here")

    async def serve(self, listener: socket.socket) -> Callable[[], None]:
        server = await asyncio.start_server(self._answer, sock=listener)
        self.listeners.append(listener)
        self.serving += 1

        def end() -> None:
            self.serving -= 1
            server.close()

        return end

    async def host_url(self) -> str:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self._servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nreached")
        await writer.drain()
        writer.close()

    def close(self) -> None:
        for server in self._servers:
            server.close()


class BrokenGate(FakeGate):
    """Refuses to serve."""

    async def serve(self, listener: socket.socket) -> Callable[[], None]:
        raise RuntimeError("the gateway is closed")

    async def host_url(self) -> str:
        raise RuntimeError("the gateway is closed")
