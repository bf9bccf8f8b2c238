"""`progress.json`: a small snapshot for people and other programs. Never the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from steelyard.components.clock import Clock, utc_text
from steelyard.results.files import (
    NO_FAULTS,
    Faults,
    StorageFailed,
    WritePoint,
    replace_atomically,
)
from steelyard.results.run_folder import RunFolder

PROGRESS_SCHEMA: Final = "progress/1"
MIN_INTERVAL_S: Final = 0.5


class ProgressFile:
    """Replaces the snapshot at most twice a second; a failure is kept, never raised."""

    def __init__(
        self,
        folder: RunFolder,
        *,
        clock: Clock,
        faults: Faults = NO_FAULTS,
        redact: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._faults = faults
        self._redact = redact
        self._next_s = 0.0
        self.failure: StorageFailed | None = None

    @property
    def is_due(self) -> bool:
        """True where `update` would write; ask before making an expensive snapshot."""
        return self._clock.monotonic() >= self._next_s

    def update(self, snapshot: Mapping[str, Any], *, is_last: bool = False) -> bool:
        """Write a snapshot if the last is half a second old; always where `is_last`.

        Returns:
            True where it was written.
        """
        if not is_last and not self.is_due:
            return False
        self._next_s = self._clock.monotonic() + MIN_INTERVAL_S
        full = {
            "schema": PROGRESS_SCHEMA,
            "run_id": self._folder.run_id,
            "updated_at": utc_text(self._clock.now()),
            **snapshot,
        }
        data = orjson.dumps(full, option=orjson.OPT_INDENT_2) + b"\n"
        try:
            replace_atomically(
                self._folder.files.progress,
                self._redact(data) if self._redact else data,
                WritePoint.PROGRESS_WRITTEN,
                WritePoint.PROGRESS_RENAMED,
                self._faults,
            )
        except StorageFailed as error:
            self.failure = error
            return False
        return True
