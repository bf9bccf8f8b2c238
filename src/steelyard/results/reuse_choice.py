"""Which earlier run to take work from: the newest that is compatible, readable and not running.

Runs are only read. What becomes of each attempt is `reuse.py`'s to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from steelyard.components.clock import utc_text
from steelyard.components.issues import COUNTED
from steelyard.config.errors import BadInput
from steelyard.results.checkpoints import has_checkpoint
from steelyard.results.documents import RunUnreadable, began_order, part, read_run_document
from steelyard.results.index import KNOWN_ATTEMPT_SCHEMAS, AttemptIndex
from steelyard.results.layout import RunFiles
from steelyard.results.lines import DamageKind, LineFile
from steelyard.results.lock import is_alive


class SourceUnusable(BadInput):
    """The run that reuse was told to take from is missing, incompatible or still running."""

    def __init__(self, run_id: str, namespace_dir: Path, reason: str) -> None:
        super().__init__(
            f"the run {run_id!r} cannot be reused: {reason}",
            remedy=f"name another run of {namespace_dir}, or leave the name out for the newest",
        )


@dataclass(frozen=True, slots=True)
class PlanShape:
    """What a source must have in common with the run that takes from it."""

    benchmark_id: str
    k: int
    strategy: str
    early_stop: bool


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """Which run was taken, and which newer ones were not."""

    taken: str | None
    """None: nothing to take from; the run starts fresh."""
    passed_over: tuple[tuple[str, str], ...]
    """(run id, reason), newest first."""


def choose_source(
    namespace_dir: Path, wanted: PlanShape, named: str | None = None, *, exclude: str | None = None
) -> SourceChoice:
    """Choose the newest run that is compatible, readable and not running.

    Args:
        namespace_dir: the folder of the request's runs; it need not exist.
        wanted: what must be the same.
        named: the run that must be taken.
        exclude: the new run itself, where its folder is made already.

    Raises:
        SourceUnusable: the named run is missing or cannot be taken.
    """
    if named is not None:
        if named != Path(named).name or named in ("", ".", ".."):
            raise SourceUnusable(named, namespace_dir, "it is not the id of a run")
        root = namespace_dir / named
        reason = (
            _why_not(root, wanted) or _why_future(root)
            if root.is_dir()
            else f"there is no such run in {namespace_dir}"
        )
        if reason is not None:
            raise SourceUnusable(named, namespace_dir, reason)
        return SourceChoice(named, ())
    passed_over: list[tuple[str, str]] = []
    for root in _newest_first(namespace_dir):
        if root.name == exclude:
            continue
        reason = _why_not(root, wanted) or _why_empty(root)
        if reason is None:
            return SourceChoice(root.name, tuple(passed_over))
        passed_over.append((root.name, reason))
    return SourceChoice(None, tuple(passed_over))


def _newest_first(namespace_dir: Path) -> list[Path]:
    try:
        folders = [path for path in namespace_dir.iterdir() if path.is_dir()]
    except OSError:
        return []
    return sorted(folders, key=_age_key, reverse=True)


def _age_key(root: Path) -> tuple[str, int, str]:
    """Order by the recorded start; ids of one second by their number."""
    try:
        document = read_run_document(root)
    except BadInput:
        # The folder's own time, so that a broken run is named among those passed over.
        try:
            created = utc_text(datetime.fromtimestamp(root.stat().st_mtime, UTC))
        except (OSError, ValueError, OverflowError):  # it went meanwhile
            created = ""
        document = {"created_at": created}
    return began_order(document, root.name)


def _why_not(root: Path, wanted: PlanShape) -> str | None:
    try:
        document = read_run_document(root)
    except RunUnreadable as error:
        return error.reason
    plan, benchmark = part(document, "plan"), part(document, "benchmark_info")
    found = {
        "benchmark": benchmark.get("id"),
        "k": plan.get("k"),
        "strategy": plan.get("strategy"),
        "early_stop": plan.get("early_stop"),
    }
    needed = {
        "benchmark": wanted.benchmark_id,
        "k": wanted.k,
        "strategy": wanted.strategy,
        "early_stop": wanted.early_stop,
    }
    differences = [
        f"its {name} is {found[name]!r}, not {needed[name]!r}"
        for name in needed
        if found[name] != needed[name]
    ]
    if differences:
        return "; ".join(differences)
    try:
        return "it is running now" if is_alive(RunFiles(root).lock) else None
    except OSError as error:
        return f"its lock cannot be read: {error.strerror or error}"


def _why_future(root: Path) -> str | None:
    """Records of a newer version are not damage: running it all again would pay twice.

    A run is written by one version, so its first record speaks for all.
    """
    scan = LineFile(RunFiles(root).attempts, known=KNOWN_ATTEMPT_SCHEMAS)
    try:
        next(iter(scan), None)
    except OSError as error:
        return f"its attempts.jsonl cannot be read: {error.strerror or error}"
    damage = scan.damage
    return damage.detail if damage is not None and damage.kind is DamageKind.FUTURE else None


def _why_empty(root: Path) -> str | None:
    """A run that died before it had anything to take would hide an older one that has some."""
    path = RunFiles(root).attempts
    try:
        if _has_ended_any(path):  # mostly its first line: a large run is not read whole for this
            return None
        index = AttemptIndex(path)
    except OSError as error:
        return f"its attempts.jsonl cannot be read: {error.strerror or error}"
    if has_checkpoint(root):
        return None
    if len(index):
        return None if _has_work(index) else f"none of its {len(index)} records holds any work"
    if index.damage is not None and index.damage.kind is DamageKind.FUTURE:
        return index.damage.detail
    return "it has no records" if index.damage is None else f"its records: {index.damage}"


def _has_ended_any(path: Path) -> bool:
    records = LineFile(path, known=KNOWN_ATTEMPT_SCHEMAS)
    return any(
        isinstance(record.get("task_id"), str) and str(record.get("outcome")) in COUNTED
        for _, record in records
    )


def _has_work(index: AttemptIndex) -> bool:
    """True where an attempt ended by itself, or left an answer: not where all was refused."""
    outcomes = index.outcomes()
    if any(outcomes[outcome] for outcome in COUNTED):
        return True
    return any(
        record.get("answer") is not None or record.get("answer_file")
        for record in index.raw_records()
    )
