"""One cell of a set that is followed: read again only where its files have changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from steelyard.components.issues import Outcome
from steelyard.config.errors import SteelyardError
from steelyard.engine.events import Underway
from steelyard.evalset.case_scores import CaseScores, score_over
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.spent import run_spending
from steelyard.evalset.standing import CellStanding
from steelyard.evalset.states import CellState
from steelyard.results.consumption import NO_SPENDING, Spending
from steelyard.results.documents import part, read_run_document
from steelyard.results.layout import RunFiles
from steelyard.results.lock import is_alive
from steelyard.results.newest import newest_of, runs_below

Mark = tuple[int, ...] | None
"""What changes with a file; None where there is none."""
_MAX_SLOWEST: Final = 5
_OUTCOMES: Final[Mapping[str, Outcome]] = {outcome.value: outcome for outcome in Outcome}


def mark_of(path: Path) -> Mark:
    """Give what changes where a file or folder is written, replaced or removed."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mode, found.st_ino, found.st_mtime_ns, found.st_size


class WatchedCell:
    """What is known of a cell, and by which files."""

    def __init__(self, cell: SetCell) -> None:
        self.cell = cell
        self.standing = CellStanding(cell, CellState.PENDING)
        self.scores: CaseScores | None = None
        self.began_at = ""
        """When its newest run was made, as that says; empty where there is none."""
        self.warning: str | None = None
        self.has_news = False
        """Whether the last look saw more than that time passes."""
        self._path: Path | None = None
        """The folder of its runs; kept, since paths take longer to make than to look at."""
        self._files: RunFiles | None = None
        self._progress_path = Path()
        self._folder: Mark = None
        self._progress: Mark = None
        self._earlier: dict[Path, Spending] = {}
        """What its runs before the newest paid."""

    def look(self, opened: OpenedSet) -> bool:
        """Read what has changed; True where that was anything, `has_news` where it says more."""
        if self._path is None:
            self._path = opened.files.cell(self.cell.folder)
        folder = self._path
        mark = mark_of(folder)
        before = self.standing
        try:
            if mark != self._folder and self._find_run(opened, folder):
                self._folder = mark
            self._read(opened)
        except (SteelyardError, OSError, ValueError, TypeError, AttributeError) as error:
            # A folder may be edited by anybody: one cell is then not known, the rest is.
            reason = f"{self.cell.folder}: {error}"
            self.standing = replace(before, state=CellState.INTERRUPTED, reason=reason)
            self.warning = reason
        if self.standing is before:
            return False
        self.has_news = _essence(self.standing) != _essence(before)
        return True

    def last_sign_ns(self) -> int | None:
        """Say when its newest run last wrote anything, by its files; None where it has none."""
        if self.standing.run_dir is None:
            return None
        files = RunFiles(self.standing.run_dir)
        marks = map(mark_of, (files.document, files.events, files.attempts, files.progress))
        return max((mark[2] for mark in marks if mark is not None), default=None)

    def _find_run(self, opened: OpenedSet, folder: Path) -> bool:
        """Find the newest run; False where one is being made, and is to be looked for again."""
        self.warning = None
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            self.warning = f"{self.cell.folder}: it is no folder, so its runs are not read"
            self._enter(None, [])
            return True
        runs = list(runs_below(folder, 1))
        newest = runs[0] if len(runs) == 1 else None
        if len(runs) > 1:
            found = newest_of(runs)
            newest = None if found is None else found.root
        self._enter(newest, [root for root in runs if root != newest])
        with suppress(OSError), os.scandir(folder) as entries:
            folders = sum(entry.is_dir(follow_symlinks=False) for entry in entries)
            return folders == len(runs)
        return True

    def _enter(self, newest: Path | None, earlier: list[Path]) -> None:
        self._earlier = {
            root: self._earlier[root] if root in self._earlier else run_spending(root)
            for root in earlier
        }
        if newest == self.standing.run_dir:
            return
        self._progress = None
        self.scores, self.began_at = None, ""
        if newest is not None:
            document = read_run_document(newest)
            self.began_at = str(document.get("created_at", ""))
            self.scores = CaseScores(newest, document)
        self.standing = CellStanding(self.cell, CellState.PENDING, newest)

    def _read(self, opened: OpenedSet) -> None:
        root = self.standing.run_dir
        if root is None:
            spent = sum(self._earlier.values(), NO_SPENDING)
            if self.standing.state is not CellState.PENDING or self.standing.spent != spent:
                self.standing = CellStanding(self.cell, CellState.PENDING, spent=spent)
            return
        if self._files is None or self._files.root != root:
            self._files = RunFiles(root)
            self._progress_path = self._files.progress
        files = self._files
        mark = mark_of(self._progress_path)
        is_new = mark != self._progress or self.standing.state is CellState.PENDING
        if not is_new and (self.standing.state is not CellState.RUNNING or is_alive(files.lock)):
            return
        self._progress = mark
        status = opened.status(self.cell)
        if self.scores is not None:
            self.scores.read_on()
        snapshot = status.snapshot
        self.standing = CellStanding(
            self.cell,
            status.state,
            root,
            planned=None if status.planned is None else _count(status.planned),
            outcomes=status.outcomes,
            running=_count(status.running),
            reused=_count(snapshot.get("reused")),
            issues=_counts(snapshot.get("issues")),
            slowest=_slowest(snapshot) if status.state is CellState.RUNNING else (),
            spent=self._spent(root, status.state, snapshot),
            elapsed_s=max(0.0, status.elapsed_s),
            score=None if self.scores is None else score_over([("", self.scores)]),
            reason=None if status.reason is None else str(status.reason),
        )

    def _spent(self, root: Path, state: CellState, snapshot: Mapping[str, Any]) -> Spending:
        """Add up what the cell's runs paid; of one that runs, what its snapshot says."""
        if state is CellState.RUNNING:
            cost = snapshot.get("cost_usd", 0.0)
            known = float(cost) if isinstance(cost, int | float) else 0.0
            own = Spending(cost_usd=None if cost is None else known, known_usd=known)
        else:
            own = run_spending(root)
        return sum(self._earlier.values(), own)


def _essence(standing: CellStanding) -> CellStanding:
    """Leave out what changes with every second, and says nothing new."""
    return replace(standing, slowest=(), elapsed_s=0.0)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _counts(value: Any) -> dict[str, int]:
    found = value if isinstance(value, dict) else {}
    return {str(name): _count(n) for name, n in found.items() if _count(n)}


def _slowest(snapshot: Mapping[str, Any]) -> tuple[Underway, ...]:
    listed = snapshot.get("slowest")
    found = []
    for one in listed[:_MAX_SLOWEST] if isinstance(listed, list) else ():
        data = part({"one": one}, "one")
        with suppress(KeyError, TypeError, ValueError):
            found.append(
                Underway(
                    str(data["task_id"]),
                    int(data["attempt"]),
                    str(data["phase"]),
                    max(0.0, float(data["phase_s"])),
                    max(0.0, float(data["age_s"])),
                )
            )
    return tuple(found)
