"""The product's loggers during a launch: all into `run.log`, to the caller what they asked for.

Without a launch they are a library's loggers as any other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from steelyard.config.redaction import Redactor

_LOGGER: Final = logging.getLogger("steelyard")
_LOCK: Final = threading.Lock()


@contextmanager
def logging_for(redactor: Redactor) -> Iterator[None]:
    """Log everything for `run.log` while the block lasts; several may, in several threads."""
    with _LOCK:
        _STATE.enter(redactor)
    try:
        yield
    finally:
        with _LOCK:
            _STATE.leave(redactor)


class _State:
    """How the logger stood before the first of the launches that go on."""

    def __init__(self) -> None:
        self._redactors: list[Redactor] = []
        self._level = logging.NOTSET
        self._told: _ToCaller | None = None

    def enter(self, redactor: Redactor) -> None:
        self._redactors.append(redactor)
        if len(self._redactors) > 1:
            return
        self._level = _LOGGER.level
        if _LOGGER.propagate:
            self._told = _ToCaller(_LOGGER.getEffectiveLevel(), self._redacted)
            _LOGGER.addHandler(self._told)
        _LOGGER.setLevel(logging.DEBUG)
        _LOGGER.propagate = False

    def leave(self, redactor: Redactor) -> None:
        self._redactors.remove(redactor)
        if self._redactors:
            return
        _LOGGER.setLevel(self._level)
        _LOGGER.propagate = self._told is not None
        if self._told is not None:
            _LOGGER.removeHandler(self._told)
            self._told = None

    def _redacted(self, text: str) -> str:
        """Hide the secrets of all launches: a record does not say whose it is."""
        for redactor in self._redactors:
            text = redactor.text(text)
        return text


class _ToCaller(logging.Handler):
    """Passes on to the caller's handlers what would have reached them, redacted.

    Theirs would see every record else: the logger's level is lowered for `run.log`.
    """

    def __init__(self, level: int, redact: Callable[[str], str]) -> None:
        super().__init__(level)
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        told = logging.makeLogRecord(record.__dict__)
        told.msg, told.args = self._redact(self.format(record)), ()
        told.exc_info = told.exc_text = told.stack_info = None
        record.exc_text = None  # cached by `format`, and not redacted
        for handler in logging.getLogger().handlers:
            # What the engine hung up itself (`run.log`) sees our records anyway.
            ours = type(handler).__module__.startswith("steelyard.")
            if not ours and told.levelno >= handler.level:
                handler.handle(told)


_STATE: Final = _State()
