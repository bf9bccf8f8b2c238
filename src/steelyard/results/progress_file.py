"""`progress.json`: a small snapshot for people and other programs. Never the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from steelyard.results.files import (
    NO_FAULTS,
    Faults,
    WritePoint,
    replace_atomically,
)
from steelyard.results.lines import redacted_json
from steelyard.results.run_folder import RunFolder

PROGRESS_SCHEMA: Final = "progress/1"
MIN_INTERVAL_S: Final = 0.5


class ProgressFile:
    """Replaces the snapshot of one run at most twice a second."""

    def __init__(
        self,
        folder: RunFolder,
        *,
        faults: Faults = NO_FAULTS,
        redact: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._folder = folder
        self._faults = faults
        self._redact = redact
        self._next_s = 0.0
        self.control: str | None = None
        """The socket that `steelyard ctl` finds the run's owner at."""

    def write(self, snapshot: Mapping[str, Any], now_s: float, *, is_last: bool = False) -> bool:
        """Write a snapshot if the last is half a second old; always where `is_last`.

        Args:
            snapshot: what to say; `schema` and `run_id` are added.
            now_s: the monotonic clock.
            is_last: True for the end of the run, with its outcome.

        Returns:
            True where it was written.

        Raises:
            StorageFailed: it could not be; the old one stands. Not a reason to end a run.
        """
        if not is_last and now_s < self._next_s:
            return False
        self._next_s = now_s + MIN_INTERVAL_S
        full = {"schema": PROGRESS_SCHEMA, "run_id": self._folder.run_id, **snapshot}
        if self.control is not None and not is_last:
            full["control"] = self.control
        data = redacted_json(full, self._redact, orjson.OPT_INDENT_2) + b"\n"
        replace_atomically(
            self._folder.files.progress,
            data,
            WritePoint.PROGRESS_WRITTEN,
            WritePoint.PROGRESS_RENAMED,
            self._faults,
        )
        return True
