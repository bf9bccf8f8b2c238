"""What becomes of each attempt of an earlier run: taken, scored again, or executed.

The source is only read. Nothing is decided here about running: the driver acts on a `Decision`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from steelyard.components.issue_patterns import IssuePatterns
from steelyard.components.issues import IssueCode, Outcome, Phase, Severity
from steelyard.config.errors import Fault
from steelyard.config.schema.request import Request
from steelyard.results.checkpoints import (
    DROPPED,
    Checkpoint,
    CheckpointDamaged,
    carry_checkpoint,
    missing_input,
    read_checkpoint,
    verify_inputs,
)
from steelyard.results.documents import RunUnreadable, part, read_run_document
from steelyard.results.files import NO_FAULTS, Faults, write_beside
from steelyard.results.index import AttemptIndex
from steelyard.results.kept_artifacts import carry_artifacts, changed_artifact
from steelyard.results.kept_files import is_kept_of
from steelyard.results.layout import RunFiles
from steelyard.results.plain_files import MAX_KEPT_FILE_BYTES, read_plain, sha256_of
from steelyard.results.real_paths import real_path
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import MalformedRecord
from steelyard.results.rescoring import NO_RESCORING, TakenToScore
from steelyard.results.rescoring import Rescoring as Rescoring
from steelyard.results.reuse_choice import PlanShape as PlanShape
from steelyard.results.reuse_choice import SourceChoice as SourceChoice
from steelyard.results.reuse_choice import SourceUnusable as SourceUnusable
from steelyard.results.reuse_choice import choose_source as choose_source

REUSABLE: Final = frozenset({Outcome.SCORED, Outcome.FAILED_ERROR, Outcome.TIMED_OUT})
"""Outcomes that say something about the agent, and so may be taken over."""

ASKED_ANEW: Final = "what the agent was asked has changed"
"""Why an attempt is executed whose generation identity is another."""

LIMIT_ISSUES: Final = frozenset({IssueCode.AGENT_TIMED_OUT, IssueCode.ATTEMPT_BUDGET})
"""A limit fired: the result stands only under the same limits."""


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
    checkpoint: Checkpoint | None = None
    """For RESCORE, where the record alone does not hold what scoring takes."""


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


class KeptFileChanged(Fault):
    """A file beside a record is not what was written; names it."""


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
        self._real_root = os.path.realpath(root) + os.sep
        self.document = read_run_document(root)
        try:
            self._index = AttemptIndex(RunFiles(root).attempts)
        except OSError as error:
            raise RunUnreadable(
                root, f"its attempts.jsonl cannot be read: {error.strerror or error}"
            ) from error
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
        rescoring: TakenToScore = NO_RESCORING,
    ) -> Decision:
        """Say what becomes of an attempt, by the contract's table.

        Args:
            task_id: the task.
            attempt: counted from 1.
            generation: the present generation identity.
            evaluation: the present evaluation identity.
            retry_patterns: ERRORs whose message or code matches one are executed again.
            rescoring: what scoring takes of saved work.
        """
        try:
            saved = self._index.record(task_id, attempt)
        except (MalformedRecord, OSError) as error:
            return _execute("its record cannot be used", f"{self._name(task_id, attempt)}: {error}")
        if saved is None:
            pending = self._pending(task_id, attempt, generation, retry_patterns, rescoring)
            return pending or self._missing(task_id, attempt)
        is_same = saved.generation == generation
        if not is_same and (saved.generation is not None or saved.outcome in REUSABLE):
            return _execute(ASKED_ANEW)  # without an identity: it never began, or was lost
        broken = self._broken_file(saved)
        lost = f"{self._name(task_id, attempt)}: {broken}"
        fatal = [issue for issue in saved.last_issues if issue.severity is Severity.FATAL]
        if fatal or saved.outcome is Outcome.FAILED_FATAL:
            scoring_failed = all(i.phase is Phase.EVALUATE for i in fatal)
            if fatal and is_same and rescoring.resumes and scoring_failed:
                again = self._again(saved, "only its scoring failed", rescoring, broken)
                if again is not None:
                    return again
            return _execute(f"it ended FATAL{f': {fatal[0].code}' if fatal else ''}")
        if saved.outcome not in REUSABLE:
            pending = self._pending(task_id, attempt, generation, retry_patterns, rescoring)
            return pending or _execute(f"it did not end by itself: {saved.outcome}")
        if (matched := _to_be_retried(saved, retry_patterns)) is not None:
            return matched
        if not self._has_same_limits and _met_a_limit(saved):
            why = "a limit ended it, and the limits have changed"
            if rescoring.resumes and _met_it_in_scoring(saved):
                return self._again(saved, why, rescoring, broken) or _execute(why)
            return _execute(why)
        if broken is not None:
            return _execute("a file of it is gone", lost)
        if saved.evaluation == evaluation:
            reason = "nothing that matters has changed"
            return Decision(DecisionKind.REUSE, reason, self._taken(saved))
        if saved.outcome is Outcome.TIMED_OUT and rescoring.scores_timed_out:
            return _execute("how it is scored has changed: what it had done is to be scored now")
        if saved.outcome is not Outcome.SCORED:
            reason = "how it is scored has changed, and it ended before it could be scored"
            record = replace(self._taken(saved), evaluation=evaluation)
            return Decision(DecisionKind.REUSE, reason, record)
        again = self._again(saved, "how it is scored has changed", rescoring, broken)
        return again or _execute(
            "how it is scored has changed, and its scoring inputs were not kept"
        )

    def spent_on(self, task_id: str, attempt: int, generation: str) -> AttemptRecord | None:
        """Give what was spent on an attempt that a sibling has made needless, as its record.

        None where that is nothing. Of the rest nothing is kept: it says nothing any more.
        """
        try:
            saved = self._index.record(task_id, attempt)
        except (MalformedRecord, OSError):
            return None
        if saved is None or saved.generation != generation or not saved.executions:
            return None
        return replace(
            self._taken(saved),
            outcome=Outcome.SKIPPED_PASSED,
            metrics={},
            answer=None,
            answer_file=None,
            answer_sha256=None,
            trajectory=None,
            artifacts=(),
            details={},
            checkpoint=None,
        )

    def _again(
        self, saved: AttemptRecord, why: str, rescoring: TakenToScore, broken: str | None
    ) -> Decision | None:
        """Say how a recorded attempt is scored again; None where what it takes was not kept."""
        name = self._name(saved.task_id, saved.attempt)
        is_kept = rescoring.answer_suffices or saved.checkpoint is not None
        if is_kept and broken is not None:
            return _execute("a file of it is gone", f"{name}: {broken}")
        if rescoring.answer_suffices:
            reason = f"{why}, and its answer is kept"
            return Decision(DecisionKind.RESCORE, reason, self._taken(saved))
        if saved.checkpoint is None or not rescoring.from_checkpoint:
            return None
        digest = str(saved.checkpoint.get("sha256"))
        try:
            found = read_checkpoint(self.root, saved.task_id, saved.attempt, sha256=digest)
            if found is None:
                raise CheckpointDamaged("its checkpoint is missing")
            self._check_inputs(found, rescoring)
        except CheckpointDamaged as error:
            return _execute(f"{why}, and what its scoring takes is damaged", f"{name}: {error}")
        if found.mode == DROPPED:
            return None
        reason = f"{why}, and all that scoring takes is kept"
        return Decision(DecisionKind.RESCORE, reason, self._taken(saved), checkpoint=found)

    def _pending(
        self,
        task_id: str,
        attempt: int,
        generation: str,
        retry_patterns: Sequence[str] | None,
        rescoring: TakenToScore,
    ) -> Decision | None:
        """Say what becomes of an attempt whose agent was done and whose score is not recorded.

        Its checkpoint may be that of an execution which was being replaced by a retry.
        """
        if not rescoring.resumes:
            return None
        try:
            found = read_checkpoint(self.root, task_id, attempt)
            if found is None or found.mode == DROPPED or not rescoring.from_checkpoint:
                return None
            if found.generation != generation:
                return _execute(ASKED_ANEW)
            self._check_inputs(found, rescoring)
        except CheckpointDamaged as error:
            warning = f"{self._name(task_id, attempt)}: {error}"
            return _execute("its checkpoint cannot be used", warning)
        record = _pending_record(found)
        if (matched := _to_be_retried(record, retry_patterns)) is not None:
            return matched
        if not self._has_same_limits and _met_a_limit(record):
            return _execute("a limit ended it, and the limits have changed")
        broken = self._broken_file(record)
        if broken is not None:
            return _execute("a file of it is gone", f"{self._name(task_id, attempt)}: {broken}")
        reason = "its agent was done, and its scoring is pending"
        return Decision(DecisionKind.RESCORE, reason, self._taken(record), checkpoint=found)

    def _check_inputs(self, found: Checkpoint, rescoring: TakenToScore) -> None:
        missing = missing_input(self.root, found)
        if missing is not None:
            raise CheckpointDamaged(missing)
        if rescoring.is_thorough:
            verify_inputs(self.root, found)

    def answer_of(self, record: AttemptRecord) -> str | None:
        """The answer of a record, from its file where it is large.

        Raises:
            OSError: the file cannot be read.
            KeptFileChanged: it is not what was written.
        """
        if record.answer_file is None:
            return record.answer
        data = self._file_of(record.answer_file, record.answer_sha256)
        return data.decode("utf-8", "replace")

    def carry_files(
        self, record: AttemptRecord, target: Path, *, faults: Faults = NO_FAULTS
    ) -> AttemptRecord:
        """Copy what lies beside a record into the new run, at the same relative paths.

        Returns:
            The record, without its checkpoint where that is damaged: a changed score will then need
            the agent.

        Raises:
            OSError: a file cannot be read.
            ArtifactChanged: an artifact is not what was kept.
            KeptFileChanged: an answer or a trajectory is not.
            StorageFailed: one cannot be written.
        """
        for relative, digest in _files_of(record):
            write_beside(target, relative, self._file_of(relative, digest), faults)
        if record.artifacts:
            carry_artifacts(self.root, record, target, faults)
        if record.checkpoint is None:
            return record
        try:
            digest = str(record.checkpoint.get("sha256"))
            found = read_checkpoint(self.root, record.task_id, record.attempt, sha256=digest)
            if found is not None:
                carry_checkpoint(self.root, found, target, faults)
                return record
        except CheckpointDamaged:
            pass
        return replace(record, checkpoint=None)

    def _file_of(self, relative: str, digest: str | None) -> bytes:
        data = read_plain(self.root / relative, MAX_KEPT_FILE_BYTES)
        if digest is not None and hashlib.sha256(data).hexdigest() != digest:
            raise KeptFileChanged(f"its file {relative!r} has changed since it was written")
        return data

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
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle
            return f"a file of it cannot be read: {error}"

    def _changed_file(self, saved: AttemptRecord) -> str | None:
        for relative, digest in _files_of(saved):
            path = self.root / relative
            if not is_kept_of(relative, saved.task_id, saved.attempt):
                return f"its file {relative[:200]!r} leads out of its attempt's folder"
            try:
                is_inside = real_path(path).startswith(self._real_root)
            except (FileNotFoundError, NotADirectoryError):
                return f"its file {relative!r} is missing"
            if not is_inside:
                return f"its file {relative!r} leads out of the run directory"
            if digest is None and not path.is_file():
                return f"its file {relative!r} is missing"
            if digest is not None and sha256_of(path, MAX_KEPT_FILE_BYTES) != digest:
                return f"its file {relative!r} has changed since it was written"
        return changed_artifact(self.root, saved) if saved.artifacts else None

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


def _to_be_retried(saved: AttemptRecord, patterns: Sequence[str] | None) -> Decision | None:
    matching = IssuePatterns.of(patterns or ()).first_match(saved.last_issues)
    if matching is None:
        return None
    return _execute(f"its ERROR matches a retry pattern: {matching.code}")


def _met_a_limit(saved: AttemptRecord) -> bool:
    issues = saved.last_issues
    return saved.outcome is Outcome.TIMED_OUT or any(i.code in LIMIT_ISSUES for i in issues)


def _met_it_in_scoring(saved: AttemptRecord) -> bool:
    """True where the agent had ended well within its limits: its judge was left too little."""
    issues = [issue for issue in saved.last_issues if issue.severity is not Severity.WARNING]
    return all(issue.phase is Phase.EVALUATE for issue in issues)


def _pending_record(found: Checkpoint) -> AttemptRecord:
    """Give a checkpoint as the record of an attempt that was cut off before it was scored."""
    return AttemptRecord(
        task_id=found.task_id,
        attempt=found.attempt,
        outcome=Outcome.CANCELLED,
        answer=found.answer,
        issues=found.issues,
        executions=found.execution,
        usage=found.usage,
        timing=found.timing,
        trust=found.trust,
        environment=found.environment,
        artifacts=found.artifacts,
        generation=found.generation,
    )


def _files_of(record: AttemptRecord) -> list[tuple[str, str | None]]:
    """Give (path, digest where the record has one) of its answer's and its trajectory's files."""
    trajectory = record.trajectory or {}
    found = (
        (record.answer_file, record.answer_sha256),
        (trajectory.get("path"), trajectory.get("sha256")),
    )
    return [(path, digest) for path, digest in found if path is not None]


def _execute(reason: str, warning: str | None = None) -> Decision:
    return Decision(DecisionKind.EXECUTE, reason, None, warning)
