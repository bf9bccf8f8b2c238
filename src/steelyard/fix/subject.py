"""The subject: candidate code apart from the benchmark, spoken to by a stream of bytes.

The benchmark connects to the socket named in `STEELYARD_SUBJECT`. Each connection is a new subject:
a process of its own, in namespaces of its own, on a tree of its own without the evaluation's files,
that speaks over its standard input and output. We carry the bytes between the two, so that nothing
else crosses: no object, no descriptor, no sight of the other's processes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from steelyard.config.errors import Fault
from steelyard.fix.local_runner import LocalRunner
from steelyard.fix.manifest import TreeManifest
from steelyard.fix.runner_values import Stage, StageEnd
from steelyard.fix.trial_plan import TrialPlan
from steelyard.fix.trial_tree import TreeMethod, TrialTree, make_tree

MAX_AT_ONCE: Final = 64
MAX_IN_ALL: Final = 10_000
SOCKET: Final = "socket"
_CHUNK_BYTES: Final = 64 * 1024
_JOIN: Final = 'i=$1 o=$2; shift 2; eval "exec \\"\\$@\\" <&$i >&$o $i<&- $o>&-"'
"""Lays two descriptors onto the standard streams; the numbers are ours, the words stay words."""


@dataclass
class Subjects:
    """Serves a benchmark's connections. Within `async with`, it listens."""

    plan: TrialPlan
    runner: LocalRunner
    stop: asyncio.Event
    variables: Mapping[str, str]
    ends: list[StageEnd] = field(default_factory=list)
    fault: Fault | None = None
    """Of ours or the runner's, while a subject was started or ended."""
    _folder: Path | None = None
    _server: asyncio.Server | None = None
    _group: asyncio.TaskGroup | None = None
    _serving: set[asyncio.Task[None]] = field(default_factory=set)
    _served: int = 0

    @property
    def folder(self) -> Path:
        """Where the socket is; shown to the benchmark alone."""
        if self._folder is None:
            raise RuntimeError("not listening")
        return self._folder

    async def __aenter__(self) -> Subjects:
        # Short, unlike the trial's own: a socket's path has at most 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="sy-", dir="/tmp"))
        socket = self._folder / SOCKET
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._server = await asyncio.start_unix_server(self._connected, path=socket)
        socket.chmod(0o600)
        if (owner := self.runner.owner) is not None:
            os.chown(socket, owner, owner)
            os.chown(self._folder, owner, owner)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        if self._group is not None:
            await self._group.__aexit__(None, None, None)
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._group is None or len(self._serving) >= MAX_AT_ONCE or self._served >= MAX_IN_ALL:
            writer.close()
            return
        self._served += 1
        task = self._group.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._run(reader, writer)
        except Fault as error:
            self.fault = self.fault or error
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        program = self.plan.subject
        if program is None:
            raise RuntimeError("a trial without a subject")
        tree = await asyncio.to_thread(self._make_tree)
        fds: list[int] = []
        try:
            to_read, to_write = os.pipe2(os.O_CLOEXEC)
            from_read, from_write = os.pipe2(os.O_CLOEXEC)
            fds += [to_read, from_write]
            first = self.runner.first_fd
            words = ("/bin/sh", "-c", _JOIN, "sh", str(first), str(first + 1))
            places = self.runner.places(tree)
            stage = Stage(
                (*words, *program.argv),
                program.cwd,
                {
                    **self.variables,
                    "HOME": str(places.home),
                    "TMPDIR": str(places.tmp),
                },
                self.plan.limits.timeout_s,
                self.plan.limits,
                sees_inputs=False,
                fds=(to_read, from_write),
                covered=tuple(evaluation_places(self.plan.sealed.manifest, self.plan)),
            )
            async with asyncio.TaskGroup() as group:
                carried = group.create_task(_carry(reader, to_write))
                answered = group.create_task(_answer(from_read, writer))
                try:
                    end = await self.runner.run(stage, tree, inputs=None, stop=self.stop)
                    self.ends.append(end)
                except Fault as error:
                    self.fault = self.fault or error
                finally:
                    while fds:
                        os.close(fds.pop())
                    carried.cancel()
                await answered
        finally:
            while fds:
                os.close(fds.pop())
            await asyncio.to_thread(tree.remove)

    def _make_tree(self) -> TrialTree:
        plan, runner = self.plan, self.runner
        tree = make_tree(runner.base, plan.trial, [plan.sealed], runner.method, owner=runner.owner)
        if tree.method is not TreeMethod.OVERLAY:
            for path, is_folder in evaluation_places(self.plan.sealed.manifest, self.plan):
                if is_folder:
                    shutil.rmtree(tree.top / path)
                    (tree.top / path).mkdir()
                else:
                    (tree.top / path).write_bytes(b"")
        return tree


def evaluation_places(manifest: TreeManifest, plan: TrialPlan) -> list[tuple[str, bool]]:
    """List the evaluation's paths that a tree has, and whether they are folders."""
    found = []
    for path in plan.rules.evaluation:
        if path in manifest.by_path:
            found.append((path, False))
        elif any(name.startswith(path + "/") for name in manifest.by_path):
            found.append((path, True))
    return found


async def _carry(reader: asyncio.StreamReader, fd: int) -> None:
    """Carry what the benchmark says to the subject."""
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(fd, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), pipe
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # the subject closed its input, or the benchmark is gone: their right
    finally:
        writer.close()


async def _answer(fd: int, writer: asyncio.StreamWriter) -> None:
    """Carry what the subject says to the benchmark, up to the subject's end."""
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(fd, "rb", buffering=0)
    reader = asyncio.StreamReader(_CHUNK_BYTES)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        pass  # the benchmark hung up
    finally:
        transport.close()
