"""Whose work the running code is, and how a log entry says so: as text, or as a JSON line.

The context is set where a run or an execution begins and follows tasks and threads by itself.
An entry has the run's context, and within an execution its task, attempt and number.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from steelyard.config import printable

LOG_SCHEMA: Final = "log/1"
TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"
_MAX_TRACE_CHARS: Final = 200_000

current_run: ContextVar[str | None] = ContextVar("steelyard_run", default=None)
"""The request whose work the running code belongs to; None for what concerns all."""
current_run_id: ContextVar[str | None] = ContextVar("steelyard_run_id", default=None)


class _Task(Protocol):
    @property
    def id(self) -> str: ...


class Execution(Protocol):
    """What an entry says of an execution; an `ExecutionSpec` has it."""

    @property
    def task(self) -> _Task:
        """The task."""
        ...

    @property
    def attempt(self) -> int:
        """Which try of the task."""
        ...

    @property
    def execution(self) -> int:
        """Which physical try of the attempt."""
        ...


current_execution: ContextVar[Execution | None] = ContextVar("steelyard_execution", default=None)
"""The execution that the running code belongs to; None outside of any."""


def enter_run(name: str, run_id: str) -> None:
    """Say that the running task works for a request from now on, and for no execution yet."""
    current_run.set(name)
    current_run_id.set(run_id)
    current_execution.set(None)


def context_of(run_id: str | None = None) -> dict[str, Any]:
    """Give the context of the running code, `{run, request, task, attempt, execution}`.

    Args:
        run_id: the run whose log it is for; the running code's own by default.
    """
    found = current_execution.get()
    return {
        "run": run_id or current_run_id.get(),
        "request": current_run.get(),
        "task": None if found is None else found.task.id,
        "attempt": None if found is None else found.attempt,
        "execution": None if found is None else found.execution,
    }


class TextFormatter(logging.Formatter):
    """`TIME LEVEL LOGGER run=… request=… task=… attempt=… execution=…: MESSAGE`.

    What is not known is left out; a value with spaces and the like is quoted as JSON.
    """

    def __init__(self, run_id: str | None = None) -> None:
        super().__init__(
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s%(where)s: %(message)s", TIME_FORMAT
        )
        self.converter = time.gmtime
        self._run_id = run_id

    def format(self, record: logging.LogRecord) -> str:
        """Write the entry, with a traceback's lines below it."""
        pairs = [
            f" {name}={_word(value)}"
            for name, value in context_of(self._run_id).items()
            if value is not None
        ]
        record.where = "".join(pairs)
        return super().format(record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line, schema `log/1`; every text redacted before it is escaped."""

    def __init__(self, redact: Callable[[str], str], run_id: str | None = None) -> None:
        super().__init__()
        self._redact = redact
        self._run_id = run_id

    def format(self, record: logging.LogRecord) -> str:
        """Write the entry; a traceback is its `exception`."""
        entry = {
            "schema": LOG_SCHEMA,
            "at": utc_at(record.created),
            "level": record.levelname,
            "logger": record.name,
            **context_of(self._run_id),
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            entry["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            entry["stack"] = record.stack_info
        return json_line(entry, self._redact)


def json_line(entry: dict[str, Any], redact: Callable[[str], str]) -> str:
    """Write an entry as one line of JSON: no line end, no control character in it."""
    shown = {
        name: redact(value)[:_MAX_TRACE_CHARS] if isinstance(value, str) else value
        for name, value in entry.items()
    }
    return printable.json_lines(json.dumps(shown, ensure_ascii=False))


def utc_at(seconds: float) -> str:
    """Write Unix seconds as UTC, ISO 8601 with milliseconds and `Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


_PLAIN: Final = re.compile(r"[\w./@+-]+")


def _word(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
