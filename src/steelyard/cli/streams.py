"""Standard output and error as the boundary they are: whatever is written to them is redacted.

Not only what commands print: warnings, tracebacks of threads, destructors' complaints and loggers
of others all end at `sys.stderr`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

_redact: Callable[[str], str] = str


def redact_with(redact: Callable[[str], str]) -> None:
    """Pass everything that is written from now on through `redact`."""
    global _redact
    _redact = redact


def redacted(text: str) -> str:
    """Copy a text as the streams would write it."""
    return _redact(text)


class RedactedStream:
    """A text stream that redacts each write; in all else the stream that it stands before."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, redacted.

        Raises:
            TypeError: it is no text; click tells text streams from others by that.
        """
        if not isinstance(text, str):
            raise TypeError(f"a text is written, not {type(text).__name__}")
        self._stream.write(_redact(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts, each redacted."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guard() -> None:
    """Put the boundary before both streams; they stay there until the process ends.

    Descriptors 0 to 2 are filled where they were closed: else the next file that is opened, a
    journal say, would get what programs and libraries print.
    """
    _fill_descriptors()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed before we began
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 — no path, stays
        if not isinstance(stream, RedactedStream):
            # Unencodable text is written as escapes: a table must not die of a terminal's locale.
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
            setattr(sys, name, RedactedStream(stream))


def settle() -> None:
    """Write out what both streams hold; one whose reader has gone is pointed nowhere.

    Else the interpreter tries again while it ends, fails, and makes the exit status 120.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            hush(number)


def hush(descriptor: int) -> None:
    """Point a standard stream nowhere: its reader is gone, and exiting must not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _fill_descriptors() -> None:
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
