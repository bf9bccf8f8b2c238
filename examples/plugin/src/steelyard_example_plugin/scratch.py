"""An environment: programs on this machine, with a home and a temporary folder of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from steelyard.components.environment import (
    Environment,
    EnvironmentDescription,
    ExecResult,
    Leftover,
    NoParams,
    OpenRequest,
    Session,
)
from steelyard.components.registry import Kind, find
from steelyard.components.values import Trust

FOLDERS = {"HOME": ".home", "TMPDIR": ".tmp"}


class ScratchSession(Session):
    """Another session, whose programs find their own folders in their variables."""

    def __init__(self, inner: Session) -> None:
        self._inner = inner
        self.workdir = inner.workdir
        self.trust = inner.trust
        self.model_url = inner.model_url
        self.description = EnvironmentDescription("scratch", details=inner.description.details)
        self._own = {name: f"{inner.workdir}/{folder}" for name, folder in FOLDERS.items()}

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
        """Run a program."""
        return await self._inner.exec(
            argv,
            stdin=stdin,
            env={**self._own, **(env or {})},
            cwd=cwd,
            timeout_s=timeout_s,
            max_output_bytes=max_output_bytes,
        )

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file."""
        await self._inner.write_file(path, data, mode=mode)

    async def read_file(self, path: str, *, max_bytes: int = 10 * 1024 * 1024) -> bytes:
        """Read a file."""
        return await self._inner.read_file(path, max_bytes=max_bytes)

    async def upload(self, source: Path, path: str) -> None:
        """Copy in."""
        await self._inner.upload(source, path)

    async def download(self, path: str, target: Path) -> None:
        """Copy out."""
        await self._inner.download(path, target)

    async def close(self) -> None:
        """End it; its folders go with the working folder."""
        await self._inner.close()


class Scratch(Environment):
    """Holds nobody, so its trust is `host`."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "scratch"
    is_local: ClassVar[bool] = True
    best_trust: ClassVar[Trust] = Trust.HOST

    def __init__(self, params: NoParams) -> None:
        super().__init__(params)
        found = find(Kind.ENVIRONMENT, "host_process").component
        self._host: Environment = found(found.Params())

    async def open(self, request: OpenRequest) -> Session:
        """Open a session of `host_process`; the folders are made when a program asks for them."""
        return ScratchSession(await self._host.open(request))

    async def find_leftovers(self, tokens: Sequence[str]) -> Sequence[Leftover]:
        """Find what sessions left behind."""
        return await self._host.find_leftovers(tokens)

    async def end_leftovers(self, leftovers: Sequence[Leftover]) -> None:
        """End it."""
        await self._host.end_leftovers(leftovers)

    async def close(self) -> None:
        """Let go of the provider below."""
        await self._host.close()
