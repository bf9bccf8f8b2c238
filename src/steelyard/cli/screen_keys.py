"""Read single keys from a terminal, on the event loop, only while this job is in the foreground."""

from __future__ import annotations

import atexit
import os
import re
import termios
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from steelyard.cli.screen_terminal import is_foreground, terminal_stops_ignored

_SEQUENCE: Final = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
"""What arrows, function keys and pastes send: no keys of ours."""
_MAX_BYTES: Final = 4096
_LFLAG: Final = 3
_CC: Final = 6


def keys_in(data: bytes) -> list[str]:
    """The printable keys in what a terminal sent."""
    return [
        char for char in _SEQUENCE.sub(b"", data).decode("utf-8", "ignore") if char.isprintable()
    ]


class Keyboard:
    """Hands keys on. The terminal neither echoes nor waits for a line meanwhile.

    ctrl-c, ctrl-z and ctrl-\\ stay signals.
    """

    def __init__(self, fd: int, on_key: Callable[[str], None]) -> None:
        self._fd = fd
        self._on_key = on_key
        self._loop: AbstractEventLoop | None = None
        self._before: list[Any] | None = None
        self._is_gone = False

    @property
    def is_reading(self) -> bool:
        """True while keys are handed on."""
        return self._loop is not None

    def look_after(self, loop: AbstractEventLoop) -> None:
        """Read while this job is in the foreground; to be called now and then.

        In the background reading would stop the process, and the modes are another job's.
        """
        if self._is_gone:
            return
        is_ours = is_foreground(self._fd)
        if is_ours and self._loop is None:
            self._start(loop)
        elif not is_ours and self._loop is not None:
            self._stop_reading()

    def start_anew(self) -> None:
        """Set the modes once more at the next look: a shell has put its own in place."""
        self._stop_reading()

    def stop(self) -> None:
        """Read no more and put the terminal's modes back. Safe to call twice."""
        self._stop_reading()
        before, self._before = self._before, None
        atexit.unregister(self.stop)
        if before is not None and is_foreground(self._fd):
            with suppress(termios.error, OSError), terminal_stops_ignored():
                termios.tcsetattr(self._fd, termios.TCSANOW, before)

    def _start(self, loop: AbstractEventLoop) -> None:
        try:
            modes = termios.tcgetattr(self._fd)
            if self._before is None:
                self._before = [*modes[:_CC], [*modes[_CC]]]
                atexit.register(self.stop)
            modes[_LFLAG] &= ~(termios.ICANON | termios.ECHO)
            modes[_CC][termios.VMIN], modes[_CC][termios.VTIME] = 1, 0
            with terminal_stops_ignored():
                termios.tcsetattr(self._fd, termios.TCSANOW, modes)
            loop.add_reader(self._fd, self._read)
        except (termios.error, OSError):
            self._is_gone = True
            return
        self._loop = loop

    def _stop_reading(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._fd)

    def _read(self) -> None:
        if not is_foreground(self._fd):
            self._stop_reading()
            return
        try:
            data = os.read(self._fd, _MAX_BYTES)
        except OSError:
            data = b""
        if not data:  # the terminal has gone
            self._is_gone = True
            self._stop_reading()
            return
        for key in keys_in(data):
            self._on_key(key)
