"""A snapshot as the board, the controls and the reviews take it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.fix.board import Entry
from steelyard.fix.control_state import StoredOperation
from steelyard.fix.ledger.values import (
    CandidateRow,
    CandidateStage,
    OperationRow,
    Purpose,
    Snapshot,
    TrialRow,
)
from steelyard.fix.trial_plan import Outcome
from steelyard.fix.verify.measured import Measured, Sample
from steelyard.fix.verify.qualification import ReviewState


def entries(
    snapshot: Snapshot,
    *,
    metrics: Sequence[str],
    tasks: Sequence[str],
    reviews: Mapping[str, ReviewState],
    purpose: Purpose = Purpose.SEARCH,
) -> tuple[Entry, ...]:
    """Give what a board is worked out from, the baseline first.

    Args:
        snapshot: of the run.
        metrics: the declared ones.
        tasks: the declared ones.
        reviews: what each candidate's review has come to; no word means that there is none.
        purpose: whose trials count. What was held out never mixes with what a search saw.
    """
    counted = counting_trials(snapshot, purpose)
    return tuple(
        _entry(row, counted.get(row.candidate, ()), metrics, tasks, reviews)
        for row in snapshot.candidates
    )


def counting_trials(
    snapshot: Snapshot, purpose: Purpose = Purpose.SEARCH
) -> Mapping[str, tuple[TrialRow, ...]]:
    """Give the trials whose measurements count, by candidate: what a review must name."""
    found: dict[str, list[TrialRow]] = {}
    for trial in snapshot.trials:
        if trial.slot.purpose is purpose and trial.outcome is Outcome.COMPLETED:
            found.setdefault(trial.slot.candidate, []).append(trial)
    return {
        candidate: tuple(sorted(rows, key=lambda row: (row.slot.block or 0, row.slot.repetition)))
        for candidate, rows in found.items()
    }


def stored_operations(rows: Sequence[OperationRow]) -> Mapping[str, StoredOperation]:
    """Give what controls are judged against, by operation id."""
    return {
        row.operation_id: StoredOperation(
            row.operation_id,
            row.digest,
            row.action,
            row.status,
            row.answer,
            row.host_id,
            row.is_retryable,
        )
        for row in rows
    }


def _entry(
    row: CandidateRow,
    trials: Sequence[TrialRow],
    metrics: Sequence[str],
    tasks: Sequence[str],
    reviews: Mapping[str, ReviewState],
) -> Entry:
    whole = [
        trial
        for trial in trials
        if trial.end is not None
        and trial.end.metrics.keys() >= set(metrics)
        and trial.end.tasks.keys() >= set(tasks)
    ]
    failed = {
        check.id: None
        for trial in trials
        if trial.end is not None
        for check in trial.end.checks
        if not check.as_expected
    }
    return Entry(
        candidate=row.candidate,
        parent=row.parent,
        round=row.round,
        measured=_measured(row.candidate, trials, metrics, of_tasks=False),
        completed=len(whole),
        tasks=_measured(row.candidate, trials, tasks, of_tasks=True),
        failed_checks=tuple(failed),
        review=reviews.get(row.candidate, ReviewState.MISSING),
        is_at_end=row.stage is CandidateStage.ENDED,
        is_invalidated=row.invalidated is not None,
        is_exhausted=row.exhausted is not None,
        last=row.last_decision,
    )


def _measured(
    candidate: str, trials: Sequence[TrialRow], names: Sequence[str], *, of_tasks: bool
) -> Mapping[str, Measured]:
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    for trial in trials:
        if trial.end is None:
            continue
        values = trial.end.tasks if of_tasks else trial.end.metrics
        slot = trial.slot
        for name in names:
            if name in values:
                sample = Sample(slot.repetition, slot.seed, values[name], slot.block)
                samples[name].append(sample)
    return {name: Measured(candidate, name, tuple(found)) for name, found in samples.items()}
