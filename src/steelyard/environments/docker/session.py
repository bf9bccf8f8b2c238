"""A session of `docker`: one container that sleeps, and the programs started in it.

What a program leaves in the background stays until the session ends (a task may ask for a service);
what is stopped at its deadline or cancelled is ended with all that it started.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.environment import (
    TOKEN_VARIABLE,
    EnvironmentDescription,
    EnvironmentFault,
    ExecResult,
    Kept,
    OpenRequest,
    Session,
)
from steelyard.components.values import Trust
from steelyard.environments.docker import programs
from steelyard.environments.docker.engine import Engine, EngineRefusal, finished
from steelyard.environments.docker.limits import Limits
from steelyard.environments.docker.places import Places
from steelyard.environments.docker.programs import EXEC_VARIABLE, Ended, Program
from steelyard.environments.docker.reap import end_helpers, remove_container
from steelyard.environments.local_session import refused


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs."""

    id: str
    name: str
    workdir: str
    user: str | None
    """Whom programs run as, where not the container's own."""
    home: str | None = None


class DockerSession(Session):
    """One container."""

    def __init__(
        self, engine: Engine, request: OpenRequest, container: Container, limits: Limits,
        places: Places, *, trust: Trust, description: EnvironmentDescription, engine_name: str,
        enter: tuple[str, ...], endings: Sequence[Callable[[], Awaitable[None]]] = (),
        model_url: str | None = None, variables: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Take a container that runs; it is removed by `close`.

        `endings` are called at the end: what reaches into the container from outside.
        """
        self._engine = engine
        self._request = request
        self._container = container
        self._limits = limits
        self._places = places
        self._engine_name = engine_name
        self._enter = enter
        self._endings = list(endings)
        self._more = dict(variables or {})
        self.workdir = container.workdir
        self.trust = trust
        self.description = description
        self.model_url = model_url
        self._is_closed = False
        self._is_removed = False
        self._closing = asyncio.Lock()
        self._oom_kills = 0
        self._running: set[programs.Running] = set()

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
        max_output_bytes: int = 10 * 1024 * 1024,
    ) -> ExecResult:
        """Run a program to its end.

        An exit code from 129 to 192 is given as the signal it stands for.

        Raises:
            EnvironmentFault: the session is gone or could not start any process.
        """
        self._check_open()
        running = programs.Running(max_output_bytes)
        variables = {
            **self._more,
            **self._request.env,
            **(env or {}),
            TOKEN_VARIABLE: self._request.token,
            EXEC_VARIABLE: running.mark,
        }
        folder = posixpath.join(self.workdir, cwd) if cwd else self.workdir
        program = Program(argv, variables, folder, stdin, self._container.user)
        try:
            programs.check_words(program)
        except ValueError as error:
            return refused(error)
        self._running.add(running)
        try:
            ended = await self._ran(program, running, timeout_s)
        finally:
            self._running.discard(running)
        if self._is_closed:
            raise EnvironmentFault("the session was closed while a program ran")
        return await self._result(ended)

    async def _ran(
        self, program: Program, running: programs.Running, timeout_s: float | None
    ) -> Ended:
        container = self._container.id
        try:
            ended = await programs.run(self._engine, container, program, running, timeout_s)
        except asyncio.CancelledError:
            if not self._is_closed:
                with suppress(EnvironmentFault):  # the session's end ends it, too
                    await finished(programs.end_tree(self._engine, container, running))
            raise
        except EnvironmentFault as error:
            raise await self._meaning(error) from error
        if ended.timed_out:
            await finished(programs.end_tree(self._engine, container, running))
        elif ended.exit_code is None:
            await self._check_running()
        return ended

    async def _result(self, ended: Ended) -> ExecResult:
        code = ended.exit_code
        exit_code = -9 if code is None or ended.timed_out else code
        if 128 < exit_code <= 192:
            exit_code = 128 - exit_code
        killed_for_memory = ended.oom_kills > self._oom_kills
        self._oom_kills = max(self._oom_kills, ended.oom_kills)
        return ExecResult(
            exit_code, ended.stdout, ended.stderr, timed_out=ended.timed_out,
            truncated=ended.truncated,
            duration_s=asyncio.get_running_loop().time() - (ended.started_at_s or 0.0),
            stopped_by="memory" if killed_for_memory and exit_code != 0 else None,
        )  # fmt: skip

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making its folders.

        Raises:
            ValueError: the path names something that is not a regular file.
        """
        self._check_open()
        await self._places.write(path, data, mode)

    async def read_file(self, path: str, *, max_bytes: int = 10 * 1024 * 1024) -> bytes:
        """Read a regular file; links are followed inside the container.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is larger than `max_bytes`, or not a regular file.
        """
        self._check_open()
        return await self._places.read(path, max_bytes)

    async def upload(self, source: Path, path: str) -> None:
        """Copy a file or a folder's content in, modes and links kept."""
        self._check_open()
        await self._places.upload(source, path)

    async def download(self, path: str, target: Path) -> None:
        """Copy a file or folder out to a new path of the host.

        Raises:
            FileNotFoundError: there is nothing at `path`.
            FileExistsError: there is something at `target`.
            ValueError: it is no file or folder, too deep, or too large.
        """
        self._check_open()
        await self._places.download(path, target)

    async def collect(self, wanted: ArtifactSpec, target: Path) -> Collected:
        """Copy the wanted files of the session below an existing folder of the host."""
        self._check_open()
        return await self._places.collect(wanted, target)

    async def end_programs(self) -> None:
        """End every program that is still awaited; services in the background stay."""
        self._check_open()
        for running in list(self._running):
            await programs.end_tree(self._engine, self._container.id, running)

    async def keep(self) -> Kept | None:
        """End every program, and let the container stand.

        Raises:
            EnvironmentFault: its programs cannot be ended.
        """
        self._check_open()
        self._is_closed = True
        async with self._closing:
            await finished(self._kept())
        return Kept(f"container {self._container.name}", self._enter)

    async def _kept(self) -> None:
        await self._end_reaches()
        await programs.end_all(self._engine, self._container.id)
        await end_helpers(self._container.id)

    async def close(self) -> None:
        """Remove the container. Safe to call twice and while an exec runs.

        Raises:
            EnvironmentFault: it cannot be removed.
        """
        self._is_closed = True
        async with self._closing:
            if not self._is_removed:
                await finished(self._remove())

    async def _remove(self) -> None:
        await self._end_reaches()
        await remove_container(self._engine, self._container.id)
        self._is_removed = True

    async def _end_reaches(self) -> None:
        while self._endings:
            await self._endings.pop()()

    def _check_open(self) -> None:
        if self._is_closed:
            raise EnvironmentFault("the session is closed")

    async def _check_running(self) -> None:
        """A program whose end nobody saw was killed, or its container was.

        Raises:
            EnvironmentFault: the container does not run any more.
        """
        if self._is_closed:
            return
        try:
            said = await self._engine.call(
                "GET", f"containers/{self._container.id}/json", doing="looking at the container"
            )
        except EngineRefusal as error:
            raise EnvironmentFault("the session's container is gone") from error
        state = said.get("State") or {}
        if not state.get("Running"):
            why = "memory ran out" if state.get("OOMKilled") else f"exit {state.get('ExitCode')}"
            raise EnvironmentFault(f"the session's container has stopped: {why}")

    async def _meaning(self, error: EnvironmentFault) -> EnvironmentFault:
        """Say that the session is gone where that is why a program did not start."""
        if self._is_closed:
            return EnvironmentFault("the session was closed while a program ran")
        try:
            await self._check_running()
        except EnvironmentFault as gone:
            return gone
        return error
