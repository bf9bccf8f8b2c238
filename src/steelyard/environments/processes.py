"""Start programs from an event loop, read what they say within bounds, end them whole.

One way for every local environment: at most `MAX_STARTS` starts at once, no thread per process
(the kernel's pidfd tells the end), streams read apart, and a pipe that some grandchild still
holds never blocks the result. What belongs to a tree beyond the process group is the caller's
knowledge: `end_tree` is asked to end it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from steelyard.components.environment import ExecResult
from steelyard.environments.spawn import STARTERS, find_program, spawn

MAX_STARTS: Final = 8
"""Starts at once on one loop; a burst of 64 stalls it for half a second."""
MAX_DRAIN_BYTES: Final = 2 * 1024 * 1024
"""Read at most after the end; a pipe holds less, and an escaped writer could go on for ever."""

_AT_EASE: Final = 2
"""Launchers at once that may compete with the event loop on even terms."""
_CHUNK_BYTES: Final = 128 * 1024
_KILL_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Command:
    """What to start; nothing is inherited but what stands here."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdin: bytes = b""
    pass_fds: tuple[int, ...] = ()
    """The program gets these as 3, 4, 5, …"""
    only_launches: bool = False
    """True where it starts another in a scheduling group of that one's own, as bubblewrap does."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    returncode: int
    """Negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    duration_s: float
    stopped_by: str | None = None
    """What the watch said when it ended the program."""
    on_request: bool = False
    """True where somebody asked for the end of all programs."""

    def as_result(self, exit_code: int | None = None) -> ExecResult:
        """Give the contract's form; `exit_code` where it differs from the return code."""
        return ExecResult(
            self.returncode if exit_code is None else exit_code,
            self.stdout,
            self.stderr,
            self.timed_out,
            self.truncated,
            self.duration_s,
            self.stopped_by,
        )


class ProgramNotStarted(Exception):
    """The program cannot be run: absent (`exit_code` 127) or not runnable (126)."""

    def __init__(self, exit_code: int, message: str, *, blames_words: bool = False) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.blames_words = blames_words
        """True where its arguments or variables cannot be passed, whatever the program."""


class _Pump:
    """Reads one stream as it comes: keeps the first `cap_bytes`, drops the rest."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, cap_bytes: int) -> None:
        self._loop = loop
        self._fd = fd
        self._cap_bytes = cap_bytes
        self.kept = bytearray()
        self.is_truncated = False
        os.set_blocking(fd, False)
        loop.add_reader(fd, self._read_some)

    def _read_some(self) -> int:
        """Read once; the count, 0 when there is nothing (now or any more)."""
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return 0
        room = self._cap_bytes - len(self.kept)
        if room > 0:
            self.kept += chunk[:room]
        if len(chunk) > room:
            self.is_truncated = True
        return len(chunk)

    def drain(self) -> None:
        """Take what the pipe still holds, without waiting."""
        drained = 0
        while self._fd >= 0 and drained < MAX_DRAIN_BYTES:
            count = self._read_some()
            if not count:
                return
            drained += count

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


class _TailPump(_Pump):
    """Keeps the last `cap_bytes` of a stream in place of the first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, cap_bytes: int) -> None:
        self._last_bytes = cap_bytes
        super().__init__(loop, fd, 2 * cap_bytes + _CHUNK_BYTES)

    def _read_some(self) -> int:
        count = super()._read_some()
        if len(self.kept) > 2 * self._last_bytes:
            self._cut()
        return count

    def _cut(self) -> None:
        if len(self.kept) > self._last_bytes:
            del self.kept[: -self._last_bytes or None]
            self.is_truncated = True

    def close(self) -> None:
        super().close()
        self._cut()


class _Feeder:
    """Writes standard input as fast as the program takes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, data: bytes) -> None:
        self._loop = loop
        self._fd = fd
        self._rest = memoryview(data)
        os.set_blocking(fd, False)
        loop.add_writer(fd, self._write_some)

    def _write_some(self) -> None:
        try:
            self._rest = self._rest[os.write(self._fd, self._rest[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # the program closed its input: its right
            self._rest = self._rest[:0]
        if not self._rest:
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1


@dataclass(eq=False)
class Process:
    """A started program. Its process group is ended, then it is reaped, as soon as it ends."""

    pid: int
    """Valid until `exited` is done."""
    exited: asyncio.Future[int]
    pumps: tuple[_Pump, _Pump]
    feeder: _Feeder | None
    pidfd: int
    started_s: float = 0.0
    on_request: bool = False
    """Set by whoever ends it by intent, so that its end is nobody's fault."""

    def kill(self) -> None:
        """Send SIGKILL to the process and its group; nothing where it has been reaped."""
        if not self.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait for the end; False where the time ran out first."""
        done, _ = await asyncio.wait({self.exited}, timeout=timeout_s)
        return bool(done)

    def _on_exit(self) -> None:
        loop = self.exited.get_loop()
        loop.remove_reader(self.pidfd)
        # Not reaped yet, so the group's number cannot have been given to anyone else.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        try:
            returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # whoever started us ignores SIGCHLD: nobody can know
            returncode = 255
        os.close(self.pidfd)
        if not self.exited.done():
            self.exited.set_result(returncode)

    def release(self) -> None:
        """Close every pipe."""
        for part in (*self.pumps, self.feeder):
            if part is not None:
                part.close()


class _Gate:
    """Holds the starts of one loop to `MAX_STARTS`, and counts them."""

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(MAX_STARTS)
        self.under_way = 0


_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, _Gate] = WeakKeyDictionary()


def _gate() -> _Gate:
    loop = asyncio.get_running_loop()
    gate = _gates.get(loop)
    if gate is None:
        gate = _gates[loop] = _Gate()
    return gate


async def spawned(
    command: Command, descriptors: Sequence[int], *, is_behind_us: bool = True
) -> int:
    """Start a program in a thread; the process id. Cancelled, it leaves no process.

    Args:
        command: what to start; its `pass_fds` are the caller's to add.
        descriptors: what it gets as 0, 1, 2, …
        is_behind_us: as `spawn` has it.

    Raises:
        ProgramNotStarted: there is no such program, or it cannot be run.
        OSError: this machine can start no process.
    """
    try:
        path = command.env.get("PATH", os.defpath)
        program = find_program(command.argv[0], path, command.cwd)
        start = partial(spawn, is_behind_us=is_behind_us)
        starting = asyncio.get_running_loop().run_in_executor(
            STARTERS, start, program, command.argv, command.env, command.cwd, descriptors
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # However often it is cancelled: the thread uses descriptors that the caller closes.
            while not starting.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({starting})
            if not starting.cancelled() and starting.exception() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(starting.result(), signal.SIGKILL)
                os.waitpid(starting.result(), 0)  # noqa: ASYNC222 — just killed
            raise
    except ValueError as error:  # NUL bytes, text that has no bytes
        raise ProgramNotStarted(126, f"cannot be run: {error}", blames_words=True) from error
    except FileNotFoundError as error:
        raise ProgramNotStarted(127, f"{command.argv[0]}: not found") from error
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
            raise  # this machine is full: not the program's fault
        raise ProgramNotStarted(
            126,
            f"{command.argv[0][:200]}: {error.strerror}",
            blames_words=error.errno in (errno.E2BIG, errno.ENAMETOOLONG),
        ) from error


async def _start(
    command: Command, max_output_bytes: int, *, is_behind_us: bool, pump: type[_Pump]
) -> Process:
    loop = asyncio.get_running_loop()
    ours: list[int] = []
    theirs: list[int] = []
    try:
        if command.stdin:
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            theirs.append(read_end)
            ours.append(write_end)
        else:
            theirs.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        for _ in ("stdout", "stderr"):
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            theirs.append(write_end)
            ours.append(read_end)
        pid = await spawned(command, (*theirs, *command.pass_fds), is_behind_us=is_behind_us)
    except BaseException:
        for fd in ours:
            os.close(fd)
        raise
    finally:
        for fd in theirs:
            os.close(fd)
    err, out = ours.pop(), ours.pop()
    process = Process(
        pid,
        loop.create_future(),
        (pump(loop, out, max_output_bytes), pump(loop, err, max_output_bytes)),
        _Feeder(loop, ours.pop(), command.stdin) if ours else None,
        os.pidfd_open(pid),
    )
    loop.add_reader(process.pidfd, process._on_exit)
    process.started_s = loop.time()
    return process


async def run(
    command: Command,
    *,
    timeout_s: float | None = None,
    max_output_bytes: int,
    keeps_last: bool = False,
    on_start: Callable[[Process], Awaitable[None]] | None = None,
    watch: Callable[[], Awaitable[str | None]] | None = None,
    watch_every_s: float = 0.25,
    end_tree: Callable[[], Awaitable[None]] | None = None,
    find_more: Callable[[int], Sequence[int]] | None = None,
    running: set[Process] | None = None,
) -> Ended:
    """Run a program to its end and its tree's end.

    Args:
        command: what to start.
        timeout_s: seconds from the moment `on_start` returned; None for no deadline.
        max_output_bytes: kept of each stream; the rest is read and dropped.
        keeps_last: what is kept is the end of each stream, not its beginning.
        on_start: completes the start (limits, hand-shakes) within the gate of starts.
        watch: called every `watch_every_s` seconds; what it returns, if anything, is the
            reason for which the program is ended.
        watch_every_s: see `watch`.
        end_tree: ends what is not in the program's process group; called after the program
            ended or was killed, on cancellation too.
        find_more: names processes to kill before a program that has not ended by itself.
        running: where the process stands while it runs.

    Raises:
        ProgramNotStarted: there is no such program, or it cannot be run.
        OSError: this machine can start no process.
    """
    loop = asyncio.get_running_loop()
    process: Process | None = None
    stopped_by: str | None = None
    timed_out = False
    try:
        gate = _gate()
        async with gate.slots:
            gate.under_way += 1
            try:
                # A launcher that the loop waits for is only slowed by stepping behind it; many
                # at once would keep the loop from its other work.
                is_behind_us = not command.only_launches or gate.under_way > _AT_EASE
                pump = _TailPump if keeps_last else _Pump
                process = await _start(
                    command, max_output_bytes, is_behind_us=is_behind_us, pump=pump
                )
                if running is not None:
                    running.add(process)
                if on_start is not None:
                    await on_start(process)
                process.started_s = loop.time()
            finally:
                gate.under_way -= 1
        deadline = None if timeout_s is None else process.started_s + timeout_s
        while True:
            left_s = None if deadline is None else max(0.0, deadline - loop.time())
            pause_s = left_s
            if watch is not None:
                pause_s = watch_every_s if left_s is None else min(watch_every_s, left_s)
            if await process.wait(pause_s):
                break
            if deadline is not None and loop.time() >= deadline:
                timed_out = True
                break
            stopped_by = await watch() if watch is not None else None
            if stopped_by is not None:
                break
    finally:
        if process is not None:
            await _end(process, end_tree, find_more)
            if running is not None:
                running.discard(process)
    duration_s = loop.time() - process.started_s
    out, err = process.pumps
    return Ended(
        process.exited.result(),
        bytes(out.kept),
        bytes(err.kept),
        timed_out,
        out.is_truncated or err.is_truncated,
        duration_s,
        stopped_by,
        process.on_request,
    )


async def _end(
    process: Process,
    end_tree: Callable[[], Awaitable[None]] | None,
    find_more: Callable[[int], Sequence[int]] | None,
) -> None:
    """Kill what is left, wait for it, take the last output, close the pipes."""
    more = find_more(process.pid) if find_more is not None and not process.exited.done() else ()
    process.kill()
    for pid in more:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    try:
        if not await process.wait(_KILL_WAIT_S):
            raise OSError(errno.EBUSY, f"process {process.pid} does not die")
        if end_tree is not None:
            await end_tree()
        for pump in process.pumps:
            pump.drain()
    finally:
        process.release()
