"""What a launch says on standard error as JSON lines, schema `log/1`: for programs that read it.

Takes the place of `News`: the log, the notices, now and then where each request stands.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TextIO, cast

from steelyard.cli.many_requests import Endings
from steelyard.cli.progress import Renderer, ended_line, make_renderer
from steelyard.config.redaction import Redactor
from steelyard.engine.events import Progress, RequestResult, RunOutcome
from steelyard.engine.log_context import LOG_SCHEMA, JsonFormatter, context_of, json_line, utc_at

_LOGGER: Final = "steelyard.progress"
_REMEMBERED: Final = 200


class JsonNews:
    """An observer and a handler of the log that write JSON lines."""

    def __init__(
        self, mode: str, redactor: Redactor, level: str, stream: TextIO | None = None
    ) -> None:
        """Write to `stream`, standard error by default; with mode `none` no progress is told."""
        self._stream: TextIO | None = stream or sys.stderr
        self._redact = redactor.text
        self._logged: deque[str] = deque(maxlen=_REMEMBERED)
        self._is_silent = mode == "none"
        self._endings = Endings()
        lines = cast(TextIO, _Lines(lambda line: self._say("INFO", line, None)))
        self._pace: Renderer = make_renderer("plain", lines)
        self.handler: logging.Handler = _Handler(self._write, self._logged)
        self.handler.setLevel(level)
        self.handler.setFormatter(JsonFormatter(redactor.text))

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """Say where requests stand, as seldom as `--progress plain` does."""
        self._endings.see(progress)
        if not self._is_silent:
            self._pace.tick(progress)

    def notice(self, request: str | None, message: str) -> None:
        """Say what a person should read, unless the log has said it."""
        if not self._is_silent and not any(message in logged for logged in self._logged):
            self._say("INFO", message, request)

    def request_ended(self, result: RequestResult) -> None:
        """Say how a request ended."""
        is_completed = result.outcome is RunOutcome.COMPLETED
        if not (self._is_silent and is_completed) and self._endings.takes(result):
            self._say("INFO" if is_completed else "ERROR", ended_line(result), result.name)

    def has_said(self, reason: str | None) -> bool:
        """Nothing that a person has read."""
        return False

    def close(self) -> None:
        """Write no more."""
        for line in self._endings.rest():
            self._say("ERROR", line, None)
        self._pace.close()
        self._stream = None

    def _say(self, level: str, message: str, request: str | None) -> None:
        entry: dict[str, Any] = {
            "schema": LOG_SCHEMA,
            "at": utc_at(time.time()),  # noqa: TID251 — a log's own time, as logging takes it
            "level": level,
            "logger": _LOGGER,
            **context_of(),
            "message": message,
        }
        if request is not None:
            entry["request"] = request
        self._write(json_line(entry, self._redact))

    def _write(self, line: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):  # its reader is gone
            self._stream = None


class _Handler(logging.Handler):
    def __init__(self, write: Callable[[str], None], logged: deque[str]) -> None:
        super().__init__()
        self._write_line = write
        self._logged = logged

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write_line(self.format(record))
            self._logged.append(record.getMessage())
        except Exception:  # noqa: BLE001 — logging must never end a run
            self.handleError(record)


class _Lines:
    """As much of a stream as the plain renderer writes to."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def write(self, text: str) -> int:
        if text.strip():
            self._say(text.rstrip("\n"))
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False
