"""What happened in the cells of a set, as lines: events, records, and of `run.log` on request.

Read on from where it stopped, and only where a file has grown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.evalset.cell_choice import matches
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.watched_cell import Mark, mark_of
from steelyard.results.documents import RunUnreadable, began_order, part, read_run_document
from steelyard.results.index import KNOWN_ATTEMPT_SCHEMAS
from steelyard.results.journal import EventKind
from steelyard.results.layout import RunFiles
from steelyard.results.lines import LineFile
from steelyard.results.plain_files import open_plain
from steelyard.results.reader import KNOWN_EVENT_SCHEMAS

HAPPENING_SCHEMA: Final = "evalset-log/1"
PHASES: Final = frozenset(
    {
        EventKind.PHASE.value,
        EventKind.OPENED.value,
        EventKind.CLOSED.value,
        EventKind.CHECKPOINT.value,
        EventKind.CARRIED.value,
    }
)
"""Kinds of event of which there are many for each attempt."""
_TASK: Final = re.compile(r' task=("(?:[^"\\]|\\.)*"|[^\s:]+)')
_AT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z")
_MAX_CASES: Final = 100_000
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened."""

    at: str
    """UTC, ISO 8601 with `Z`; empty where nothing says when."""
    matrix_key: str
    run: str
    kind: str
    """`event`, `record` or `log`."""
    case: str | None
    """None where it concerns the whole run."""
    attempt: int | None
    data: Mapping[str, Any]
    """The event or record as it is written; of a line of the log its `text`."""

    def as_json(self) -> dict[str, Any]:
        """Give the form `evalset-log/1`."""
        return {
            "schema": HAPPENING_SCHEMA,
            "at": self.at,
            "cell": self.matrix_key,
            "run": self.run,
            "kind": self.kind,
            "case": self.case,
            "attempt": self.attempt,
            "data": dict(self.data),
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which happenings are asked for."""

    cases: tuple[str, ...] = ()
    """Whole, or patterns; none: all, and what concerns no case."""
    has_phases: bool = False
    """Whether events that come several times an attempt are among them."""
    has_log: bool = False
    """Whether lines of `run.log` are among them."""

    def takes_case(self, case: str | None) -> bool:
        """True where a case is asked for."""
        if not self.cases:
            return True
        return case is not None and any(matches(pattern, case) for pattern in self.cases)


class Happenings:
    """Follows the cells of a set."""

    def __init__(self, opened: OpenedSet, cells: Sequence[SetCell], wanted: Wanted) -> None:
        self._cells = [_CellLog(opened, cell, wanted) for cell in cells]
        self.warnings: dict[str, None] = {}
        """Runs that could not be read."""

    def read_on(self) -> Iterator[Happening]:
        """Iterate over what is new, cell by cell, each in the order of time."""
        for cell in self._cells:
            try:
                yield from cell.read_on()
            except (RunUnreadable, OSError) as error:
                self.warnings[f"{cell.cell.matrix_key}: {error}"] = None

    @property
    def cases(self) -> set[str]:
        """The cases that were met, asked for or not."""
        return {case for cell in self._cells for case in cell.cases}


class _CellLog:
    def __init__(self, opened: OpenedSet, cell: SetCell, wanted: Wanted) -> None:
        self.cell = cell
        self.cases: set[str] = set()
        self._opened = opened
        self._wanted = wanted
        self._folder: Mark = None
        self._runs: list[_RunLog] = []

    def read_on(self) -> Iterator[Happening]:
        folder = self._opened.files.cell(self.cell.folder)
        mark = mark_of(folder)
        if mark != self._folder and not folder.is_symlink():
            known = {run.root: run for run in self._runs}
            roots = sorted(self._opened.run_dirs(self.cell), key=_began)
            self._runs = [
                known.get(root) or _RunLog(root, self.cell, self._wanted, self.cases)
                for root in roots
            ]
            # A folder whose `run.json` is still to come is looked for again.
            folders = [one for one in folder.iterdir() if one.is_dir()] if roots else [folder]
            self._folder = mark if len(folders) == len(roots) else None
        for run in self._runs:
            yield from run.read_on()


def _began(root: Path) -> tuple[str, int, str]:
    try:
        return began_order(read_run_document(root), root.name)
    except RunUnreadable:
        return "", 0, root.name


class _RunLog:
    def __init__(self, root: Path, cell: SetCell, wanted: Wanted, cases: set[str]) -> None:
        self.root = root
        self._cell = cell
        self._wanted = wanted
        self._cases = cases
        files = RunFiles(root)
        self._positions = {files.events: 0, files.attempts: 0}
        if wanted.has_log:
            self._positions[files.log] = 0
        self._marks: dict[Path, Mark] = {}
        self._log_case: str | None = None

    def read_on(self) -> list[Happening]:
        found: list[Happening] = []
        for path in self._positions:
            mark = mark_of(path)
            if mark is None or mark == self._marks.get(path):
                continue
            # Marked before it is read: what is written meanwhile is looked at next time.
            self._marks[path] = mark
            read = self._log_lines if path.name == "run.log" else self._json_lines
            found += read(path)
        # A run's last word may be of the same moment as its last record.
        found.sort(key=lambda one: (one.at, one.data.get("kind") == EventKind.FINISHED))
        return found

    def _json_lines(self, path: Path) -> Iterator[Happening]:
        is_record = path.name == "attempts.jsonl"
        known = KNOWN_ATTEMPT_SCHEMAS if is_record else KNOWN_EVENT_SCHEMAS
        scan = LineFile(path, known=known, start=self._positions[path])
        for _, data in scan:
            one = self._record(data) if is_record else self._event(data)
            if one.case is not None and len(self._cases) < _MAX_CASES:
                self._cases.add(one.case)
            kind = data.get("kind")
            if self._wanted.takes_case(one.case) and (
                self._wanted.has_phases or kind not in PHASES
            ):
                yield one
        self._positions[path] = scan.end

    def _event(self, data: Mapping[str, Any]) -> Happening:
        return self._of("event", str(data.get("at", "")), data)

    def _record(self, data: Mapping[str, Any]) -> Happening:
        moment = part(dict(data), "timing").get("finished_at")
        return self._of("record", str(moment or ""), data)

    def _of(self, kind: str, at: str, data: Mapping[str, Any]) -> Happening:
        case, attempt = data.get("task_id"), data.get("attempt")
        return Happening(
            at,
            self._cell.matrix_key,
            self.root.name,
            kind,
            case if isinstance(case, str) else None,
            attempt if isinstance(attempt, int) else None,
            data,
        )

    def _log_lines(self, path: Path) -> Iterator[Happening]:
        """Read whole lines of `run.log`; those of a traceback belong to the entry before them."""
        at = ""
        with open_plain(path) as file:
            file.seek(self._positions[path])
            rest = b""
            while chunk := file.read(_CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._positions[path] += len(line) + 1
                    text = line.decode("utf-8", "replace")
                    begins = _AT.match(text) or text.startswith("{")
                    if begins:
                        at, self._log_case = _entry(text)
                    if text and self._wanted.takes_case(self._log_case):
                        yield Happening(
                            at, self._cell.matrix_key, self.root.name, "log", self._log_case, None,
                            {"text": text},
                        )  # fmt: skip


def _entry(text: str) -> tuple[str, str | None]:
    """Give when an entry of `run.log` was written, and of which case it is."""
    if text.startswith("{"):
        with suppress(ValueError, AttributeError):
            data = orjson.loads(text)
            case = data.get("task")
            return str(data.get("at", "")), case if isinstance(case, str) else None
    moment, task = _AT.match(text), _TASK.search(text.partition(": ")[0] + ":")
    case = None if task is None else task[1]
    if case is not None and case.startswith('"'):
        with suppress(ValueError):
            case = str(orjson.loads(case))
    return "" if moment is None else moment[0], case
