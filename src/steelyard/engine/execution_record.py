"""One execution as a record, alone and joined with what came before it. Pure.

An attempt that is to run again is the record it would have, had it ended here: it is written only
where nothing more of it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steelyard.components.benchmark import Task
from steelyard.components.issues import Issue, IssueCode, Phase
from steelyard.components.often_made import often_made
from steelyard.components.values import Trust
from steelyard.engine.admission import Start
from steelyard.engine.spec import ExecutionResult, SavedWork
from steelyard.models.allowance import NO_CHARGE, Charge
from steelyard.results.records import AttemptRecord, Timing

_WEAKEST_FIRST: Final = (Trust.HOST, Trust.CONTAINED, Trust.ISOLATED)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An attempt that waits for its next execution."""

    record: AttemptRecord
    """What it comes to if there is no next one; all its executions so far are in it."""
    saved: SavedWork | None
    """Given, the agent does not run again: this is scored."""
    ended_s: float
    """When its last execution ended, monotonic."""
    charge: Charge = NO_CHARGE
    """What budgets count for all its executions so far."""


@often_made(frozen=True, slots=True)
class Lasted:
    """When one execution ran."""

    began_s: float
    """Monotonic."""
    began_at: str
    ended_at: str
    """UTC, ISO 8601 with `Z`."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer that lies in a file, because it is too large for a record."""

    path: str
    """Relative to the run directory."""
    sha256: str


def execution_record(
    task: Task,
    start: Start,
    result: ExecutionResult,
    lasted: Lasted,
    identities: tuple[str, str, str],
    *,
    answer_file: KeptAnswer | None = None,
    trajectory: Mapping[str, Any] | None = None,
) -> AttemptRecord:
    """Make the record of one execution, as if it were its attempt's only one.

    Args:
        task: what was worked on.
        start: what admission said.
        result: how it ended.
        lasted: when it ran.
        identities: of generation and of evaluation, and the digest of the task's content.
        answer_file: where its answer lies, if not in the record.
        trajectory: where its steps lie.
    """
    times = result.times
    return AttemptRecord(
        task_id=task.id,
        attempt=start.attempt,
        outcome=result.outcome,
        metrics=result.metrics,
        answer=None if answer_file else result.answer,
        answer_file=None if answer_file is None else answer_file.path,
        answer_sha256=None if answer_file is None else answer_file.sha256,
        issues=result.issues,
        executions=start.execution,
        usage=result.usage,
        timing=Timing(
            queued_s=max(0.0, lasted.began_s - start.queued_since),
            setup_s=times.setup_s,
            agent_s=times.agent_s,
            waited_s=times.waited_s,
            collect_s=times.collect_s,
            evaluate_s=times.evaluate_s,
            started_at=lasted.began_at,
            finished_at=lasted.ended_at,
        ),
        trust=result.trust,
        environment=result.environment,
        trajectory=trajectory,
        artifacts=result.artifacts,
        details=result.details,
        generation=identities[0],
        evaluation=identities[1],
        content=identities[2],
        category=task.category,
        cluster=task.cluster,
        evaluation_mode=None if result.mode is None else result.mode.value,
        checkpoint=result.checkpoint,
    )


def rescored(saved: AttemptRecord, fresh: AttemptRecord) -> AttemptRecord:
    """Join an agent's work of an earlier run with its new score.

    What the agent did, took and cost stays as it was; how it was scored is new. Of the issues
    those of the execution whose work it is; they count as of the present one.
    """
    return replace(
        _scored_again(saved, fresh),
        issues=(
            *(
                replace(issue, execution=fresh.executions)
                for issue in saved.last_issues
                if issue.phase is not Phase.EVALUATE
            ),
            *fresh.issues,
        ),
        usage=saved.usage + fresh.usage,
        trust=_weaker(saved.trust, fresh.trust),
        artifacts=saved.artifacts,
        # Beside the sum, what of it an earlier run has paid.
        reused_from={**(saved.reused_from or {}), "usage": saved.usage.as_json()},
    )


def without_saved(record: AttemptRecord, why: str | None) -> AttemptRecord:
    """Say in a record why saved work was not taken, and was made again; None: there was none."""
    if why is None:
        return record
    issue = Issue.of(IssueCode.REUSE_REFUSED, Phase.SETUP, why)
    return replace(record, issues=(replace(issue, execution=record.executions), *record.issues))


def with_earlier(earlier: Unfinished, fresh: AttemptRecord, queued_since: float) -> AttemptRecord:
    """Join an execution with those before it: their sums, their issues, and the last one's rest.

    Args:
        earlier: what the attempt came to so far.
        fresh: the record of the execution alone.
        queued_since: when its backoff had ended, monotonic.
    """
    before = earlier.record
    joined = fresh
    if earlier.saved is not None:
        joined = replace(
            _scored_again(before, fresh),
            trust=_weaker(before.trust, fresh.trust),
            artifacts=fresh.artifacts or before.artifacts,
            reused_from=before.reused_from,
        )
    return replace(
        joined,
        issues=(*_issues_before(earlier, fresh.executions), *fresh.issues),
        usage=before.usage + fresh.usage,
        timing=replace(
            joined.timing,
            queued_s=before.timing.queued_s + fresh.timing.queued_s,
            backoff_s=before.timing.backoff_s + max(0.0, queued_since - earlier.ended_s),
        ),
    )


def _issues_before(earlier: Unfinished, execution: int) -> tuple[Issue, ...]:
    """Give the issues so far; where the work is scored again, those of the work count on."""
    before = earlier.record
    if earlier.saved is None:
        return before.issues
    counting = {id(issue) for issue in before.last_issues if issue.phase is not Phase.EVALUATE}
    return tuple(
        replace(issue, execution=execution) if id(issue) in counting else issue
        for issue in before.issues
    )


def _scored_again(work: AttemptRecord, score: AttemptRecord) -> AttemptRecord:
    return replace(
        score,
        answer=work.answer,
        answer_file=work.answer_file,
        answer_sha256=work.answer_sha256,
        timing=replace(
            score.timing,
            setup_s=work.timing.setup_s,
            agent_s=work.timing.agent_s,
            waited_s=work.timing.waited_s,
            collect_s=work.timing.collect_s,
        ),
        trajectory=work.trajectory,
    )


def _weaker(one: Trust | None, other: Trust | None) -> Trust | None:
    words = [word for word in (one, other) if word is not None]
    return min(words, key=_WEAKEST_FIRST.index) if words else None
