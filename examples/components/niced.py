"""An environment in one file: programs on this machine at a lower priority.

    steelyard run humaneval chat MODEL --env ./examples/components/niced.py:Niced

It stands on `host_process` and changes one thing. A provider of your own implements `Session`
whole; `steelyard.testing` holds the suite that every provider passes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from steelyard.components.environment import (
    Environment,
    EnvironmentDescription,
    ExecResult,
    Leftover,
    NoParams,
    OpenRequest,
    Session,
)
from steelyard.components.values import Trust
from steelyard.environments.host_process import HostProcess


class NicedParams(BaseModel):
    """What the `environment:` section may set."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    niceness: Annotated[int, Field(ge=0, le=19)] = 10


class NicedSession(Session):
    """A session whose programs start through `nice`."""

    def __init__(self, inner: Session, niceness: int) -> None:
        self._inner = inner
        self._niceness = niceness
        self.workdir = inner.workdir
        self.trust = inner.trust
        self.description = EnvironmentDescription(
            "niced", details={**inner.description.details, "niceness": str(niceness)}
        )

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
        """Run a program; `nice` itself ends with 127 where there is none of that name."""
        return await self._inner.exec(
            ["nice", "-n", str(self._niceness), *argv],
            stdin=stdin,
            env=env,
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
        """End it."""
        await self._inner.close()


class Niced(Environment):
    """Programs on this machine that leave the processor to others."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "niced"
    is_local: ClassVar[bool] = True
    best_trust: ClassVar[Trust] = Trust.HOST
    Params: ClassVar[type[BaseModel]] = NicedParams
    params: NicedParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        self._host = HostProcess(NoParams())

    @classmethod
    def unavailable(cls) -> str | None:
        """Say what this machine lacks."""
        return HostProcess.unavailable()

    async def open(self, request: OpenRequest) -> Session:
        """Open a session; where that fails, raise `EnvironmentFault`."""
        return NicedSession(await self._host.open(request), self.params.niceness)

    async def find_leftovers(self, tokens: Sequence[str]) -> Sequence[Leftover]:
        """Find what sessions of a dead run left behind."""
        return await self._host.find_leftovers(tokens)

    async def end_leftovers(self, leftovers: Sequence[Leftover]) -> None:
        """End it."""
        await self._host.end_leftovers(leftovers)
