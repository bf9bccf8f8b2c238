"""Where a running launch listens to `steelyard ctl`: a Unix socket in a private folder.

The folder is not the run directory: a socket's path may have 107 bytes, and run directories are
copied and shared. A token file in it is locked while the process lives; by that lock whoever
starts next tells the folders of dead processes, and removes them.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import secrets
import socket
import struct
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from steelyard.components.clock import Clock
from steelyard.engine import control_protocol as protocol
from steelyard.engine.control import Controls

log = logging.getLogger(__name__)

MAX_PATH_BYTES: Final = 103
"""Of a socket: 107 on Linux, 103 on macOS."""
MAX_CALLERS: Final = 16
"""Connections at once; more are turned away."""
CALL_LIMIT_S: Final = 10.0
"""A caller must send its line, and take its answer, within this."""
_STALE_AFTER_S: Final = 60.0
"""A folder younger than this may be one whose owner has not locked its token yet."""


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
                reply = protocol.answer(
                    self._controls, line, token=self._token, roots=self._controls.roots
                )
                writer.write(self._redact(reply))
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
    folder: Path | None = None
    lock = -1
    server: ControlServer | None = None
    try:
        try:
            base = _base()
            remove_stale(base, clock)
            folder = Path(tempfile.mkdtemp(prefix=protocol.FOLDER_PREFIX, dir=base))
            token = secrets.token_hex(32)
            lock = _write_token(folder, token)
            server = ControlServer(controls, folder, token, redact)
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
            _remove(folder)
        if lock >= 0:
            os.close(lock)


def _base() -> Path:
    """The folder to make ours in: the user's runtime folder, else a temporary one."""
    for text in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108
        base = Path(text) if text else None
        if base is None or not base.is_absolute() or not base.is_dir():
            continue
        longest = f"{base}/{protocol.FOLDER_PREFIX}{'x' * 8}/{protocol.SOCKET_NAME}"
        if len(os.fsencode(longest)) <= MAX_PATH_BYTES and os.access(base, os.W_OK | os.X_OK):
            return base
    raise OSError("there is no folder for its socket that can be written and has a short path")


def _write_token(folder: Path, token: str) -> int:
    """Write the token, and hold its lock while the descriptor is open."""
    path = folder / protocol.TOKEN_NAME
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, token.encode())
    except BaseException:
        os.close(fd)
        raise
    return fd


def remove_stale(base: Path, clock: Clock) -> None:
    """Remove the folders that dead processes of this user left behind."""
    before_s = clock.now().timestamp() - _STALE_AFTER_S
    for folder in _own_folders(base):
        with suppress(OSError):
            if folder.stat().st_mtime < before_s and _is_abandoned(folder):
                _remove(folder)


def _own_folders(base: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if (
                entry.name.startswith(protocol.FOLDER_PREFIX)
                and entry.is_dir(follow_symlinks=False)
                and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
            ):
                yield Path(entry.path)


def _is_abandoned(folder: Path) -> bool:
    """True where nobody holds the token's lock."""
    try:
        fd = os.open(folder / protocol.TOKEN_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _remove(folder: Path) -> None:
    """Remove what we put there and nothing else."""
    for name in (protocol.SOCKET_NAME, protocol.TOKEN_NAME):
        with suppress(OSError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()


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
