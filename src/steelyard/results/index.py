"""Where each attempt's record lies in `attempts.jsonl`; the last valid one counts.

20,000 attempts take about 3 MiB: a digest and a number each, never the records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steelyard.results.lines import Damage, LineFile, read_line
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import MalformedRecord, record_from_json

KNOWN_ATTEMPT_SCHEMAS = {"attempt": 1}


def attempt_key(task_id: str, attempt: int) -> bytes:
    """Give 16 bytes that stand for an attempt."""
    text = f"{attempt}:{task_id}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


class AttemptIndex:
    """An index of one file, made by reading it once."""

    def __init__(self, path: Path) -> None:
        """Read the file; one that is not there is empty.

        Raises:
            OSError: it cannot be read.
        """
        self.path = path
        self._offsets: dict[bytes, int] = {}
        self.duplicates = 0
        """Lines that a later one of the same attempt replaces."""
        self.malformed = 0
        """Whole lines that do not say which attempt they are of."""
        scan = LineFile(path, known=KNOWN_ATTEMPT_SCHEMAS)
        for offset, data in scan:
            task_id, attempt = data.get("task_id"), data.get("attempt")
            if not isinstance(task_id, str) or not isinstance(attempt, int):
                self.malformed += 1
                continue
            key = attempt_key(task_id, attempt)
            self.duplicates += key in self._offsets
            self._offsets[key] = offset
        self.end = scan.end
        self.damage: Damage | None = scan.damage

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: bytes) -> bool:
        return key in self._offsets

    def record(self, task_id: str, attempt: int) -> AttemptRecord | None:
        """Read the record of an attempt; None where there is none.

        Raises:
            MalformedRecord: there is a line for it that cannot be used.
        """
        offset = self._offsets.get(attempt_key(task_id, attempt))
        if offset is None:
            return None
        with self.path.open("rb") as file:
            data = read_line(file, offset)
        if data is None:
            raise MalformedRecord(f"the line at byte {offset} changed while it was read")
        return record_from_json(data)

    def raw_records(self) -> Iterator[dict[str, Any]]:
        """Iterate over the objects that count, in the order of the file."""
        for offset, data in LineFile(self.path, known=KNOWN_ATTEMPT_SCHEMAS):
            if offset >= self.end:
                return
            task_id, attempt = data.get("task_id"), data.get("attempt")
            if not isinstance(task_id, str) or not isinstance(attempt, int):
                continue
            if self._offsets.get(attempt_key(task_id, attempt)) == offset:
                yield data
