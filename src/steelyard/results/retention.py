"""What runs take on disk, and which of them a retention rule lets go. Decisions are pure.

Nothing here looks at what a record says: a run is kept or removed whole, or its large parts are.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from steelyard.config.errors import Fault
from steelyard.results.documents import RunUnreadable, holds_run, read_run_document
from steelyard.results.layout import RunFiles
from steelyard.results.lock import is_alive

LEAVING: Final = ".pruned-"
"""Put before a run's name while it is removed: a kill leaves something that is plainly rubbish."""
_MAX_DEPTH: Final = 4
"""`<results_dir>/[<run_name>/]<namespace>/<run_id>`: a run lies no deeper below what is named."""


class Part(StrEnum):
    """What a run's bytes are."""

    RECORDS = "records"
    TASKS = "tasks"
    LOGS = "logs"
    DERIVED = "derived"
    OTHER = "other"


_PART_OF: Final = {
    "attempts.jsonl": Part.RECORDS,
    "events.jsonl": Part.RECORDS,
    "run.json": Part.RECORDS,
    "lock": Part.RECORDS,
    "tasks": Part.TASKS,
    "progress.json": Part.DERIVED,
    "metrics.json": Part.DERIVED,
    "summary.md": Part.DERIVED,
    "analysis.json": Part.DERIVED,
    "analysis.md": Part.DERIVED,
}


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run directory as it lies on the disk."""

    root: Path
    namespace: Path
    """The folder of all runs of the request."""
    created_at: datetime | None
    """None where `run.json` cannot be read."""
    is_running: bool
    bytes_by_part: dict[Part, int]

    @property
    def bytes(self) -> int:
        """All that it takes."""
        return sum(self.bytes_by_part.values())


@dataclass(frozen=True, slots=True)
class Rule:
    """What may go. A run goes where every bound that is given lets it."""

    older_than: timedelta | None = None
    keep_last: int | None = None
    """In each namespace, so many of the newest stay."""
    max_bytes: int | None = None
    """The oldest go until the rest takes no more."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a run, and why."""

    run: KeptRun
    goes: bool
    why: str


def find_runs(folder: Path) -> Iterator[KeptRun]:
    """Find the runs in and below a folder; links are not followed. Blocking."""
    for root in _roots(folder, 0):
        run = look_at(root)
        if root.exists():  # else somebody else has just removed it
            yield run


def _roots(folder: Path, depth: int) -> Iterator[Path]:
    if holds_run(folder):
        yield folder
        return
    if depth == _MAX_DEPTH:
        return
    try:
        children = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for child in children:
        if child.is_dir(follow_symlinks=False) and not child.name.startswith(LEAVING):
            yield from _roots(Path(child.path), depth + 1)


def look_at(root: Path) -> KeptRun:
    """Measure one run. Blocking."""
    created = None
    with suppress(RunUnreadable, ValueError, KeyError):
        said = datetime.fromisoformat(str(read_run_document(root)["created_at"]))
        created = said if said.tzinfo is not None else None
    sizes: dict[Part, int] = defaultdict(int)
    with suppress(OSError):
        sizes[Part.RECORDS] += root.stat().st_blocks * 512  # the folder itself
    try:
        for entry in os.scandir(root):
            part = Part.LOGS if entry.name.startswith("run.log") else _PART_OF.get(entry.name)
            sizes[part or Part.OTHER] += _bytes_of(entry)
    except OSError:  # it cannot be looked into: nobody removes what he has not seen
        created = None
    return KeptRun(root, root.parent, created, _may_be_alive(root), dict(sizes))


def _may_be_alive(root: Path) -> bool:
    try:
        return is_alive(RunFiles(root).lock)
    except OSError:  # on doubt it runs
        return True


def _bytes_of(entry: os.DirEntry[str]) -> int:
    """Give what a file or folder takes on the disk, links themselves only."""
    total, pending = 0, [entry]
    while pending:
        one = pending.pop()
        with suppress(OSError):  # it goes while we look
            found = one.stat(follow_symlinks=False)
            total += found.st_blocks * 512
            if stat.S_ISDIR(found.st_mode):
                pending += os.scandir(one.path)
    return total


def judge(runs: Sequence[KeptRun], rule: Rule, now: datetime) -> list[Verdict]:
    """Say of each run whether the rule lets it go, oldest first.

    Running runs stay, and so do those whose age is not known. A rule without bounds lets none go.
    """
    ordered = sorted(runs, key=lambda run: (run.created_at or _UNKNOWN, str(run.root)))
    newest: dict[Path, list[KeptRun]] = defaultdict(list)
    for run in reversed(ordered):
        newest[run.namespace].append(run)
    total = sum(run.bytes for run in runs)
    verdicts = []
    for run in ordered:
        why = _kept_by(run, rule, now, newest[run.namespace], total)
        if why is None:
            total -= run.bytes
        verdicts.append(Verdict(run, why is None, why or _gone_by(run, rule, now)))
    return verdicts


_UNKNOWN: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _kept_by(
    run: KeptRun, rule: Rule, now: datetime, newest: Sequence[KeptRun], total: int
) -> str | None:
    """Say what keeps a run; None where nothing does."""
    if run.is_running:
        return "it is running"
    if run.created_at is None:
        return "its age is not known: run.json cannot be read"
    if rule == Rule():
        return "no bound is given"
    if rule.older_than is not None and now - run.created_at <= rule.older_than:
        return "it is not old enough"
    if rule.keep_last is not None and newest.index(run) < rule.keep_last:
        return f"it is among the newest {rule.keep_last} of its request"
    if rule.max_bytes is not None and total <= rule.max_bytes:
        return "the runs take no more than they may"
    return None


def _gone_by(run: KeptRun, rule: Rule, now: datetime) -> str:
    """Say by which bounds a run goes: by every one that is given."""
    reasons = []
    if rule.older_than is not None:
        reasons.append(f"{_age_text(now - (run.created_at or now))} old")
    if rule.keep_last is not None:
        reasons.append(f"not among the newest {rule.keep_last} of its request")
    if rule.max_bytes is not None:
        reasons.append("the runs take more than they may")
    return ", ".join(reasons)


def _age_text(age: timedelta) -> str:
    for seconds, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        count = int(age.total_seconds() // seconds)
        if count:
            return f"{count} {unit}{'s' * (count != 1)}"
    return "less than a minute"


class StillRunning(Fault):
    """A run that began to run again while it was to be removed."""


def remove_run(run: KeptRun) -> None:
    """Remove a run directory, and its namespace's folder where it was the last. Blocking.

    Renamed first, so that a process killed meanwhile leaves no half run under a run's name.

    Raises:
        StillRunning: its owner holds the lock.
        OSError: it cannot be removed.
    """
    if is_alive(RunFiles(run.root).lock):
        raise StillRunning(f"{run.root} is running", remedy="wait until it has ended")
    leaving = run.root.with_name(f"{LEAVING}{run.root.name}")
    if leaving.exists():
        shutil.rmtree(leaving)
    run.root.rename(leaving)
    shutil.rmtree(leaving)
    with suppress(OSError):  # others are in it
        run.namespace.rmdir()


def remove_rubbish(folder: Path) -> list[Path]:
    """Remove what an earlier, killed removal left behind; give what it was. Blocking.

    Raises:
        OSError: something cannot be removed.
    """
    removed = []
    for place, names, _ in os.walk(folder, followlinks=False):
        for name in list(names):
            path = Path(place, name)
            if name.startswith(LEAVING) and not path.is_symlink():
                shutil.rmtree(path)
                names.remove(name)
                removed.append(path)
            elif holds_run(path):
                names.remove(name)
        if len(Path(place).relative_to(folder).parts) >= _MAX_DEPTH:
            names.clear()
    return removed
