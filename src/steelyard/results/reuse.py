"""Which earlier run to take work from, and what becomes of each attempt.

The source is only read. Nothing is decided here about running: the driver acts on a `Decision`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from steelyard.components.clock import utc_text
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase, Severity
from steelyard.config.errors import BadInput
from steelyard.config.schema.request import Request
from steelyard.results.documents import RunUnreadable, part, read_run_document
from steelyard.results.files import NO_FAULTS, Faults, write_beside
from steelyard.results.index import KNOWN_ATTEMPT_SCHEMAS, AttemptIndex
from steelyard.results.layout import RunFiles
from steelyard.results.lines import DamageKind, LineFile
from steelyard.results.lock import is_alive
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import MalformedRecord

REUSABLE: Final = frozenset({Outcome.SCORED, Outcome.FAILED_ERROR, Outcome.TIMED_OUT})
"""Outcomes that say something about the agent, and so may be taken over."""

LIMIT_ISSUES: Final = frozenset({IssueCode.AGENT_TIMED_OUT, IssueCode.ATTEMPT_BUDGET})
"""A limit fired: the result stands only under the same limits."""


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


class DecisionKind(StrEnum):
    """What becomes of an attempt."""

    REUSE = "reuse"
    RESCORE = "rescore"
    """The agent's saved work is scored again; the agent does not run."""
    EXECUTE = "execute"


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one attempt, and why."""

    kind: DecisionKind
    reason: str
    record: AttemptRecord | None = None
    """For REUSE what to keep, for RESCORE whose work to score; with `reused_from`."""
    warning: str | None = None
    """What was wrong with saved data that should have been there."""


def fired_limits(request: Request | Mapping[str, Any]) -> dict[str, Any]:
    """Give the settings that matter only where they ended an attempt."""
    data = request.model_dump() if isinstance(request, Request) else request
    execution, budget = part(dict(data), "execution"), part(dict(data), "budget")
    return {
        "run_timeout_seconds": execution.get("run_timeout_seconds"),
        "timeout_multiplier": execution.get("timeout_multiplier", 1.0),
        "attempt_usd": budget.get("attempt_usd"),
        "attempt_tokens": budget.get("attempt_tokens"),
    }


class ReuseSource:
    """An earlier run, opened read-only."""

    def __init__(self, root: Path, *, limits: Mapping[str, Any] | None = None) -> None:
        """Read the source's document and index its records.

        Args:
            root: its run directory.
            limits: `fired_limits` of the present request; None: not compared.

        Raises:
            RunUnreadable: it cannot be read.
        """
        self.root = root
        self.document = read_run_document(root)
        try:
            self._index = AttemptIndex(RunFiles(root).attempts)
        except OSError as error:
            raise RunUnreadable(root, f"its records cannot be read: {error}") from error
        source_request = part(self.document, "request")
        self._has_same_limits = limits is None or dict(limits) == fired_limits(source_request)

    @property
    def run_id(self) -> str:
        """The source's run id."""
        return self.root.name

    @property
    def attempts(self) -> int:
        """How many attempts it has records of."""
        return len(self._index)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the source's file of records."""
        damage = self._index.damage
        if damage is None:
            return ()
        return (f"{self._index.path}: {damage}; what follows is not used",)

    def decide(
        self,
        task_id: str,
        attempt: int,
        generation: str,
        evaluation: str,
        retry_patterns: Sequence[str] | None = None,
        *,
        answer_suffices: bool = False,
        resumes: bool = True,
    ) -> Decision:
        """Say what becomes of an attempt, by the contract's table.

        Args:
            task_id: the task.
            attempt: counted from 1.
            generation: the present generation identity.
            evaluation: the present evaluation identity.
            retry_patterns: ERRORs whose message or code matches one are executed again.
            answer_suffices: whether scoring needs the agent's answer and nothing else, so that
                a record holds all that scoring takes.
            resumes: False where an attempt whose scoring failed is to run whole again.
        """
        try:
            saved = self._index.record(task_id, attempt)
        except (MalformedRecord, OSError) as error:
            return _execute("its record cannot be used", f"{self._name(task_id, attempt)}: {error}")
        if saved is None:
            return self._missing(task_id, attempt)
        if saved.generation != generation:
            return _execute("what the agent was asked has changed")
        broken = self._broken_file(saved)
        lost = f"{self._name(task_id, attempt)}: {broken}"
        fatal = [issue for issue in saved.issues if issue.severity is Severity.FATAL]
        if fatal or saved.outcome is Outcome.FAILED_FATAL:
            only_scoring = all(issue.phase is Phase.EVALUATE for issue in fatal)
            if fatal and only_scoring and answer_suffices and resumes:
                if broken is not None:
                    return _execute("a file of it is gone", lost)
                reason = "only its scoring failed, and its answer is kept"
                return Decision(DecisionKind.RESCORE, reason, self._taken(saved))
            return _execute(f"it ended FATAL{f': {fatal[0].code}' if fatal else ''}")
        if saved.outcome not in REUSABLE:
            return _execute(f"it did not end by itself: {saved.outcome}")
        matching = _matching_error(saved.issues, retry_patterns or ())
        if matching is not None:
            return _execute(f"its ERROR matches a retry pattern: {matching.code}")
        if not self._has_same_limits and _met_a_limit(saved):
            return _execute("a limit ended it, and the limits have changed")
        if broken is not None:
            return _execute("a file of it is gone", lost)
        if saved.evaluation == evaluation:
            reason = "nothing that matters has changed"
            return Decision(DecisionKind.REUSE, reason, self._taken(saved))
        if saved.outcome is not Outcome.SCORED:
            reason = "how it is scored has changed, and it ended before it could be scored"
            record = replace(self._taken(saved), evaluation=evaluation)
            return Decision(DecisionKind.REUSE, reason, record)
        if answer_suffices:
            reason = "how it is scored has changed, and its answer is kept"
            return Decision(DecisionKind.RESCORE, reason, self._taken(saved))
        return _execute("how it is scored has changed, and its scoring inputs were not kept")

    def answer_of(self, record: AttemptRecord) -> str | None:
        """The answer of a record, from its file where it is large.

        Raises:
            OSError: the file cannot be read.
        """
        if record.answer_file is None:
            return record.answer
        return (self.root / record.answer_file).read_bytes().decode("utf-8", "replace")

    def carry_files(
        self, record: AttemptRecord, target: Path, *, faults: Faults = NO_FAULTS
    ) -> None:
        """Copy what lies beside a record into the new run, at the same relative paths.

        Raises:
            OSError: a file cannot be read.
            StorageFailed: one cannot be written.
        """
        for relative in _files_of(record):
            write_beside(target, relative, (self.root / relative).read_bytes(), faults)

    def _missing(self, task_id: str, attempt: int) -> Decision:
        damage = self._index.damage
        if damage is None:
            return _execute(f"{self.run_id} has no record of it")
        return _execute(
            f"{self.run_id} has no readable record of it",
            f"{self._name(task_id, attempt)}: its record may be behind {damage}",
        )

    def _name(self, task_id: str, attempt: int) -> str:
        return f"task {task_id!r}, attempt {attempt}, in {self.run_id}"

    def _broken_file(self, saved: AttemptRecord) -> str | None:
        try:
            return self._changed_file(saved)
        except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
            return f"a file of it cannot be read: {error}"

    def _changed_file(self, saved: AttemptRecord) -> str | None:
        for relative in _files_of(saved):
            path = self.root / relative
            if not path.resolve().is_relative_to(self.root.resolve()):
                return f"its file {relative!r} leads out of the run directory"
            if not path.is_file():
                return f"its file {relative!r} is missing"
        trajectory = saved.trajectory or {}
        if trajectory.get("path") and trajectory.get("sha256"):
            data = (self.root / str(trajectory["path"])).read_bytes()
            if hashlib.sha256(data).hexdigest() != trajectory["sha256"]:
                return f"its file {trajectory['path']!r} has changed since it was written"
        return None

    def _taken(self, saved: AttemptRecord) -> AttemptRecord:
        origin = saved.reused_from or {}
        return replace(
            saved,
            reused_from={
                "run_id": origin.get("run_id", self.run_id),
                "path": origin.get("path", str(self.root)),
                "cost_usd": saved.usage.cost_usd,
            },
        )


def _newest_first(namespace_dir: Path) -> list[Path]:
    try:
        folders = [path for path in namespace_dir.iterdir() if path.is_dir()]
    except OSError:
        return []
    return sorted(folders, key=_age_key, reverse=True)


def _age_key(root: Path) -> tuple[str, int, str]:
    """Order by the recorded start; ids of one second by their number."""
    try:
        created = str(read_run_document(root).get("created_at", ""))
    except BadInput:
        # The folder's own time, so that a broken run is named among those passed over.
        created = utc_text(datetime.fromtimestamp(root.stat().st_mtime, UTC))
    base, _, number = root.name.partition("-")
    return created, int(number) if number.isdecimal() else 1, base


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
        return f"its records cannot be read: {error.strerror or error}"
    damage = scan.damage
    return damage.detail if damage is not None and damage.kind is DamageKind.FUTURE else None


def _why_empty(root: Path) -> str | None:
    """A run that died before its first record would hide an older one that has some."""
    path = RunFiles(root).attempts
    try:
        index = AttemptIndex(path)
    except OSError as error:
        return f"its records cannot be read: {error.strerror or error}"
    if len(index):
        return None
    if index.damage is not None and index.damage.kind is DamageKind.FUTURE:
        return index.damage.detail
    return "it has no records" if index.damage is None else f"its records: {index.damage}"


def _matching_error(issues: Sequence[Issue], patterns: Sequence[str]) -> Issue | None:
    compiled = [re.compile(pattern) for pattern in patterns]
    for issue in issues:
        if issue.severity is Severity.ERROR and any(
            regex.search(issue.message) or regex.search(issue.code.value) for regex in compiled
        ):
            return issue
    return None


def _met_a_limit(saved: AttemptRecord) -> bool:
    return saved.outcome is Outcome.TIMED_OUT or any(i.code in LIMIT_ISSUES for i in saved.issues)


def _files_of(record: AttemptRecord) -> list[str]:
    trajectory = (record.trajectory or {}).get("path")
    return [str(path) for path in (record.answer_file, trajectory) if path is not None]


def _execute(reason: str, warning: str | None = None) -> Decision:
    return Decision(DecisionKind.EXECUTE, reason, None, warning)
