"""A mock model endpoint for tests: in a process of its own, or on the running loop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import IO, Any, Self
from urllib.request import ProxyHandler, Request, build_opener

from steelyard.models.mock.server import Listening, MockSettings, listening

START_S = 30.0


class MockEndpoint:
    """`steelyard mock-model` as a context: started before the block, ended after it.

    Args:
        options: of the command, as `"--fault", "429:first=2"`.
    """

    def __init__(self, *options: str) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        """The base URL for all three protocols; ends in `/v1`."""

    @property
    def origin(self) -> str:
        """The URL without `/v1`, as the anthropic SDK wants it."""
        return self.url.removesuffix("/v1")

    @property
    def pid(self) -> int:
        """The process id of the server."""
        if self._process is None:
            raise RuntimeError("the mock endpoint has not been started")
        return self._process.pid

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "steelyard.cli.mock_model", "--json", *self._options]
        self._process = subprocess.Popen(  # noqa: S603 — our own module
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        line = _stream(self._process.stdout).readline()
        if not line:
            words = _stream(self._process.stderr).read().decode("utf-8", "replace")
            self._stop()
            raise RuntimeError(f"the mock endpoint did not start: {words}")
        self.url = json.loads(line)["url"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def stats(self) -> dict[str, Any]:
        """Give what the endpoint has seen so far."""
        return self._ask("GET", "/stats")

    def reset(self) -> None:
        """Make it forget what it has seen; draws and faults begin anew."""
        self._ask("POST", "/reset")

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        opener = build_opener(ProxyHandler({}))
        request = Request(self.origin + path, method=method)  # noqa: S310 — our own loopback URL
        with opener.open(request, timeout=START_S) as answer:
            data: dict[str, Any] = json.loads(answer.read())
        return data

    def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(START_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _stream(process.stdout).close()
        _stream(process.stderr).close()


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("the process was started without pipes")
    return stream


@asynccontextmanager
async def mock_endpoint(
    *, faults: Sequence[str] = (), latency: str = "0", **settings: Any
) -> AsyncIterator[Listening]:
    """Serve a mock endpoint on the running loop.

    Args:
        faults: as the command writes them, `429:first=2`.
        latency: as the command writes it.
        settings: the other fields of `MockSettings`.
    """
    from steelyard.models.mock.chance import parse_latency
    from steelyard.models.mock.faults import parse_fault

    made = MockSettings(
        faults=tuple(parse_fault(fault) for fault in faults),
        latency=parse_latency(latency),
        **settings,
    )
    async with listening(made) as found:
        yield found
