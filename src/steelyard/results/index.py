"""Where each attempt's record lies in `attempts.jsonl`; the last valid one counts.

100,000 attempts take about 20 MiB: a digest and a number each, never the records.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from steelyard.components.issues import Outcome
from steelyard.results.lines import Damage, LineFile, read_line
from steelyard.results.plain_files import open_plain
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import MalformedRecord, record_from_json

KNOWN_ATTEMPT_SCHEMAS: Final = {"attempt": 1}

_CODES: Final = 16
_OUTCOMES: Final = tuple(Outcome)
_NUMBER: Final[Mapping[object, int]] = {word.value: n for n, word in enumerate(_OUTCOMES)}
_NO_OUTCOME: Final = _CODES - 1


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
        self._fd: int | None = None
        self._entries: dict[bytes, int] = {}
        # offset * _CODES + the outcome's number: one int costs a third of a tuple
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
            self.duplicates += key in self._entries
            self._entries[key] = offset * _CODES + _NUMBER.get(
                str(data.get("outcome")), _NO_OUTCOME
            )
        self.end = scan.end
        self.damage: Damage | None = scan.damage

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def outcomes(self) -> Counter[Outcome]:
        """Count how the attempts ended; one that does not say says nothing about the agent."""
        numbers = Counter(entry % _CODES for entry in self._entries.values())
        unknown = numbers.pop(_NO_OUTCOME, 0)
        found = Counter({_OUTCOMES[number]: count for number, count in numbers.items()})
        found[Outcome.FAILED_FATAL] += unknown
        return found

    def record(self, task_id: str, attempt: int) -> AttemptRecord | None:
        """Read the record of an attempt; None where there is none.

        Raises:
            MalformedRecord: there is a line for it that cannot be used.
        """
        entry = self._entries.get(attempt_key(task_id, attempt))
        if entry is None:
            return None
        offset = entry // _CODES
        data = self._line_at(offset)
        if data is None:
            raise MalformedRecord(f"the line at byte {offset} changed while it was read")
        return record_from_json(data)

    def _line_at(self, offset: int) -> dict[str, Any] | None:
        """Read one line; the file stays open, since a large run asks for each of its records."""
        if self._fd is None:
            with open_plain(self.path) as file:
                self._fd = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._fd)
        return read_line(self._fd, offset)

    def raw_records(self) -> Iterator[dict[str, Any]]:
        """Iterate over the objects that count, in the order of the file."""
        for offset, data in LineFile(self.path, known=KNOWN_ATTEMPT_SCHEMAS):
            if offset >= self.end:
                return
            if not self.duplicates and not self.malformed:
                yield data  # every line counts
                continue
            task_id, attempt = data.get("task_id"), data.get("attempt")
            if not isinstance(task_id, str) or not isinstance(attempt, int):
                continue
            if self._entries.get(attempt_key(task_id, attempt), -1) // _CODES == offset:
                yield data
