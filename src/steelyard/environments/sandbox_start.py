"""The start of one bubblewrap: its descriptors, the limits set before its program runs, its end.

bubblewrap says the id of the sandbox's first process and waits. We put that process into its
cgroups, set its rlimits, and only then let it start the program, which inherits both. So no
launcher stands in front, and nothing runs unlimited, not even for a moment.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from steelyard.components.environment import TOKEN_VARIABLE, EnvironmentFault
from steelyard.components.gateway import ModelGate
from steelyard.environments import bubblewrap, cgroups, seccomp
from steelyard.environments.local_session import in_thread
from steelyard.environments.namespaces import listen_inside
from steelyard.environments.processes import Command
from steelyard.environments.sandbox_limits import apply_rlimits

_EMPTY_WAIT_S: Final = 10.0
GATE_PORT: Final = 8377
"""Where programs inside reach the model gateway, on a loopback that is theirs alone."""


@dataclass(eq=False)
class Start:
    """One bubblewrap's descriptors on our side."""

    command: Command
    status_fd: int
    block_fd: int
    theirs: list[int]
    """Passed on; ours to close once it has started."""
    first_fd: int = -1
    """A pidfd of the sandbox's first process: readable when nothing is left inside."""
    said: bytearray = field(default_factory=bytearray)
    end_serving: Callable[[], None] | None = None
    """Closes the gateway's way in, where one was made."""

    @classmethod
    def prepare(
        cls,
        prefix: Sequence[str],
        layout: bubblewrap.Layout,
        argv: Sequence[str],
        variables: Mapping[str, str],
        *,
        chdir: str,
        token: str,
    ) -> Start:
        """Open what bubblewrap is told and tells by.

        Raises:
            OSError: there are no more descriptors.
        """

        def words(status_fd: int, block_fd: int, seccomp_fd: int) -> bytes:
            return bubblewrap.options(
                layout,
                variables,
                chdir=chdir,
                status_fd=status_fd,
                block_fd=block_fd,
                seccomp_fd=seccomp_fd,
            )

        return cls.with_options(prefix, words, argv, token=token)

    @classmethod
    def with_options(
        cls,
        prefix: Sequence[str],
        words: Callable[[int, int, int], bytes],
        argv: Sequence[str],
        *,
        token: str,
        more_fds: Sequence[int] = (),
    ) -> Start:
        """Open what bubblewrap is told and tells by, for options of any making.

        Args:
            prefix: the words before bubblewrap's options.
            words: given three descriptors, bubblewrap's options: status, block, filter.
            argv: the program.
            token: marks the processes.
            more_fds: the program gets copies of these as 7, 8, …

        Raises:
            OSError: there are no more descriptors.
        """
        ours: list[int] = []
        theirs: list[int] = []
        try:
            status_read, status_write = os.pipe2(os.O_CLOEXEC)
            ours.append(status_read)
            theirs.append(status_write)
            block_read, block_write = os.pipe2(os.O_CLOEXEC)
            ours.append(block_write)
            theirs.append(block_read)
            theirs.append(_filled("seccomp", seccomp.program()))
            theirs.append(_filled("options", words(3, 4, 5)))
            theirs += [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in more_fds]
        except BaseException:
            for fd in ours + theirs:
                os.close(fd)
            raise
        os.set_blocking(status_read, False)
        command = Command(
            [*prefix, "--args", "6", "--", *argv],
            {TOKEN_VARIABLE: token},
            "/",
            pass_fds=tuple(theirs),
            only_launches=True,
        )
        return cls(command, status_read, block_write, theirs)

    async def complete(
        self,
        rlimits: Mapping[int, int],
        group: cgroups.Group | None,
        gate: ModelGate | None = None,
    ) -> None:
        """Limit the sandbox's first process, then let it start the program.

        Given a gate, it is served inside before the program starts.

        Raises:
            OSError: a limit could not be set.
            EnvironmentFault: the gate could not be brought in.
        """
        self._close_theirs()
        line = await self._first_line()
        if not line:  # bubblewrap failed; its stderr says why
            return
        pid = int(json.loads(line)["child-pid"])
        try:
            self.first_fd = os.pidfd_open(pid)
            if group is not None and group.folders:
                await in_thread(group.add, pid)
            apply_rlimits(pid, rlimits)
        except ProcessLookupError:  # it ended meanwhile: killed, or failed
            return
        if gate is not None:
            await self._bring_in(gate, pid)
        with suppress(BrokenPipeError):
            os.write(self.block_fd, b"1")

    async def _bring_in(self, gate: ModelGate, pid: int) -> None:
        try:
            listener = await listen_inside(pid, GATE_PORT)
            try:
                self.end_serving = await gate.serve(listener)
            except BaseException:
                listener.close()
                raise
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile; its stderr says why
            return
        except Exception as error:  # a gate is somebody else's code
            raise EnvironmentFault(
                f"the model gateway cannot be brought into the sandbox: {error}"
            ) from error

    async def _first_line(self) -> bytes:
        loop = asyncio.get_running_loop()
        while b"\n" not in self.said:
            ready = loop.create_future()
            loop.add_reader(self.status_fd, _set, ready)
            try:
                await ready
            finally:
                loop.remove_reader(self.status_fd)
            if not self._read_status():
                return b""
        return bytes(self.said).partition(b"\n")[0]

    def _read_status(self) -> bool:
        """Take what was said; False at the end."""
        try:
            chunk = os.read(self.status_fd, 4096)
        except BlockingIOError:
            return True
        self.said += chunk
        return bool(chunk)

    def exit_code(self) -> int | None:
        """Read, after the end, the program's exit code; None where it never started."""
        before = -1
        while before != len(self.said):
            before = len(self.said)
            self._read_status()
        code = None
        for line in self.said.splitlines():
            with suppress(ValueError):
                code = json.loads(line).get("exit-code", code)
        return code

    async def end_tree(self) -> None:
        """Wait until the last process inside is gone.

        Raises:
            OSError: some does not go.
        """
        if self.first_fd < 0:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.first_fd, signal.SIGKILL)
        loop = asyncio.get_running_loop()
        gone = loop.create_future()
        loop.add_reader(self.first_fd, _set, gone)
        try:
            done, _ = await asyncio.wait({gone}, timeout=_EMPTY_WAIT_S)
        finally:
            loop.remove_reader(self.first_fd)
        if not done:
            raise OSError("processes in the sandbox do not end")

    def _close_theirs(self) -> None:
        while self.theirs:
            os.close(self.theirs.pop())

    def close(self) -> None:
        """Close every descriptor, and the gateway's way in."""
        self._close_theirs()
        for fd in (self.status_fd, self.block_fd, self.first_fd):
            if fd >= 0:
                os.close(fd)
        self.status_fd = self.block_fd = self.first_fd = -1
        end_serving, self.end_serving = self.end_serving, None
        if end_serving is not None:
            end_serving()


def _filled(name: str, data: bytes) -> int:
    """Make a descriptor from which `data` can be read once; not a pipe, which holds 64 KiB."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
