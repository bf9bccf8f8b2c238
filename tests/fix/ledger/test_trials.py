"""Trials: paid for before they start, decided once, tried again within the rules."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.fix.ledger import candidates, leases, operations, readings, runs, trials
from steelyard.fix.ledger.database import NAME, Database
from steelyard.fix.ledger.errors import (
    BudgetExhausted,
    MayNotRepeat,
    NotNow,
    OtherContent,
    Unresolved,
)
from steelyard.fix.ledger.values import (
    CandidateEnd,
    Lease,
    Purpose,
    RepeatRules,
    RunStage,
    Sealed,
    Slot,
    TrialEnd,
)
from steelyard.fix.trial_plan import Outcome
from steelyard.results.lock import OwnerIdentity
from tests.fix.ledger.story import (
    BASELINE,
    LIMITS,
    RUN,
    WORKER,
    completed,
    control,
    measured,
    proposal,
    revision,
    started,
)

SLOT = Slot(BASELINE, 0, 11)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path) as opened:
        yield opened


def spent(database: Database, name: str = "max_trials", at: float = 2.0) -> float:
    lines = readings.snapshot(database, RUN, at).budget
    return next(line.spent for line in lines if line.name == name)


def ended(outcome: Outcome) -> TrialEnd:
    return TrialEnd(outcome, "host", reason="why")


def new_candidate(database: Database, lease: Lease, number: int, parent: str = BASELINE) -> str:
    found = candidates.reserve(database, lease, proposal(number, parent), 3.0).candidate.candidate
    candidates.begin_editing(database, lease, found, 3.0)
    candidates.seal(database, lease, found, Sealed(f"tree-{number + 1}", "1" * 64), 3.0)
    return found


def test_what_was_measured_is_read_back_as_it_was(database: Database) -> None:
    lease = started(database)
    end = completed(0.1 + 0.2, tasks=3)
    measured(database, lease, replace(SLOT, seed=2**70, block=4), 3.0, end)
    (trial,) = readings.snapshot(database, RUN, 4.0).trials
    assert trial.end == end
    assert list(trial.end.tasks) == ["task 0", "task 1", "task 2"]
    assert trial.slot == Slot(BASELINE, 0, 2**70, 4, Purpose.SEARCH)
    assert (trial.short, trial.tried, trial.owner) == ("t1", 1, WORKER)


@pytest.mark.parametrize("outcome", sorted(trials.DECIDING))
def test_a_repetition_that_is_decided_is_given_and_not_paid_again(
    outcome: Outcome, database: Database
) -> None:
    lease = started(database)
    trial = measured(database, lease, SLOT, 3.0, ended(outcome))
    again = trials.reserve(database, lease, SLOT, 5.0)
    assert (again.trial.trial, again.is_new, again.is_to_be_run) == (trial, False, False)
    assert spent(database) == 1


def test_a_block_and_a_purpose_have_repetitions_of_their_own(database: Database) -> None:
    lease = started(database)
    for slot in (SLOT, replace(SLOT, block=1), replace(SLOT, purpose=Purpose.CONFIRMATION)):
        measured(database, lease, slot, 3.0, completed())
    assert spent(database) == 3


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.LOST])
def test_an_error_and_a_loss_are_repeated_as_often_as_the_rules_allow(
    outcome: Outcome, database: Database
) -> None:
    lease = started(database)
    measured(database, lease, SLOT, 3.0, ended(outcome))
    measured(database, lease, SLOT, 3.0, ended(outcome))
    with pytest.raises(MayNotRepeat, match="went wrong 2 times: why"):
        trials.reserve(database, lease, SLOT, 5.0)
    more = trials.reserve(database, lease, SLOT, 5.0, rules=RepeatRules(retries=2))
    assert more.trial.tried == 3
    assert spent(database) == 3


def test_a_cancelled_one_is_repeated_only_after_continue(database: Database) -> None:
    lease = started(database)
    measured(database, lease, SLOT, 3.0, ended(Outcome.CANCELLED))
    with pytest.raises(MayNotRepeat, match="--continue"):
        trials.reserve(database, lease, SLOT, 5.0)
    rules = RepeatRules(may_repeat_cancelled=True)
    assert trials.reserve(database, lease, SLOT, 5.0, rules=rules).is_new


def test_one_that_was_launched_and_has_not_ended_is_not_paid_twice(database: Database) -> None:
    lease = started(database)
    trial = trials.reserve(database, lease, SLOT, 3.0, owner=WORKER).trial
    with pytest.raises(Unresolved, match="t1"):
        trials.reserve(database, lease, SLOT, 4.0)
    trials.end(database, lease, trial.trial, ended(Outcome.INCONCLUSIVE), 5.0)
    with pytest.raises(Unresolved, match="fix resolve t1 --lost"):
        trials.reserve(database, lease, SLOT, 6.0)
    assert [one.trial for one in readings.open_trials(database, RUN)] == [trial.trial]
    trials.end(database, lease, trial.trial, ended(Outcome.LOST), 7.0)
    assert trials.reserve(database, lease, SLOT, 8.0).is_new
    assert spent(database) == 2


def test_one_that_was_never_started_goes_on_without_being_paid_again(database: Database) -> None:
    lease = started(database)
    first = trials.reserve(database, lease, SLOT, 3.0)
    again = trials.reserve(database, lease, SLOT, 4.0)
    assert (again.trial.trial, again.is_new, again.is_to_be_run) == (
        first.trial.trial,
        False,
        True,
    )
    other = OwnerIdentity("boot", 1, 9, 9, "here")
    trials.launch(database, lease, first.trial.trial, WORKER, 5.0)
    with pytest.raises(NotNow, match="started before"):
        trials.launch(database, lease, first.trial.trial, other, 6.0)
    taken = trials.launch(database, lease, first.trial.trial, other, 6.0, never_started=True)
    assert (taken.owner, spent(database)) == (other, 1)


def test_an_end_is_recorded_once(database: Database) -> None:
    lease = started(database)
    trial = measured(database, lease, SLOT, 3.0, completed())
    assert trials.end(database, lease, trial, completed(), 9.0).ended_at == 4.0
    with pytest.raises(OtherContent, match="the end of t1"):
        trials.end(database, lease, trial, completed(2.0), 9.0)
    with pytest.raises(OtherContent):
        trials.end(database, lease, trial, ended(Outcome.LOST), 9.0)


def test_what_never_ran_cannot_have_completed(database: Database) -> None:
    lease = started(database)
    trial = trials.reserve(database, lease, SLOT, 3.0).trial.trial
    with pytest.raises(NotNow, match="never launched"):
        trials.end(database, lease, trial, completed(), 4.0)
    trials.end(database, lease, trial, ended(Outcome.CANCELLED), 4.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_never_recorded(value: float, database: Database) -> None:
    lease = started(database)
    trial = trials.reserve(database, lease, SLOT, 3.0, owner=WORKER).trial.trial
    with pytest.raises(ValueError, match="not finite"):
        trials.end(database, lease, trial, completed(value), 4.0)


def test_a_second_completion_is_refused_by_the_file_itself(
    database: Database, tmp_path: Path
) -> None:
    lease = started(database)
    measured(database, lease, SLOT, 3.0, ended(Outcome.ERROR))
    measured(database, lease, SLOT, 3.0, completed())
    with (
        closing(sqlite3.connect(tmp_path / NAME)) as other,
        pytest.raises(sqlite3.IntegrityError, match="UNIQUE"),
    ):
        other.execute("UPDATE trials SET outcome = 'completed'")


def test_another_seed_for_the_same_repetition_is_refused(database: Database) -> None:
    lease = started(database)
    measured(database, lease, SLOT, 3.0, completed())
    with pytest.raises(OtherContent, match="seed"):
        trials.reserve(database, lease, replace(SLOT, seed=12), 5.0)


def test_no_trial_is_launched_beyond_a_limit(database: Database) -> None:
    lease = started(database, limits={**LIMITS, "max_trials": 1})
    measured(database, lease, SLOT, 3.0, completed())
    with pytest.raises(BudgetExhausted, match="max_trials is used up: 1 of 1"):
        trials.reserve(database, lease, Slot(BASELINE, 1, 22), 4.0)
    assert readings.snapshot(database, RUN, 4.0).exhausted == ("max_trials",)


def test_elapsed_time_counts_only_while_the_run_goes_on(database: Database) -> None:
    lease = started(database)  # opened at 2
    runs.set_clock(database, lease, 12.0, is_running=False)
    runs.set_clock(database, lease, 500.0, is_running=True)
    assert spent(database, "max_elapsed_seconds", 510.0) == 20.0
    runs.set_stage(database, lease, RunStage.STOPPED, "asked", 520.0)
    assert spent(database, "max_elapsed_seconds", 900.0) == 30.0
    runs.set_stage(database, lease, RunStage.OPEN, "asked", 1000.0)
    with pytest.raises(BudgetExhausted, match="max_elapsed_seconds"):
        trials.reserve(database, lease, SLOT, 1000.0 + 970.0)


def test_a_clock_that_is_set_back_gives_no_time_back(database: Database) -> None:
    lease = started(database)
    trials.reserve(database, lease, SLOT, 102.0)
    trials.reserve(database, lease, Slot(BASELINE, 1, 1), 50.0)
    assert spent(database, "max_elapsed_seconds", 60.0) == 110.0


def test_a_stopped_run_launches_nothing_and_still_takes_what_was_measured(
    database: Database,
) -> None:
    lease = started(database)
    running = trials.reserve(database, lease, SLOT, 3.0, owner=WORKER).trial.trial
    waiting = trials.reserve(database, lease, Slot(BASELINE, 1, 22), 3.0).trial.trial
    stop = operations.SetStage(RunStage.STOPPED, "asked")
    operations.record(
        database, RUN, control("s", "stop"), [stop], 4.0, expected_revision=revision(database)
    )
    with pytest.raises(NotNow, match="stopped"):
        trials.launch(database, lease, waiting, WORKER, 5.0)
    with pytest.raises(NotNow, match="stopped"):
        trials.reserve(database, lease, Slot(BASELINE, 2, 33), 5.0)
    assert trials.end(database, lease, running, completed(), 6.0).outcome is Outcome.COMPLETED


def test_an_invalid_line_is_not_measured(database: Database) -> None:
    lease = started(database)
    parent = new_candidate(database, lease, 0)
    child = new_candidate(database, lease, 1, parent)
    wrong = operations.Invalidate(parent, "wrong")
    operations.record(
        database, RUN, control("i", "x"), [wrong], 4.0, expected_revision=revision(database)
    )
    for candidate in (parent, child):
        with pytest.raises(NotNow, match="invalid"):
            trials.reserve(database, lease, Slot(candidate, 0, 11), 5.0)
    assert trials.reserve(database, lease, SLOT, 5.0).is_new


def test_a_duplicate_spends_its_slot_and_no_trial(database: Database) -> None:
    lease = started(database)
    found = candidates.reserve(database, lease, proposal(0), 3.0).candidate.candidate
    candidates.begin_editing(database, lease, found, 3.0)
    sealed = candidates.seal(database, lease, found, Sealed("tree-0", "e" * 64), 3.0)
    assert (sealed.ended_as, sealed.duplicate_of) == (CandidateEnd.DUPLICATE, BASELINE)
    with pytest.raises(NotNow):
        trials.reserve(database, lease, Slot(found, 0, 11), 5.0)
    assert (spent(database, "max_candidates"), spent(database)) == (1, 0)


def test_a_trial_costs_at_most_eight_kilobytes_of_the_ledger(
    database: Database, tmp_path: Path
) -> None:
    lease = started(database)
    before = (tmp_path / NAME).stat().st_size
    for repetition in range(16):
        slot = Slot(BASELINE, repetition, repetition)
        measured(database, lease, slot, 3.0, completed(tasks=100 * repetition))
    grown = (tmp_path / NAME).stat().st_size - before
    assert grown / 16 <= 8 * 1024
    found = readings.snapshot(database, RUN, 9.0).trials[-1]
    assert len(found.end.tasks if found.end else ()) == 1500


def test_evidence_that_a_trial_rests_on_is_named(database: Database) -> None:
    lease = started(database)
    output = database.evidence.put(b"output")
    stray = database.evidence.put(b"stray")
    end = replace(completed(tasks=900), detail={"output": output})
    measured(database, lease, SLOT, 3.0, end)
    named = readings.named_evidence(database)
    assert output in named
    assert set(database.evidence.digests()) - named == {stray}


def test_a_run_that_is_deleted_leaves_nothing_and_its_names_are_not_given_again(
    database: Database,
) -> None:
    lease = started(database)
    trial = trials.reserve(database, lease, SLOT, 3.0, owner=WORKER).trial.trial
    with pytest.raises(Unresolved):
        runs.delete(database, lease, 4.0)
    trials.end(database, lease, trial, completed(), 4.0)
    new_candidate(database, lease, 0)
    runs.delete(database, lease, 5.0)
    assert readings.runs(database) == ()
    assert readings.candidates(database) == ()
    lease = started(database)
    assert leases.acquire(database, RUN, OwnerIdentity.of_this_process(), 6.0).token == lease.token
    assert [row.short for row in readings.runs(database)] == ["r2"]
    assert [row.short for row in readings.candidates(database)] == ["c3"]
