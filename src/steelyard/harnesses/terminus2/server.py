"""The driver's side of `child/`: one process a run that has `harbor`, and one fork an attempt.

Importing the package takes seconds of CPU and 200 MB: it is done once, outside of our process, and
the forks share what was imported. They hold no key, no token and no variable of ours.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, Final

from steelyard.components.issues import AttemptFault, IssueCode

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""Of one message: a conversation is sent whole with each call."""
START_S: Final = 180.0
_END_S: Final = 10.0
_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); import child; del sys.path[0]; "
    "from child.serving import main; from pathlib import Path; "
    "main(int(sys.argv[2]), Path(sys.argv[3]))"
)
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TMPDIR", "TZ")


@dataclass(slots=True)
class Worker:
    """One attempt's process, as the driver speaks to it."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def receive(self) -> Mapping[str, Any]:
        """Wait for its next message.

        Raises:
            AttemptFault: its process has ended, or says what nobody understands.
        """
        try:
            line = await self.reader.readline()
            message = json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, OSError):
            message = None
        if not isinstance(message, dict):
            raise AttemptFault(
                IssueCode.HARNESS_CRASHED, "terminus2: the attempt's process ended before its work"
            )
        return message

    async def send(self, message: Mapping[str, Any]) -> None:
        """Answer it."""
        self.writer.write(json.dumps(message).encode() + b"\n")
        try:
            await self.writer.drain()
        except OSError as error:
            raise AttemptFault(
                IssueCode.HARNESS_CRASHED, "terminus2: the attempt's process ended before its work"
            ) from error


class Server:
    """A process that has the package; it ends with us, however we end."""

    def __init__(
        self, process: subprocess.Popen[bytes], control: socket.socket, folder: Path
    ) -> None:
        self._process = process
        self._folder = folder
        self.control = control
        self._numbers = count(1)
        self.is_ready = False
        """It has imported the package; before, it does not listen."""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """False once its process has ended."""
        return self._process.poll() is None

    async def begin(self) -> Worker:
        """Start an attempt's process.

        Raises:
            OSError: the server has ended.
        """
        number = next(self._numbers)
        ours, theirs = socket.socketpair()
        with theirs:
            message = b"A" + number.to_bytes(8, "big")
            socket.send_fds(self.control, [message], [theirs.fileno()])
        ours.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_LINE_BYTES)
        return Worker(number, reader, writer)

    async def end(self, worker: Worker) -> None:
        """End an attempt's process, and wait until it is gone."""
        with suppress(OSError):  # where the server has ended, the attempt's end sees its own
            self.control.sendall(b"K" + worker.number.to_bytes(8, "big"))
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(_END_S):
                while await worker.reader.read(1 << 16):
                    pass
        worker.writer.close()

    def close(self) -> None:
        """End it, with all attempts. Blocking, a moment."""
        self.control.close()
        try:
            self._process.wait(_END_S if self.is_ready else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)  # it does so itself where it can


async def start(python: Path, version: str) -> Server:
    """Start a server, and wait until it has imported the package.

    Args:
        python: an interpreter that has it.
        version: of the package, that it must be.

    Raises:
        AttemptFault: it cannot be started, lacks the package or has another version of it.
    """
    with tempfile.TemporaryFile() as errors:
        server = await asyncio.to_thread(_started, python, errors.fileno())
        control = server.control
        try:
            async with asyncio.timeout(START_S):
                found = (await _line(control)).get("harbor")
                if found != version:
                    raise _unusable(f"{python} has harbor {found}, and {version} is asked for")
                await _line(control)
                server.is_ready = True
        except BaseException as error:
            await asyncio.to_thread(server.close)
            if isinstance(error, EOFError):
                why = _last_line(errors)
                raise _unusable(f"{python} cannot import the package harbor: {why}") from error
            if isinstance(error, TimeoutError):
                raise _unusable(f"{python} was not ready within {START_S:g} s") from error
            raise
    return server


async def _line(control: socket.socket) -> Mapping[str, Any]:
    """Read what the process says; `EOFError` where it has ended."""
    loop = asyncio.get_running_loop()
    line = b""
    while not line.endswith(b"\n"):
        try:
            byte = await loop.sock_recv(control, 1)
        except ConnectionError as error:
            raise EOFError from error
        if not byte:
            raise EOFError
        line += byte
    said: Mapping[str, Any] = json.loads(line)
    return said


def _unusable(why: str) -> AttemptFault:
    return AttemptFault(IssueCode.DEPENDENCY_MISSING, f"terminus2: {why}", request_fault=True)


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(max(0, os.fstat(errors.fileno()).st_size - 2000))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it ended without a word"


def _started(python: Path, errors: int) -> Server:
    ours, theirs = socket.socketpair()
    folder = Path(tempfile.mkdtemp(prefix="steelyard-terminus2-"))
    variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    words = [str(Path(__file__).parent), str(theirs.fileno()), str(folder)]
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 — an argument vector of our own words
                [str(python), "-I", "-c", _BOOT, *words],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                pass_fds=(theirs.fileno(),), start_new_session=True, cwd=folder,
                env={
                    **variables,
                    "HOME": str(folder),
                    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks the network at import
                },
            )  # fmt: skip
        except OSError as error:
            ours.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise _unusable(f"{python} cannot be started: {error}") from error
    ours.setblocking(False)
    return Server(process, ours, folder)
