"""An environment in memory: scripted programs, files in a dictionary, every call on record."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from pathlib import Path
from typing import Any, ClassVar

from steelyard.components.environment import (
    Environment,
    EnvironmentDescription,
    EnvironmentFault,
    ExecResult,
    NoParams,
    OpenRequest,
    Session,
)
from steelyard.components.values import Trust

WORKDIR = "/fake"


@dataclass(frozen=True, slots=True)
class ExecCall:
    """What a program was started with."""

    argv: tuple[str, ...]
    stdin: bytes
    env: Mapping[str, str]
    cwd: str | None
    timeout_s: float | None


Programs = Callable[[ExecCall], ExecResult | Awaitable[ExecResult]]
"""What running a program gives; raise `EnvironmentFault` to fail the provider."""
Hook = Callable[[Any], Awaitable[Any]]


class FakeSession(Session):
    """Keeps what was asked of it; runs nothing."""

    def __init__(self, environment: FakeEnvironment, request: OpenRequest) -> None:
        self.environment = environment
        self.request = request
        self.token = request.token
        self.workdir = WORKDIR
        self.trust = environment.trust
        self.description = EnvironmentDescription("fake")
        self.calls: list[ExecCall] = []
        self.closed = 0
        """How often it was closed."""

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
        """Give what the script says; success without output where there is none."""
        self._must_be_open()
        call = ExecCall(tuple(argv), stdin, dict(env or {}), cwd, timeout_s)
        self.calls.append(call)
        if self.environment.programs is None:
            return ExecResult(0, b"", b"")
        result = self.environment.programs(call)
        return await result if isawaitable(result) else result

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Keep the file; relative and absolute paths of one file are one."""
        self._must_be_open()
        self.environment.files[_key(path)] = data

    async def read_file(self, path: str, *, max_bytes: int = 10 * 1024 * 1024) -> bytes:
        """Give the file back; also what the test itself put into `environment.files`."""
        self._must_be_open()
        try:
            data = self.environment.files[_key(path)]
        except KeyError:
            raise FileNotFoundError(path) from None
        if len(data) > max_bytes:
            raise ValueError(f"{path} is larger than {max_bytes} bytes")
        return data

    async def upload(self, source: Path, path: str) -> None:
        """Keep what was asked for; files of a folder become files here."""
        self._must_be_open()
        self.environment.uploads.append((self.token, path))
        for name, data in await asyncio.to_thread(_read_tree, source):
            self.environment.files[_key(posixpath.join(path, name) if name else path)] = data

    async def download(self, path: str, target: Path) -> None:
        """Write one file to the host."""
        data = await self.read_file(path)
        await asyncio.to_thread(target.write_bytes, data)

    async def close(self) -> None:
        """Count it."""
        if self.environment.on_close is not None:
            await self.environment.on_close(self)
        self.closed += 1

    def _must_be_open(self) -> None:
        if self.closed:
            raise EnvironmentFault("the session is closed")


def _key(path: str) -> str:
    whole = posixpath.normpath(posixpath.join(WORKDIR, path))
    return posixpath.relpath(whole, WORKDIR) if whole.startswith(f"{WORKDIR}/") else whole


def _read_tree(source: Path) -> list[tuple[str, bytes]]:
    if not source.is_dir():
        return [("", source.read_bytes())] if source.is_file() else []
    return [
        (found.relative_to(source).as_posix(), found.read_bytes())
        for found in sorted(source.rglob("*"))
        if found.is_file()
    ]


class FakeEnvironment(Environment):
    """Opens sessions in memory; all share one set of files.

    Args:
        programs: what running a program gives.
        trust: what its sessions claim.
        on_open: awaited with the `OpenRequest` before a session opens; may raise or wait.
        on_close: awaited with the session before it closes.
    """

    api: ClassVar[int] = 1
    id: ClassVar[str] = "fake"
    best_trust: ClassVar[Trust] = Trust.ISOLATED

    def __init__(
        self,
        programs: Programs | None = None,
        *,
        trust: Trust = Trust.ISOLATED,
        on_open: Hook | None = None,
        on_close: Hook | None = None,
    ) -> None:
        super().__init__(NoParams())
        self.programs = programs
        self.trust = trust
        self.on_open = on_open
        self.on_close = on_close
        self.sessions: list[FakeSession] = []
        self.files: dict[str, bytes] = {}
        """By path: relative to the working folder, or absolute outside it."""
        self.uploads: list[tuple[str, str]] = []
        """Token of the session and path, in order."""

    @property
    def calls(self) -> list[ExecCall]:
        """Every program that was started, session by session."""
        return [call for session in self.sessions for call in session.calls]

    async def open(self, request: OpenRequest) -> Session:
        """Open a session in memory."""
        if self.on_open is not None:
            await self.on_open(request)
        session = FakeSession(self, request)
        self.sessions.append(session)
        return session
