"""What the board is given of what the ledger holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from steelyard.fix.control_state import Status
from steelyard.fix.ledger import candidates, operations, readings, reviews
from steelyard.fix.ledger.database import Database
from steelyard.fix.ledger.entries import counting_trials, entries, stored_operations
from steelyard.fix.ledger.values import NewReview, Purpose, Slot, TrialEnd
from steelyard.fix.trial_plan import CheckResult, Outcome
from steelyard.fix.verify.measured import Sample
from steelyard.fix.verify.qualification import ReviewState
from tests.fix.ledger.story import (
    BASELINE,
    FIRST,
    RUN,
    completed,
    control,
    measured,
    proposal,
    revision,
    started,
)


def test_only_completed_trials_of_the_search_are_samples(tmp_path: Path) -> None:
    with Database.open(tmp_path) as database:
        lease = started(database)
        kept = measured(database, lease, Slot(BASELINE, 1, 22), 3.0, completed(2.0))
        first = measured(database, lease, Slot(BASELINE, 0, 11), 3.0, completed(1.0))
        failed = TrialEnd(Outcome.FAILED, "host", metrics={"latency_ms": 9.0})
        measured(database, lease, Slot(BASELINE, 2, 33), 3.0, failed)
        held_out = Slot(BASELINE, 0, 99, purpose=Purpose.CONFIRMATION)
        measured(database, lease, held_out, 3.0, completed(5.0))
        found = readings.snapshot(database, RUN, 4.0)
    (entry,) = entries(found, metrics=["latency_ms"], tasks=[], reviews={})
    assert entry.measured["latency_ms"].samples == (Sample(0, 11, 1.0), Sample(1, 22, 2.0))
    assert (entry.completed, entry.review) == (2, ReviewState.MISSING)
    assert [row.trial for row in counting_trials(found)[BASELINE]] == [first, kept]
    (confirmed,) = entries(
        found, metrics=["latency_ms"], tasks=[], reviews={}, purpose=Purpose.CONFIRMATION
    )
    assert confirmed.measured["latency_ms"].values == (5.0,)


def test_a_repetition_without_a_declared_value_is_not_complete(tmp_path: Path) -> None:
    with Database.open(tmp_path) as database:
        lease = started(database)
        measured(database, lease, Slot(BASELINE, 0, 11), 3.0, completed(1.0, tasks=1))
        measured(database, lease, Slot(BASELINE, 1, 22), 3.0, completed(1.0))
        found = readings.snapshot(database, RUN, 4.0)
    (entry,) = entries(found, metrics=["latency_ms"], tasks=["task 0"], reviews={})
    assert entry.completed == 1
    assert entry.tasks["task 0"].values == (0.0,)


def test_what_controls_and_reviews_did_reaches_the_board(tmp_path: Path) -> None:
    with Database.open(tmp_path) as database:
        lease = started(database)
        bad = replace(completed(), checks=(CheckResult("late", True, False),))
        measured(database, lease, Slot(BASELINE, 0, 11), 3.0, bad)
        reviews.record(database, lease, NewReview(BASELINE, "bob", "pass", {"a": 1}), 4.0)
        candidates.reserve(database, lease, proposal(0), 5.0)
        operations.record(
            database,
            RUN,
            control("x", "both"),
            [operations.Exhaust(BASELINE, "dull"), operations.Invalidate(FIRST, "wrong")],
            6.0,
            expected_revision=revision(database),
        )
        found = readings.snapshot(database, RUN, 7.0)
    baseline, first = entries(
        found, metrics=["latency_ms"], tasks=[], reviews={BASELINE: ReviewState.ACCEPTED}
    )
    assert (baseline.is_baseline, baseline.is_at_end, baseline.is_exhausted) == (True, True, True)
    assert (baseline.last, baseline.failed_checks) == (0, ("late",))
    assert (first.round, first.is_invalidated, first.is_at_end) == (1, True, False)
    assert [row.document for row in found.reviews] == [{"a": 1}]
    stored = stored_operations(found.operations)["x"]
    assert (stored.action, stored.status, stored.digest) == ("both", Status.APPLIED, "xx")
