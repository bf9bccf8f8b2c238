"""A session of `docker`: one container that sleeps, and the programs started in it.

What a program leaves in the background stays until the session ends (a task may ask for a service);
what is stopped at its deadline or cancelled is ended with all that it started.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.environment import (
    TOKEN_VARIABLE,
    EnvironmentDescription,
    EnvironmentFault,
    ExecResult,
    Kept,
    Network,
    NothingStarts,
    OpenRequest,
    Session,
)
from steelyard.components.values import Trust
from steelyard.environments.docker import programs, reap
from steelyard.environments.docker.engine import Engine, EngineRefusal, finished
from steelyard.environments.docker.limits import MIB, Limits
from steelyard.environments.docker.places import Places
from steelyard.environments.docker.programs import EXEC_VARIABLE, Ended, Program, ProgramNotStarted
from steelyard.environments.docker.reach import Reach, change_network, check_inside
from steelyard.environments.docker.reap import end_helpers, remove_container
from steelyard.environments.local_session import refused

_DISK_PAUSE_S: Final = 0.5
_ROOM: Final = 16
"""Processes that starting one program may take, an engine's own among them."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs."""

    id: str
    name: str
    workdir: str
    user: str | None
    """Whom programs run as; None: root, as which the container itself runs."""


class DockerSession(Session):
    """One container."""

    def __init__(
        self, engine: Engine, request: OpenRequest, container: Container, limits: Limits,
        places: Places, reach: Reach, *, trust: Trust, description: EnvironmentDescription,
        enter: tuple[str, ...], watches_disk: bool = False,
    ) -> None:  # fmt: skip
        """Take a container that runs, with what reaches into it; both are ended by `close`."""
        self._engine = engine
        self._request = request
        self._container = container
        self._limits = limits
        self._places = places
        self._enter = enter
        self._watches_disk = watches_disk
        self._reach = reach
        self.workdir = container.workdir
        self.trust = trust
        self.description = description
        self.model_url = reach.model_url
        self._is_closed = False
        self._is_removed = False
        self._is_kept = False
        self._closing = asyncio.Lock()
        self._oom_kills = 0
        self._had_programs = False
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
            **self._reach.variables,
            **self._request.env,
            **(env or {}),
            TOKEN_VARIABLE: self._request.token,
            EXEC_VARIABLE: running.mark,
        }
        folder = posixpath.join(self.workdir, cwd) if cwd else self.workdir
        program = Program(
            argv, variables, folder, stdin, self._container.user, (self._limits.disk_mb or 0) * MIB
        )
        try:
            programs.check_words(program)
        except ValueError as error:
            return refused(error)
        try:
            ended = await self._ran(program, running, timeout_s)
            is_full = ended.is_full
        except ProgramNotStarted:
            if not await self._is_full():
                raise
            is_full = True
        if is_full and not self._is_closed:
            # What fills the container runs in the background: it goes, or nothing ever starts.
            await self._make_room()
            ended = await self._ran(program, running.again(), timeout_s)
        if self._is_closed:
            raise EnvironmentFault("the session was closed while a program ran")
        return await self._result(ended)

    async def _ran(
        self, program: Program, running: programs.Running, timeout_s: float | None
    ) -> Ended:
        container = self._container.id
        self._running.add(running)
        self._had_programs = True
        try:
            if self._watches_disk:
                ended = await self._watched(program, running, timeout_s)
            else:
                ended = await programs.run(self._engine, container, program, running, timeout_s)
            if ended.has_no_end:
                await self._check_running()
                await programs.check_end(self._engine, running)
        except asyncio.CancelledError:
            if not self._is_closed:
                with suppress(EnvironmentFault):  # the session's end ends it, too
                    await finished(programs.end_tree(self._engine, container, running))
            raise
        except programs.OutputLost as error:
            fault = await self._meaning(error)
            if fault is error:  # it may still run, and the session goes on
                await finished(programs.end_tree(self._engine, container, running))
                raise
            raise fault from error
        except EnvironmentFault as error:
            raise await self._meaning(error) from error
        finally:
            self._running.discard(running)
        if ended.timed_out:
            await finished(programs.end_tree(self._engine, container, running))
        return ended

    async def _is_full(self) -> bool:
        """True where the container's processes are used up."""
        said = await self._engine.call(
            "GET", f"containers/{self._container.id}/top", doing="counting processes",
        )  # fmt: skip
        # Threads count as well, and are not listed: a good part of the bound is reason enough.
        # An engine that cannot list them found no room for that either.
        listed = (said or {}).get("Processes")
        return not listed or len(listed) * 2 > self._limits.processes

    async def _make_room(self) -> None:
        """End what runs in the background of a container that is full."""
        container, limit = self._container.id, self._limits.processes
        await reap.hold_processes(self._engine, container, limit + _ROOM)
        await programs.end_all(self._engine, container)
        await reap.hold_processes(self._engine, container, limit)

    async def _watched(
        self, program: Program, running: programs.Running, timeout_s: float | None
    ) -> Ended:
        """Run a program while somebody looks at what it writes."""
        stopped = False
        ended: Ended | EnvironmentFault

        async def watch() -> None:
            nonlocal stopped
            # A container that cannot be looked at is one whose program fails by itself.
            with suppress(EnvironmentFault):
                while True:
                    if await self._is_over_disk():
                        break
                    await asyncio.sleep(_DISK_PAUSE_S)
                stopped = True
                await programs.end_tree(self._engine, self._container.id, running)

        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            try:
                ended = await programs.run(
                    self._engine, self._container.id, program, running, timeout_s
                )
            except EnvironmentFault as fault:
                ended = fault  # raised again below: a group would wrap it
            finally:
                if not stopped:
                    watching.cancel()
        if isinstance(ended, EnvironmentFault):
            raise ended
        if stopped or await self._is_over_disk():
            ended.stopped_by = "disk"
        return ended

    async def _is_over_disk(self) -> bool:
        said = await self._engine.call(
            "GET", f"containers/{self._container.id}/json", doing="looking at the container's size",
            params={"size": "1"},
        )  # fmt: skip
        return int(said.get("SizeRw") or 0) > (self._limits.disk_mb or 0) * MIB

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
            stopped_by=ended.stopped_by
            or ("memory" if killed_for_memory and exit_code != 0 else None),
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

    async def fixed_network(self, networks: Sequence[Network]) -> str | None:
        """Say why the network cannot become one of these later; None where it can."""
        if self._limits.is_users_network or set(networks) <= {self._limits.network}:
            return None
        if self._limits.network == "open":
            return "a network that was open from the beginning cannot be closed"
        try:
            await check_inside(self._engine, self._container.id, self._request.token)
        except EnvironmentFault as fault:
            return str(fault)
        return None

    async def change_network(self, network: Network, allowed_hosts: Sequence[str] = ()) -> None:
        """Let programs of the container reach something else from now on.

        Raises:
            EnvironmentFault: it cannot be changed.
        """
        self._check_open()
        if self._limits.is_users_network:
            return
        if (why := await self.fixed_network((network,))) is not None:
            raise EnvironmentFault(why)
        if self._limits.network == "open":
            return
        limits = replace(
            self._limits, network=network, allowed_hosts=(*allowed_hosts, *self._limits.users_hosts)
        )
        async with self._closing:
            self._check_open()
            await change_network(
                self._engine, self._container.id, self._request.token, limits, self._reach
            )

    async def keep(self) -> Kept | None:
        """End every program, and let the container stand.

        Raises:
            EnvironmentFault: its programs cannot be ended.
        """
        self._is_closed = True
        async with self._closing:
            if self._is_removed:
                return None
            if not self._is_kept:
                await finished(self._let_stand())
                self._is_kept = True
        return Kept(f"container {self._container.name}", self._enter)

    async def _let_stand(self) -> None:
        await self._reach.end()
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
        await self._reach.end()
        await remove_container(self._engine, self._container.id, had_programs=self._had_programs)
        self._is_removed = True

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
        if isinstance(error, ProgramNotStarted) and error.has_no_shell:
            return NothingStarts(str(error))
        return error
