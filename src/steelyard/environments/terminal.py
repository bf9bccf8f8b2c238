"""Run one program with this process's own terminal, for a person who looks into a session.

Where both ends are a terminal, the program gets another one, made for it: what it does to that
cannot reach the person's (no input pushed into it, no settings left behind). Else it gets the
descriptors as they are.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import sys
import termios
import tty
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from steelyard.environments.processes import Command, spawned

_CHUNK_BYTES: Final = 4096
_KILL_WAIT_S: Final = 10.0

SHELL: Final = ("/bin/sh", "-c", "command -v bash >/dev/null && exec bash --norc; exec sh")
"""What starts where no program is named. `--norc`: what an agent left in its home starts nothing
by itself."""


def in_own_terminal(argv: Sequence[str], *, has_terminal: bool) -> list[str]:
    """Give the words that make the program's terminal its controlling one: for Ctrl-C, for jobs.

    `setsid` belongs to util-linux; where it is missing, jobs cannot be controlled.
    """
    if not has_terminal:
        return list(argv)
    return ["/bin/sh", "-c", _WITH_JOBS, "sh", *argv]


_WITH_JOBS: Final = (
    'if command -v setsid >/dev/null; then exec setsid --ctty --wait "$@"; fi; exec "$@"'
)


def is_terminal() -> bool:
    """True where a person sits at both ends."""
    return os.isatty(0) and os.isatty(1)


async def run_attached(
    command: Command,
    *,
    on_start: Callable[[], Awaitable[None]] | None = None,
    watch: Callable[[], Awaitable[str | None]] | None = None,
    watch_every_s: float = 0.5,
    end_tree: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Run a program to its end with this process's input, output and error output.

    Args:
        command: what to start.
        on_start: completes the start.
        watch: what it returns, if anything, is the reason for which the program is ended.
        watch_every_s: seconds between two calls of `watch`.
        end_tree: ends what is left of the program; called on cancellation too.

    Returns:
        Its exit code; negative: the signal that ended it.

    Raises:
        ProgramNotStarted: there is no such program, or it cannot be run.
        OSError: this machine can start no process.
    """
    with _streams() as streams:
        pid = await spawned(command, (*streams.theirs, *command.pass_fds))
        pidfd = os.pidfd_open(pid)
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        loop.add_reader(pidfd, _set, ended)
        try:
            if on_start is not None:
                await on_start()
            while not (await asyncio.wait({ended}, timeout=watch_every_s))[0]:
                if watch is not None and (why := await watch()) is not None:
                    sys.stderr.write(f"\r\nended: the session's limit of {why}\r\n")
                    break
        finally:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            if not ended.done():
                await asyncio.wait({ended}, timeout=_KILL_WAIT_S)
            loop.remove_reader(pidfd)
            os.close(pidfd)
            if end_tree is not None:
                await end_tree()
            streams.drain()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])  # noqa: ASYNC222 — has ended


@dataclass(eq=False)
class _Streams:
    """What the program reads and writes; here, this process's own."""

    theirs: tuple[int, ...] = (0, 1, 2)

    def drain(self) -> None:
        """Pass on what it had still written."""


class _Relay(_Streams):
    """A terminal of the program's own, relayed to this process's."""

    def __init__(self, master: int, slave: int) -> None:
        super().__init__((slave, slave, slave))
        self._master = master
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        os.set_blocking(master, False)
        self._loop.add_reader(0, self._take_input)
        self._loop.add_reader(master, self._take_output)
        self._loop.add_signal_handler(signal.SIGWINCH, self.resize)
        self.resize()

    def resize(self) -> None:
        """Give the program's terminal the size of ours."""
        with suppress(OSError):
            size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def _take_input(self) -> None:
        try:
            data = os.read(0, _CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(0)
            return
        self._unsent += data
        self._loop.add_writer(self._master, self._send)

    def _send(self) -> None:
        try:
            del self._unsent[: os.write(self._master, self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._master)

    def _take_output(self) -> bool:
        """Pass on one piece; False where there is none."""
        try:
            data = os.read(self._master, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # EIO: nobody holds the other end any more
            data = b""
        if not data:
            self._loop.remove_reader(self._master)
            return False
        while data:
            data = data[os.write(1, data) :]
        return True

    def drain(self) -> None:
        """Pass on what the terminal still holds."""
        while self._take_output():
            pass

    def close(self) -> None:
        """Let go of everything."""
        self._loop.remove_signal_handler(signal.SIGWINCH)
        self._loop.remove_reader(0)
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)


@contextmanager
def _streams() -> Iterator[_Streams]:
    """Give the program's streams; this process's terminal is afterwards as it was."""
    if not is_terminal():
        yield _Streams()
        return
    before = termios.tcgetattr(0)
    master, slave = pty.openpty()
    try:
        relay = _Relay(master, slave)
        try:
            tty.setraw(0, termios.TCSADRAIN)  # what was typed ahead stays
            yield relay
        finally:
            relay.close()
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        os.close(slave)
        os.close(master)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
