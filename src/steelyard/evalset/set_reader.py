"""The one way to read a set: while it runs, after it ended, after its process died.

Nothing is kept of what the runs say: each question is answered from their files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson

from steelyard.components.issues import Outcome
from steelyard.config.errors import BadInput
from steelyard.engine.events import RunOutcome
from steelyard.evalset.layout import SetFiles
from steelyard.evalset.set_document import SET_SCHEMA, SetCell, SetDocument
from steelyard.evalset.states import CellState, SetState
from steelyard.evalset.submissions import Submission
from steelyard.results.documents import RunUnreadable
from steelyard.results.json_values import count, seconds
from steelyard.results.layout import RunFiles
from steelyard.results.lock import is_alive
from steelyard.results.newest import newest_of, runs_below
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.reader import RunReader

_MAX_BYTES: Final = 4 * 1024 * 1024

_STATE_OF: Final[Mapping[str, CellState]] = MappingProxyType(
    {
        RunOutcome.COMPLETED: CellState.COMPLETED,
        RunOutcome.FAILED: CellState.FAILED,
        RunOutcome.TIMED_OUT: CellState.TIMED_OUT,
        RunOutcome.CANCELLED: CellState.CANCELLED,
        RunOutcome.BUDGET_EXCEEDED: CellState.SKIPPED_BUDGET,
    }
)


class SetUnreadable(BadInput):
    """A folder is no eval set, or its document is damaged."""

    def __init__(self, root: Path, reason: str) -> None:
        super().__init__(
            f"{root} cannot be read as an eval set: {reason}",
            remedy="`steelyard evalset list` shows the sets there are",
        )


@dataclass(frozen=True, slots=True)
class CellStatus:
    """Where a cell stands, by its newest run."""

    cell: SetCell
    state: CellState
    run_dir: Path | None
    """None where nothing of it has begun."""
    planned: int | None = None
    """Attempts; None until its tasks are loaded."""
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    running: int = 0
    cost_usd: float | None = 0.0
    """Of what it holds, earlier runs' work too; None where a part has no known price."""
    elapsed_s: float = 0.0
    metrics: Mapping[str, Any] | None = None
    """The contents of `metrics.json`; None until the run has ended."""
    reason: str | None = None
    """Why it is not complete, as its run says."""
    snapshot: Mapping[str, Any] = field(default_factory=dict)
    """What `progress.json` says; anybody may have edited it."""


class OpenedSet:
    """A set's folder, opened for reading."""

    def __init__(self, root: Path) -> None:
        """Read `evalset.json`.

        Raises:
            SetUnreadable: there is none, or it is not ours to read.
        """
        self.root = root
        self.files = SetFiles(root)
        self.document = _read_document(self.files)

    @property
    def set_id(self) -> str:
        """The set's id."""
        return self.document.set_id

    @property
    def name(self) -> str:
        """The set's name."""
        return self.document.name

    @property
    def cells(self) -> tuple[SetCell, ...]:
        """Its cells, in the order in which they were added."""
        return self.document.cells

    def submissions(self) -> list[Submission]:
        """List what was asked of the set, the latest last.

        Raises:
            SetUnreadable: one of them is damaged.
        """
        found = []
        try:
            paths = sorted(self.files.submissions.glob("[0-9]*.json"))
            for path in paths:
                found.append(Submission.from_json(orjson.loads(read_plain(path, _MAX_BYTES))))
        except OSError as error:
            raise SetUnreadable(self.root, f"{error.filename}: {error.strerror}") from error
        except (KeyError, TypeError, ValueError) as error:
            detail = f"submissions/{path.name} was changed by hand: {error}"
            raise SetUnreadable(self.root, detail) from error
        return found

    def is_running(self) -> bool:
        """True while some process runs the set."""
        return is_alive(self.files.lock)

    def state(self) -> SetState:
        """Say where the set stands."""
        if self.is_running():
            return SetState.RUNNING
        submissions = self.submissions()
        if not submissions or submissions[-1].outcome is None:
            return SetState.INTERRUPTED
        return SetState(submissions[-1].outcome.value)

    def budget_usd(self) -> float | None:
        """Give the limit of the latest submission; None for none."""
        submissions = self.submissions()
        return submissions[-1].budget_usd if submissions else None

    def run_dir(self, cell: SetCell) -> Path | None:
        """Give the newest run of a cell; None where nothing of it has begun."""
        runs = self.run_dirs(cell)
        if len(runs) == 1:
            return runs[0]
        found = newest_of(runs)
        return None if found is None else found.root

    def run_dirs(self, cell: SetCell) -> list[Path]:
        """List all runs of a cell, in no order; none where its folder has become a link."""
        folder = self.files.cell(cell.folder)
        is_own = folder.is_dir() and not folder.is_symlink()
        return list(runs_below(folder, 1)) if is_own else []

    def reader(self, cell: SetCell) -> RunReader | None:
        """Open the newest run of a cell; None where there is none.

        Raises:
            RunUnreadable: it cannot be read.
        """
        root = self.run_dir(cell)
        return None if root is None else RunReader(root)

    def status(self, cell: SetCell) -> CellStatus:
        """Say where a cell stands: two small files are read, never its records."""
        root = self.run_dir(cell)
        if root is None:
            return CellStatus(cell, CellState.PENDING, None)
        files = RunFiles(root)
        progress = _json_file(files.progress) or {}
        outcome = progress.get("outcome")
        if outcome is None:
            return _unfinished(cell, root, progress)
        metrics = _json_file(files.metrics)
        return CellStatus(
            cell,
            _STATE_OF.get(str(outcome), CellState.FAILED),
            root,
            planned=progress.get("planned"),
            outcomes=_outcomes(progress),
            cost_usd=progress.get("cost_usd"),
            elapsed_s=_elapsed_s(progress),
            metrics=metrics,
            reason=progress.get("reason"),
            snapshot=progress,
        )

    def statuses(self) -> Iterator[CellStatus]:
        """Say where each cell stands, in their order."""
        for cell in self.cells:
            yield self.status(cell)


def _unfinished(cell: SetCell, root: Path, progress: Mapping[str, Any]) -> CellStatus:
    """Say where a run stands whose snapshot names no outcome: it runs, or died."""
    if is_alive(RunFiles(root).lock):
        return CellStatus(
            cell,
            CellState.RUNNING,
            root,
            planned=progress.get("planned"),
            outcomes=_outcomes(progress),
            running=_running(progress),
            cost_usd=progress.get("cost_usd", 0.0),
            elapsed_s=_elapsed_s(progress),
            snapshot=progress,
        )
    try:
        reader = RunReader(root)
        ledger, finished = reader.ledger, reader.finished
    except RunUnreadable as error:
        return CellStatus(cell, CellState.INTERRUPTED, root, reason=error.reason)
    state = CellState.INTERRUPTED
    if finished is not None:  # it died between its last event and its last snapshot
        state = _STATE_OF.get(str(finished.get("outcome")), CellState.FAILED)
    return CellStatus(
        cell,
        state,
        root,
        planned=ledger.planned,
        outcomes=ledger.outcomes,
        cost_usd=progress.get("cost_usd"),
        elapsed_s=_elapsed_s(progress),
        metrics=_json_file(RunFiles(root).metrics),
        snapshot=progress,
    )


def _elapsed_s(progress: Mapping[str, Any]) -> float:
    """Anybody may have edited it: what is no time is none."""
    with suppress(TypeError, ValueError):
        return seconds(progress.get("elapsed_s"))
    return 0.0


def _running(progress: Mapping[str, Any]) -> int:
    with suppress(TypeError, ValueError):
        return count(progress.get("running"))
    return 0


def _outcomes(progress: Mapping[str, Any]) -> dict[Outcome, int]:
    found = progress.get("outcomes")
    if not isinstance(found, Mapping):
        return {}
    known = {outcome.value: outcome for outcome in Outcome}
    return {known[name]: int(n) for name, n in found.items() if name in known}


def _read_document(files: SetFiles) -> SetDocument:
    try:
        data = orjson.loads(read_plain(files.document, MAX_DOCUMENT_BYTES))
    except OSError as error:
        raise SetUnreadable(files.root, f"evalset.json: {error.strerror or error}") from error
    except ValueError as error:
        raise SetUnreadable(files.root, f"evalset.json is not JSON: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SET_SCHEMA:
        raise SetUnreadable(files.root, f"evalset.json says {schema!r}, not {SET_SCHEMA!r}")
    try:
        return SetDocument.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise SetUnreadable(files.root, f"evalset.json was changed by hand: {detail}") from error


def _json_file(path: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        data = orjson.loads(read_plain(path, MAX_DOCUMENT_BYTES))
        if isinstance(data, dict):
            return data
    return None
