"""`run.log`: what happened in one run, for whoever must find out why. Rotated, redacted."""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

current_run: ContextVar[str | None] = ContextVar("steelyard_run", default=None)
"""The request whose work the running code belongs to; None for what concerns all."""

FORMAT: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s"
TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"
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
    logger = logging.getLogger("steelyard")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
