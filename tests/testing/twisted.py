"""A provider that is sound but for one twist: another provider's sessions, one thing changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.environment import (
    Environment,
    ExecResult,
    Kept,
    Leftover,
    NoParams,
    OpenRequest,
    Session,
)
from steelyard.components.registry import Kind, find
from steelyard.components.values import Trust
from tests.containers.images import DEBIAN


@dataclass(frozen=True)
class Twist:
    """What a provider does otherwise than the contract asks; each hook stands for one method."""

    provider: str = "host_process"
    before: Callable[[list[str], dict[str, Any]], list[str]] | None = None
    """Changes the options of an exec in place, gives the words."""
    after: Callable[[ExecResult], ExecResult] | None = None
    methods: Mapping[str, Callable[..., Awaitable[Any]]] = field(default_factory=dict)
    """By name; each is given the twisted session first."""
    open: Callable[[Environment, OpenRequest], Awaitable[Session]] | None = None
    find: Callable[[Sequence[str]], Sequence[Leftover]] | None = None
    end: str | None = None
    """Why leftovers are not ended."""
    enter: Callable[..., Awaitable[int]] | None = None
    """Is given the inner provider first."""
    model_url: Callable[[OpenRequest], str | None] | None = None
    trust: Trust | None = None
    shares_sessions: bool = False
    environment: type[Environment] | None = None
    """A class of its own, where the class is what is broken."""


class TwistedSession(Session):
    """A session that does what its twist says, and else what the inner one does."""

    def __init__(self, inner: Session, twist: Twist, request: OpenRequest) -> None:
        self.inner = inner
        self.twist = twist
        self.workdir = inner.workdir
        self.trust = twist.trust or inner.trust
        self.description = inner.description
        self.model_url = twist.model_url(request) if twist.model_url else inner.model_url
        self.kept: list[Any] = []
        """For what a twist must remember."""
        self.ghosts: list[asyncio.Task[None]] = []

    async def exec(self, argv: Sequence[str], **options: Any) -> ExecResult:
        if "exec" in self.twist.methods:
            found: ExecResult = await self.twist.methods["exec"](self, list(argv), **options)
            return found
        return await self.plain_exec(argv, **options)

    async def plain_exec(self, argv: Sequence[str], **options: Any) -> ExecResult:
        if self.twist.before is not None:
            argv = self.twist.before(list(argv), options)
        result = await self.inner.exec(argv, **options)
        return self.twist.after(result) if self.twist.after is not None else result

    async def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if name in self.twist.methods:
            return await self.twist.methods[name](self, *arguments, **options)
        return await getattr(self.inner, name)(*arguments, **options)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self._call("write_file", path, data, mode=mode)

    async def read_file(self, path: str, *, max_bytes: int = 10 * 1024 * 1024) -> bytes:
        found: bytes = await self._call("read_file", path, max_bytes=max_bytes)
        return found

    async def upload(self, source: Path, path: str) -> None:
        await self._call("upload", source, path)

    async def download(self, path: str, target: Path) -> None:
        await self._call("download", path, target)

    async def collect(self, wanted: ArtifactSpec, target: Path) -> Collected:
        found: Collected = await self._call("collect", wanted, target)
        return found

    async def end_programs(self) -> None:
        await self._call("end_programs")

    async def keep(self) -> Kept | None:
        found: Kept | None = await self._call("keep")
        return found

    async def close(self) -> None:
        for ghost in self.ghosts:
            ghost.cancel()
        await asyncio.gather(*self.ghosts, return_exceptions=True)
        self.ghosts.clear()
        await self._call("close")

    def haunt(self) -> None:
        """Go on writing the file `tick`, as a process would that was not ended."""
        self.ghosts.append(asyncio.ensure_future(self._tick()))

    async def _tick(self) -> None:
        for count in range(40):
            with suppress(Exception):
                await self.inner.write_file("tick", str(count).encode())
            await asyncio.sleep(0.05)


class Twisted(Environment):
    """A provider whose sessions are twisted; whatever it opened is closed with it."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "twisted"
    twist: ClassVar[Twist] = Twist()

    def __init__(self, twist: Twist | None = None) -> None:
        super().__init__(NoParams())
        self._twist = twist or self.twist
        component = find(Kind.ENVIRONMENT, self._twist.provider).component
        params = {"image": DEBIAN, "pull": "never"} if self._twist.provider == "docker" else {}
        self.inner: Environment = component(component.Params(**params))
        self.best_trust = self.inner.best_trust  # type: ignore[misc]
        self._opened: list[Session] = []

    async def open(self, request: OpenRequest) -> Session:
        if self._twist.shares_sessions and self._opened:
            return TwistedSession(self._opened[0], self._twist, request)
        opening = self._twist.open or (lambda environment, asked: environment.open(asked))
        inner = await opening(self.inner, request)
        self._opened.append(inner)
        return TwistedSession(inner, self._twist, request)

    async def find_leftovers(self, tokens: Sequence[str]) -> Sequence[Leftover]:
        if self._twist.find is not None:
            return self._twist.find(tokens)
        return await self.inner.find_leftovers(tokens)

    async def end_leftovers(self, leftovers: Sequence[Leftover]) -> None:
        if self._twist.end is None:
            await self.inner.end_leftovers(leftovers)

    async def enter(self, token: str, state: Mapping[str, Any], argv: Sequence[str]) -> int:
        if self._twist.enter is not None:
            return await self._twist.enter(self.inner, token, state, argv)
        return await self.inner.enter(token, state, argv)

    async def close(self) -> None:
        for session in self._opened:
            await session.close()
        await self.inner.close()
