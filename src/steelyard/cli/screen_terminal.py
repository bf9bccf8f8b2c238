"""Draw on a terminal that may be slow, stopped, in another job's hands, or gone.

A thread of its own writes: ctrl-s, or a line that is cut, holds up the drawing and never the run.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO

from steelyard.cli.screen import Charset, Line, compose
from steelyard.cli.screen_paint import Painter

FRAME_S: Final = 0.25
"""The least time between two frames."""
_MAX_WAITING: Final = 2_000
"""Texts that wait for a terminal that takes none; older ones are dropped, the log has them."""
_LEAVE_WITHIN_S: Final = 1.0
_FALLBACK: Final = (80, 24)


class Drawer:
    """Shows the newest view, and prints texts above it, until closed."""

    def __init__(
        self,
        stream: TextIO,
        *,
        frame_s: float = FRAME_S,
        composer: Callable[[Any, int, int, Charset], list[Line]] = compose,
    ) -> None:
        """Draw on a terminal.

        Args:
            stream: of the terminal.
            frame_s: the least time between two frames.
            composer: lays out a view in (width, height): at most so many lines, so wide.
        """
        self._stream = stream
        self._compose = composer
        self._fd = descriptor(stream)
        self._frame_s = frame_s
        self._painter = self._new_painter()
        self._charset = charset_of(stream)
        self._change = threading.Condition()
        self._view: Any = None
        self._above: deque[str] = deque(maxlen=_MAX_WAITING)
        self._is_dirty = self._is_suspended = self._is_closing = self._is_gone = False
        self._is_lost = False
        self._is_off = threading.Event()
        """Nothing of ours stands on the terminal."""
        self._is_off.set()
        self._thread = threading.Thread(target=self._run, name="steelyard-screen", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def show(self, view: Any) -> None:
        """Show this from now on, as the composer lays it out; None shows nothing."""
        with self._change:
            self._view, self._is_dirty = view, True
            self._change.notify()

    def say(self, text: str) -> None:
        """Print a text above what is shown."""
        with self._change:
            self._above.append(text)
            self._is_dirty = True
            self._change.notify()

    def suspend(self) -> None:
        """Take away what is shown, until `resume`; returns when that is done, or soon."""
        with self._change:
            self._is_suspended = self._is_dirty = True
            self._change.notify()
        self._is_off.wait(_LEAVE_WITHIN_S)

    def resume(self) -> None:
        """Draw again."""
        with self._change:
            self._is_suspended, self._is_dirty = False, True
            self._change.notify()

    def start_anew(self) -> None:
        """Draw everything where the cursor is now: others have written meanwhile."""
        with self._change:
            self._is_lost = self._is_dirty = True
            self._change.notify()

    def close(self) -> None:
        """Print what still waits and leave the terminal as it was found. Safe to call twice."""
        with self._change:
            self._is_closing = True
            self._change.notify()
        self._thread.join(_LEAVE_WITHIN_S)
        atexit.unregister(self.close)

    def _run(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            # In a background job with `stty tostop`, a write would stop the whole process. And
            # signals are for the main thread.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            with self._change:
                self._change.wait_for(lambda: self._is_dirty or self._is_closing)
                closing, suspended = self._is_closing, self._is_suspended
                view, self._is_dirty = self._view, False
                if self._is_lost:
                    self._painter, self._is_lost = self._new_painter(), False
                is_ours = closing or (not suspended and is_foreground(self._fd))
                above = list(self._above) if is_ours else []
                if is_ours:
                    self._above.clear()
            if closing or not is_ours:
                self._leave(above, erases=suspended or is_foreground(self._fd))
            else:
                self._draw(view, above)
            if closing:
                return
            self._rest(suspended)

    def _rest(self, suspended: bool) -> None:
        """Let a frame stand, unless it must go."""
        with self._change:
            self._change.wait_for(
                lambda: self._is_closing or self._is_suspended is not suspended, self._frame_s
            )

    @staticmethod
    def _new_painter() -> Painter:
        return Painter(colours=not os.environ.get("NO_COLOR"))

    def _draw(self, view: Any, above: list[str]) -> None:
        width, height = self._size()
        room = max(1, width - 1)  # the last cell: some terminals wrap as soon as it is filled
        lines = [] if view is None else self._compose(view, room, max(1, height - 1), self._charset)
        self._is_off.clear()
        self._write(self._painter.frame(lines, width, above))

    def _leave(self, above: list[str], *, erases: bool) -> None:
        left = self._painter.leave()
        texts = "".join(f"{text}\r\n" for text in (text.replace("\n", "\r\n") for text in above))
        self._write((left if erases else "") + texts)
        self._is_off.set()

    def _size(self) -> tuple[int, int]:
        if self._fd is not None:
            with suppress(OSError):
                width, height = os.get_terminal_size(self._fd)
                if width > 0 and height > 0:
                    return width, height
        return shutil.get_terminal_size(_FALLBACK)

    def _write(self, text: str) -> None:
        if self._is_gone or not text:
            return
        try:
            self._stream.write(_encodable(text, self._stream))
            self._stream.flush()
        except (OSError, ValueError):
            self._is_gone = True


def charset_of(stream: TextIO) -> Charset:
    """Say what a terminal can show, by its stream's encoding and the user's locale."""
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
    locale = next(
        (os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), ""
    )
    # Python reads and writes UTF-8 in the C locale, whatever the terminal does.
    if encoding != "utf8" or locale in ("C", "POSIX"):
        return Charset.ASCII
    return Charset.UNICODE


def descriptor(stream: TextIO) -> int | None:
    """The stream's descriptor; None for one in memory."""
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def is_foreground(fd: int | None) -> bool:
    """False where the terminal is another job's at present."""
    if fd is None:
        return True
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # no terminal of this session: nobody else's job control either
        return True


@contextmanager
def terminal_stops_ignored() -> Iterator[None]:
    """Let terminal modes be changed without being stopped for it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
