"""`run.log`: what happened in one run, for whoever must find out why. Rotated, redacted."""

from __future__ import annotations

import logging
import logging.handlers
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from steelyard.config.redaction import RedactingFormatter, Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine.log_context import JsonFormatter, TextFormatter
from steelyard.engine.log_context import current_run as current_run

_MAX_BYTES: Final = 16 * 1024 * 1024
_KEPT: Final = 3


class _OfRun(logging.Filter):
    """Passes what belongs to one run, and what belongs to none."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def filter(self, record: logging.LogRecord) -> bool:
        return current_run.get() in (None, self._name)


@contextmanager
def run_log(path: Path, name: str, level: str, formatter: logging.Formatter) -> Iterator[None]:
    """Write the log of one run while the block lasts. A disk that fails loses log lines only."""
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=_MAX_BYTES, backupCount=_KEPT, encoding="utf-8", delay=True
    )
    handler.setLevel(level)
    handler.setFormatter(formatter)
    handler.addFilter(_OfRun(name))
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    try:
        with listening(handler):
            yield
    finally:
        with suppress(OSError):  # what a full disk did not take is written once more here
            handler.close()


@contextmanager
def listening(handler: logging.Handler) -> Iterator[None]:
    """Hand a handler what we log, and what others warn of, while the block lasts.

    Without a handler theirs would go to standard error as it is.
    """
    ours, root = logging.getLogger("steelyard"), logging.getLogger()
    others = _OfOthers(handler)
    ours.addHandler(handler)
    root.addHandler(others)
    try:
        with _said_to_nobody():
            yield
    finally:
        ours.removeHandler(handler)
        root.removeHandler(others)


@contextmanager
def _said_to_nobody() -> Iterator[None]:
    """Log warnings, and what fails in threads and destructors: it goes to standard error else."""
    with _LOCK:
        _HOOKS.enter()
    try:
        yield
    finally:
        with _LOCK:
            _HOOKS.leave()


class _Hooks:
    """The interpreter's hooks, ours from the first launch that goes on to the last.

    Each launch putting back what it found would leave a hook of another, which has ended.
    """

    def __init__(self) -> None:
        self._open = 0
        self._before = (warnings.showwarning, threading.excepthook, sys.unraisablehook)

    def enter(self) -> None:
        self._open += 1
        if self._open == 1:
            self._before = (warnings.showwarning, threading.excepthook, sys.unraisablehook)
            warnings.showwarning = _warned
            threading.excepthook, sys.unraisablehook = _in_thread, _unraisable

    def leave(self) -> None:
        self._open -= 1
        if not self._open:
            warnings.showwarning, threading.excepthook, sys.unraisablehook = self._before


_HOOKS: Final = _Hooks()
_LOCK: Final = threading.Lock()
_UNHANDLED: Final = logging.getLogger("py.unhandled")


def _in_thread(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread is not None else "?"
    found = (args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    _UNHANDLED.error("the thread %s failed", name, exc_info=found)


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    found = (args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    _UNHANDLED.error("%s in %r", args.err_msg or "an exception", args.object, exc_info=found)


def _warned(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    text = warnings.formatwarning(message, category, filename, lineno, line)
    logging.getLogger("py.warnings").warning("%s", text)


class _OfOthers(logging.Handler):
    """Passes on the records of all loggers but ours, which reach the handler without it."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] != "steelyard" and record.levelno >= self._handler.level:
            self._handler.handle(record)


_REDACTORS: Final[list[Redactor]] = []
"""Those of the launches that go on in this process."""


class _OfAll(Redactor):
    """Hides the secrets of all of them: what concerns no single run reaches every run's log."""

    def __init__(self) -> None:
        super().__init__(SecretStore({}))

    def text(self, text: str) -> str:
        for each in tuple(_REDACTORS):
            text = each.text(text)
        return text


class LaunchLogs:
    """The logs of a launch's runs, each from the opening of its run to its end.

    Args:
        level: the least that is written.
        redactor: knows the launch's secrets.
        log_format: `text`, or `json` for lines of schema `log/1`.
    """

    def __init__(self, level: str, redactor: Redactor, log_format: str = "text") -> None:
        self._level = level
        self._format = log_format
        self._secrets = _OfAll()
        self._open: dict[Path, ExitStack] = {}
        self._whole = ExitStack()
        _REDACTORS.append(redactor)
        self._whole.callback(_REDACTORS.remove, redactor)
        # While nothing is open yet, what is said of threads and destructors goes nowhere else.
        self._whole.enter_context(_said_to_nobody())

    def open(self, name: str, path: Path) -> None:
        """Begin the log of a request, in its run directory."""
        run_id = path.parent.name
        formatter: logging.Formatter = RedactingFormatter(TextFormatter(run_id), self._secrets)
        if self._format == "json":
            formatter = JsonFormatter(self._secrets.text, run_id)
        stack = self._open[path] = ExitStack()
        stack.enter_context(run_log(path, name, self._level, formatter))

    def end(self, path: Path) -> None:
        """End one log. Safe to call twice."""
        stack = self._open.pop(path, None)
        if stack is not None:
            stack.close()

    def close(self) -> None:
        """End them all."""
        for path in tuple(self._open):
            self.end(path)
        self._whole.close()


def run_logs(
    runs: Sequence[tuple[str, Path]], level: str, redactor: Redactor, log_format: str = "text"
) -> ExitStack:
    """Open the logs of several runs, as (name, path); close what comes back to end them.

    The other arguments are those of `LaunchLogs`.
    """
    logs = LaunchLogs(level, redactor, log_format)
    stack = ExitStack()
    stack.callback(logs.close)
    for name, path in runs:
        logs.open(name, path)
    return stack
