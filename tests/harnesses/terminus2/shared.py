"""Terminus 2 whose instances share one process that has the package: importing it takes seconds."""

from __future__ import annotations

import asyncio
import atexit
import secrets
from dataclasses import replace
from typing import ClassVar

from steelyard.components.environment import OpenRequest, Session
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.terminus2 import Terminus2, server
from tests.harnesses.terminus2.package import installed

_started: list[server.Server] = []


class SharedTerminus2(Terminus2):
    """Closing one leaves the process to the others; it ends with the tests."""

    api: ClassVar[int] = 1

    async def _running_server(self) -> server.Server:
        if not _started:
            python = await asyncio.to_thread(installed)
            _started.append(await server.start(python, self._params.version))
            atexit.register(_started[0].close)
        return _started[0]

    async def close(self) -> None:
        """Leave it."""


class Apart(HostProcess):
    """`host_process` for tests side by side: a fake context's token is the same in all workers,
    and whatever carries a session's token ends with it."""

    async def open(self, request: OpenRequest) -> Session:
        token = f"{request.token}-{secrets.token_hex(4)}"
        return await super().open(replace(request, token=token))
