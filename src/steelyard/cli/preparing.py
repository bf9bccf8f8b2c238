"""Say that a launch is being prepared, where that takes so long that somebody wonders."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

AFTER_S: Final = 1.0
_TEXT: Final = "preparing: settings, components and this machine are looked at"
_ERASE: Final = "\r\x1b[K"


@contextmanager
def said_when_slow(
    stream: TextIO, *, is_live: bool, is_silent: bool, after_s: float = AFTER_S
) -> Iterator[None]:
    """Write a line if the body takes longer than `after_s` seconds.

    Args:
        stream: where; one that has gone is no reason to fail.
        is_live: the line is taken away again at the end.
        is_silent: nothing is written at all.
        after_s: seconds until it is written.
    """
    if is_silent:
        yield
        return
    was_said = threading.Event()

    def say() -> None:
        was_said.set()
        with suppress(OSError, ValueError):
            stream.write(_TEXT if is_live else f"{_TEXT}\n")
            stream.flush()

    timer = threading.Timer(after_s, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if was_said.is_set() and is_live:
            with suppress(OSError, ValueError):
                stream.write(_ERASE)
                stream.flush()
