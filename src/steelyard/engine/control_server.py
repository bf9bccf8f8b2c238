"""Where a running launch listens to `steelyard ctl`: a Unix socket in a private folder.

The folder is not the run directory: a socket's path may have 107 bytes, and run directories are
copied and shared. What a killed launch leaves of it the next one removes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from steelyard.components.clock import Clock
from steelyard.components.private_folders import PrivateFolder
from steelyard.engine import control_protocol as protocol
from steelyard.engine.control import Controls

log = logging.getLogger(__name__)

MAX_CALLERS: Final = 16
"""Connections at once; more are turned away."""
CALL_LIMIT_S: Final = 10.0
"""A caller must send its line, and take its answer, within this."""


class ControlServer:
    """Answers callers on a socket; made by `serving`."""

    def __init__(
        self, controls: Controls, folder: Path, token: str, redact: Callable[[bytes], bytes]
    ) -> None:
        self._controls = controls
        self._token = token
        self._redact = redact
        self.socket_path = folder / protocol.SOCKET_NAME
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the socket cannot be made.
        """
        self._server = await asyncio.start_unix_server(
            self._serve, str(self.socket_path), limit=protocol.MAX_REQUEST_BYTES
        )
        self.socket_path.chmod(0o600)

    async def close(self) -> None:
        """Listen no more, and let go of who is connected."""
        if self._server is not None:
            self._server.close()
        for caller in tuple(self._callers):
            caller.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 — a connection is served by a task
        if len(self._callers) >= MAX_CALLERS or not _is_allowed(writer):
            writer.transport.abort()
            return
        self._callers.add(task)
        try:
            while line := await self._line(reader):
                changed = protocol.act(
                    self._controls, line, token=self._token, roots=self._controls.roots
                )
                await asyncio.sleep(0)  # what it let start has begun by then, and is counted
                writer.write(self._redact(protocol.reply(self._controls, changed)))
                async with asyncio.timeout(CALL_LIMIT_S):
                    await writer.drain()
        except (OSError, TimeoutError):  # it has gone, or takes no answer
            pass
        except Exception:
            log.exception("a caller of ctl could not be answered")
        except asyncio.CancelledError:
            pass  # the launch has ended; nobody waits for this task but `close`
        finally:
            self._callers.discard(task)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _line(self, reader: asyncio.StreamReader) -> bytes | None:
        """The next request, whole; None where none comes that could be answered."""
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                return await reader.readuntil(b"\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return None


@asynccontextmanager
async def serving(
    controls: Controls, clock: Clock, redact: Callable[[bytes], bytes] = bytes
) -> AsyncIterator[None]:
    """Let `steelyard ctl` reach a launch meanwhile; what it is told is passed through `redact`.

    Where no socket can be made the launch goes on without, and the log says why.
    """
    folder: PrivateFolder | None = None
    server: ControlServer | None = None
    try:
        try:
            token = secrets.token_hex(32)
            folder = PrivateFolder.make(
                protocol.FOLDER_PREFIX, clock, owner_file=protocol.TOKEN_NAME, content=token
            )
            server = ControlServer(controls, folder.path, token, redact)
            await server.start()
            controls.address = str(server.socket_path)
        except OSError as error:
            log.warning("`steelyard ctl` cannot reach this launch: %s", error)
        yield
    finally:
        controls.address = None
        if server is not None:
            await server.close()
        if folder is not None:
            folder.remove()


def _is_allowed(writer: asyncio.StreamWriter) -> bool:
    """True for this user and root, where the system says who calls; the folder is private too."""
    peer = peer_uid(writer.get_extra_info("socket"))
    return peer is None or peer in (os.geteuid(), 0)


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end of a Unix socket; None where the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, 12))
    return int(uid)
