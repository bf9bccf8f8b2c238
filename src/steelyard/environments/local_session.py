"""What sessions on this machine share: a folder made when first used, files, a clean end."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.environment import (
    TOKEN_VARIABLE,
    EnvironmentFault,
    ExecResult,
    Kept,
    OpenRequest,
    Session,
)
from steelyard.environments.files import Confined
from steelyard.environments.processes import Process
from steelyard.environments.tree_copy import remove_tree

_CLOSE_WAIT_S: Final = 15.0

P = ParamSpec("P")
R = TypeVar("R")


class LocalSession(Session):
    """A folder of this machine, and the processes that run over it."""

    def __init__(self, request: OpenRequest, folder: Path, files: Confined) -> None:
        self._request = request
        self._folder = folder
        self._files = files
        self._running: set[Process] = set()
        self._active = 0
        self._idle = asyncio.Event()
        self._is_made = False
        self._last_work: tuple[Callable[[], None], asyncio.Future[None]] | None = None
        """What ends the session, in a thread, with what it was called for."""
        self._is_ready = False
        self._is_closed = False
        self._making = asyncio.Lock()
        self._closing = asyncio.Lock()

    @abstractmethod
    def _make_folder(self) -> None:
        """Make the session's folder and what belongs into it. Blocking."""

    def _variables(self, env: Mapping[str, str] | None, base: Mapping[str, str]) -> dict[str, str]:
        """Lay the variables of session and program over `base`; the token can't be changed.

        Raises:
            ValueError: a name that no variable can have.
        """
        variables = {
            **base,
            **self._request.env,
            **(env or {}),
            TOKEN_VARIABLE: self._request.token,
        }
        for name in variables:
            if not name or "=" in name:
                raise ValueError(f"{name!r} is no name of a variable")
        return variables

    @asynccontextmanager
    async def _busy(self) -> AsyncIterator[None]:
        """Hold the session's folder while the block runs: `close` waits for it.

        Raises:
            EnvironmentFault: the session is closed, or the folder cannot be made.
        """
        self._active += 1
        self._idle.clear()
        try:
            await self._ready()
            yield
        finally:
            self._active -= 1
            if not self._active:
                self._idle.set()

    async def _ready(self) -> None:
        """Make the folder, once.

        Raises:
            EnvironmentFault: the session is closed, or the folder cannot be made.
        """
        if self._is_closed:
            raise EnvironmentFault("the session is closed")
        if self._is_ready:
            return
        async with self._making:
            if self._is_closed:
                raise EnvironmentFault("the session is closed")
            if not self._is_ready:
                self._is_made = True  # from now on there may be something to remove
                try:
                    await in_thread(self._make_folder)
                except OSError as error:
                    raise EnvironmentFault(
                        f"the session's folder {self._folder} cannot be made: {error}"
                    ) from error
                self._is_ready = True

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making its folders.

        Raises:
            ValueError: the path leads out of the session, or is no regular file.
        """
        async with self._busy():
            await in_thread(self._files.write, path, data, mode)

    async def read_file(self, path: str, *, max_bytes: int = 10 * 1024 * 1024) -> bytes:
        """Read a regular file; links that lead out of the session are refused.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is larger than `max_bytes`, or not a regular file.
        """
        async with self._busy():
            return await in_thread(self._files.read, path, max_bytes)

    async def upload(self, source: Path, path: str) -> None:
        """Copy a file or a folder's content in, modes and links kept."""
        async with self._busy():
            await in_thread(self._files.upload, source, path)

    async def download(self, path: str, target: Path) -> None:
        """Copy a file or folder out to a new path of the host.

        Raises:
            FileNotFoundError: there is nothing at `path`.
            FileExistsError: there is something at `target`.
            ValueError: the path leads out, or the tree is too deep or too large.
        """
        async with self._busy():
            await in_thread(self._files.download, path, target)

    async def collect(self, wanted: ArtifactSpec, target: Path) -> Collected:
        """Copy the wanted files of the session below an existing folder of the host."""
        async with self._busy():
            return await in_thread(self._files.collect, wanted, target)

    async def end_programs(self) -> None:
        """End every program of the session that still runs; its files stay."""
        for process in list(self._running):
            process.on_request = True
            process.kill()

    async def keep(self) -> Kept | None:
        """End every process and let the folder stand; None where there is none yet.

        Raises:
            EnvironmentFault: something cannot be ended or given back; it is named.
        """
        if not await self._shut(self._release):
            return None
        return Kept(f"folder {self._folder}", state={"folder": self._folder.name, **self._state()})

    async def close(self) -> None:
        """End every process, remove the folder. Safe to call twice and while an exec runs.

        Raises:
            EnvironmentFault: something cannot be ended or removed; it is named.
        """
        if await self._shut(self._clear):
            self._is_made = False

    async def _shut(self, last: Callable[[], None]) -> bool:
        """End every process, then do the last work in a thread; False where nothing was made.

        Raises:
            EnvironmentFault: the last work failed.
        """
        self._is_closed = True
        async with self._closing:
            for process in list(self._running):
                process.kill()
            # Starts and copies under way see the flag, or end; then nothing writes any more.
            if self._active:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CLOSE_WAIT_S):
                        await self._idle.wait()
            if not self._is_made:
                return False
            try:
                # A caller that is cancelled twice leaves a thread at work: who comes next waits
                # for that one, two would remove each other's files.
                if self._last_work is not None and not self._last_work[1].done():
                    begun, work = self._last_work
                    await _settled(work)
                    if begun == last:
                        return True
                loop = asyncio.get_running_loop()
                self._last_work = (last, loop.run_in_executor(None, last))
                await _settled(self._last_work[1])
            except OSError as error:
                raise EnvironmentFault(f"{self._folder} cannot be removed: {error}") from error
            return True

    async def _on_start(self, process: Process) -> None:
        """Complete a start; here, only see that the session was not closed meanwhile."""
        if self._is_closed:
            process.kill()

    def _state(self) -> dict[str, Any]:
        """Give what it takes to enter the kept session, beside its folder; as JSON."""
        return {}

    def _release(self) -> None:
        """End what `_running` does not name, give back all but files. Blocking.

        Raises:
            OSError: something cannot be ended or given back.
        """

    def _clear(self) -> None:
        """Release, then remove the folder. Blocking, one thread hop.

        Raises:
            OSError: something cannot be ended or removed.
        """
        self._release()
        remove_tree(self._folder)


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run blocking work in a thread; a cancelled caller still waits until it has ended.

    Else a copy under way would go on writing into a folder that is being removed.
    """
    loop = asyncio.get_running_loop()
    return await _settled(loop.run_in_executor(None, partial(function, *args, **kwargs)))


async def _settled(future: asyncio.Future[R]) -> R:
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if not future.done():
            await asyncio.wait({future})
        if not future.cancelled():
            future.exception()  # seen, or the loop would report it
        raise


async def host_url(request: OpenRequest) -> str | None:
    """Give the gateway's address on the host's loopback; None where there is no gateway.

    Raises:
        EnvironmentFault: it cannot be opened.
    """
    if request.gate is None:
        return None
    try:
        return await request.gate.host_url()
    except Exception as error:  # a gate is somebody else's code
        raise EnvironmentFault(f"the model gateway has no address here: {error}") from error


def refused(error: Exception) -> ExecResult:
    """Answer for a program whose words or variables cannot be passed to it."""
    return ExecResult(126, b"", f"cannot be run: {error}\n".encode("utf-8", "replace"))
