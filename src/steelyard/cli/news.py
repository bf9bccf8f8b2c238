"""What a launch says in the terminal while it runs: each piece of news once, a cause on one line.

Stands between the engine and the renderer: it sees what observers are told and what is logged.
Tracebacks are in `run.log`.
"""

from __future__ import annotations

import logging
import os
import re
import sysconfig
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final

from steelyard.cli.progress import Renderer
from steelyard.config.redaction import RedactingFormatter, Redactor
from steelyard.engine.events import Progress, RequestResult, RunOutcome
from steelyard.engine.run_log import current_run

SAID_EACH: Final = 3
"""How often one cause is said before it is only counted."""
MAX_CAUSES: Final = 500
"""Of a request; further ones are counted together."""
MAX_CAUSE_CHARS: Final = 400
_ENDING_CHARS: Final = 160
_REMEMBERED: Final = 200

_NUMBERS: Final = re.compile(r"\d+|\b[0-9a-f]{8,}\b")

_SEVERITY: Final = re.compile(r": (FATAL|ERROR|WARNING) [a-z_]+: ")


class News:
    """An observer that passes on to a renderer, and the handler of the terminal's log."""

    def __init__(self, renderer: Renderer, redactor: Redactor, level: str) -> None:
        self._renderer = renderer
        self._redact = redactor.text
        self._said: deque[str] = deque(maxlen=_REMEMBERED)
        self._causes: dict[str | None, Counter[str]] = {}
        self._crashes: dict[str | None, set[str]] = {}
        self._first: dict[tuple[str | None, str], str] = {}
        self.handler = _Handler(self._log)
        self.handler.setLevel(level)
        self.handler.setFormatter(RedactingFormatter(_OneLine(), redactor))

    # -- what observers are told ---------------------------------------------------------------

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """Pass a snapshot on."""
        self._renderer.tick(progress)

    def notice(self, request: str | None, message: str) -> None:
        """Pass on what a person should read."""
        self._said.append(_plain(f"{request}: {message}" if request else message))
        self._renderer.notice(request, message)

    def request_ended(self, result: RequestResult) -> None:
        """Say how many causes were left out, and how the request ended."""
        self._say_left_out(result.name)
        unsaid = self._unsaid(result.reason)
        if result.reason and not unsaid:
            self._renderer.notice(None, f"{result.name}: {result.outcome}")
            return
        # A log line holds the first line of a reason; the rest, mostly the remedy, is news.
        if unsaid:
            result = replace(result, reason="\n".join(unsaid).strip())
        self._renderer.request_ended(result)
        if result.outcome is not RunOutcome.COMPLETED:
            self._said.append(_plain(result.reason or ""))

    def close(self) -> None:
        """Say what is left to be said, and leave the terminal as it was found."""
        for run in list(self._causes):
            self._say_left_out(run)
        self._renderer.close()

    def has_said(self, reason: str | None) -> bool:
        """True where lines that were shown hold this reason."""
        return bool(reason) and self._renderer.shows_notices and not self._unsaid(reason)

    def _unsaid(self, reason: str | None) -> list[str]:
        """Give the lines of a reason that no line which was shown holds."""
        lines = (reason or "").split("\n")
        if not self._renderer.shows_notices:
            return lines if reason else []
        plain = ((line, _plain(self._redact(line))) for line in lines)
        return [
            line for line, text in plain if text and not any(text in said for said in self._said)
        ]

    # -- what is logged ------------------------------------------------------------------------

    def _log(self, record: logging.LogRecord, formatted: Callable[[], str]) -> None:
        run = current_run.get()
        cause = self._cause(record)
        if cause is None:
            text = formatted()
            said = _plain(text.partition(" ")[2])  # without the level
            if said not in self._said:
                self._said.append(said)
                self._renderer.notice(None, text)
            return
        crashes = self._crashes.setdefault(run, set())
        if record.exc_info and len(crashes) < MAX_CAUSES:
            crashes.add(cause)
        elif not record.exc_info and cause in crashes:
            return  # the issue that a crash became: its line stands already
        causes = self._causes.setdefault(run, Counter())
        if cause not in causes and len(causes) >= MAX_CAUSES:
            cause = "other causes"
        causes[cause] += 1
        if causes[cause] > SAID_EACH or cause == "other causes":
            return
        text = formatted()
        self._first.setdefault((run, cause), text)
        self._renderer.notice(None, text)

    def _cause(self, record: logging.LogRecord) -> str | None:
        """What went wrong, the same for all to whom it happened; None for other news."""
        if record.exc_info and record.exc_info[1] is not None:
            text = exception_text(record.exc_info[1])
        else:
            found = getattr(record, "cause", None)
            if found is None:
                return None
            text = str(found)
        return _NUMBERS.sub("#", _plain(self._redact(text))[:MAX_CAUSE_CHARS])

    def _say_left_out(self, run: str | None) -> None:
        self._crashes.pop(run, None)
        for cause, count in self._causes.pop(run, Counter()).items():
            first = self._first.pop((run, cause), None)
            name = f"{run}: " if run else ""
            if first is None:
                self._renderer.notice(None, f"{name}… and {count} of other causes: see run.log")
            elif count > SAID_EACH:
                more = f"{name}… and {count - SAID_EACH} more like it: {first}"
                self._renderer.notice(None, more)


class _Handler(logging.Handler):
    def __init__(self, take: Callable[[logging.LogRecord, Callable[[], str]], None]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._take(record, lambda: self.format(record))
        except Exception:  # noqa: BLE001 — logging must never end a run
            self.handleError(record)


class _OneLine(logging.Formatter):
    """The level, the message, and of an exception what and where: no traceback."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        # An issue names its own severity, which is not that of the news.
        has_severity = hasattr(record, "cause") and _SEVERITY.search(message)
        text = message if has_severity else f"{record.levelname} {message}"
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text += f": {exception_text(error)}"
            place = plug_in_frame(error)
            if place is not None:
                return f"{_short(text)} ({place})"
        return _short(text) if hasattr(record, "cause") or record.exc_info else text


def exception_text(error: BaseException) -> str:
    """Write the type and the message of an exception, as issues have it."""
    return f"{type(error).__name__}: {error}"


def plug_in_frame(error: BaseException) -> str | None:
    """Say where in a user's own file an exception arose: `scorer.py:12, in evaluate`.

    None where it passed through no file but ours, Python's and installed packages'.
    """
    seen: BaseException | None = error
    while seen is not None:
        found = _last_own_frame(seen.__traceback__)
        if found is not None:
            return found
        seen = seen.__cause__
    return None


def _last_own_frame(trace: TracebackType | None) -> str | None:
    found = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if _is_users(code.co_filename):
            found = code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next
    if found is None:
        return None
    path, line, name = found
    near = os.path.relpath(path)
    return f"{path if near.startswith('..') else near}:{line}, in {name}"


@cache
def _is_users(file: str) -> bool:
    if file.startswith("<"):
        return False
    path = Path(file).resolve()
    if {"site-packages", "dist-packages"} & set(path.parts):
        return False
    homes = (Path(__file__).resolve().parents[1], Path(sysconfig.get_path("stdlib")).resolve())
    return not any(path.is_relative_to(home) for home in homes)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    one_line = _plain(text.replace("\n  ", "; "))  # a remedy stands on a line of its own
    if len(one_line) <= MAX_CAUSE_CHARS:
        return one_line
    # What is to be done, and a build's last words, stand at the end.
    begins = one_line[: MAX_CAUSE_CHARS - _ENDING_CHARS]
    return f"{begins} … {one_line[-_ENDING_CHARS:]} (whole in run.log)"
