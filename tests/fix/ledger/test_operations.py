"""Controls: an id is taken once, with all it changes or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.fix.control_state import Status
from steelyard.fix.ledger import candidates, operations, readings, runs
from steelyard.fix.ledger.database import Database
from steelyard.fix.ledger.errors import (
    BudgetExhausted,
    NoSuchRow,
    NotNow,
    OperationIdReused,
    OtherContent,
    RevisionConflict,
    TooLarge,
)
from steelyard.fix.ledger.values import DecisionRecord, Lease, RunStage
from tests.fix.ledger.story import (
    BASELINE,
    FIRST,
    LIMITS,
    RUN,
    control,
    new_run,
    proposal,
    revision,
    started,
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path) as opened:
        yield opened


def send(
    database: Database,
    new: operations.NewOperation,
    *effects: operations.Effect,
    expected: int | None = None,
    again: bool = False,
) -> operations.Recorded:
    at = revision(database) if expected is None else expected
    return operations.record(database, RUN, new, effects, 5.0, expected_revision=at, again=again)


def test_the_same_request_is_answered_before_its_revision_is_compared(database: Database) -> None:
    started(database)
    policy = operations.SetPolicy({"strategy": "argmax"})
    first = send(database, control("p", "policy"), policy)
    again = send(database, control("p", "policy"), policy, expected=0)
    assert (first.is_new, again.is_new) == (True, False)
    assert again.operation == first.operation
    run = readings.snapshot(database, RUN, 6.0).run
    assert (run.policy, run.policy_revision) == ({"strategy": "argmax"}, 1)


def test_an_id_with_other_contents_and_an_old_revision_are_refused(database: Database) -> None:
    started(database)
    send(database, control("p", "policy"))
    before = readings.snapshot(database, RUN, 6.0)
    with pytest.raises(OperationIdReused):
        send(database, replace(control("p", "policy"), digest="other"))
    with pytest.raises(RevisionConflict, match="it changed meanwhile"):
        send(database, control("q", "policy"), expected=before.run.revision - 1)
    assert readings.snapshot(database, RUN, 6.0) == before


def test_an_operation_whose_effect_is_refused_changes_nothing(database: Database) -> None:
    started(database, limits={**LIMITS, "max_candidates": 0})
    before = readings.snapshot(database, RUN, 6.0)
    with pytest.raises(BudgetExhausted, match="max_candidates"):
        send(
            database,
            control("a", "ack"),
            operations.SetPolicy({"strategy": "argmax"}),
            operations.Expand(proposal(0, origin="e")),
        )
    with pytest.raises(NoSuchRow):
        send(database, control("x", "exhaust"), operations.Exhaust("nobody", "so"))
    assert readings.snapshot(database, RUN, 6.0) == before


def test_an_expansion_reserves_one_candidate_however_often_it_is_acknowledged(
    database: Database,
) -> None:
    started(database)
    send(database, control("e", "expand", Status.QUEUED))
    expand = operations.Expand(proposal(0, origin="e"))
    failed = operations.Settle("e", Status.FAILED, host_id="host", is_retryable=True)
    first = send(database, control("a", "ack"), expand, failed)
    done = operations.Settle("e", Status.APPLIED)
    second = send(database, control("b", "ack"), expand, done)
    third = send(database, control("a", "ack"), expand, done, again=True)
    answers = [one.operation.answer["candidate_id"] for one in (first, second, third)]
    assert answers == [FIRST] * 3
    found = readings.snapshot(database, RUN, 6.0)
    assert len(found.candidates) == 2
    target = found.operations[0]
    assert (target.status, target.host_id, target.is_retryable) == (Status.APPLIED, "host", False)
    assert target.answer["candidate_id"] == FIRST


def test_a_queued_operation_goes_on_later_with_what_it_changes(database: Database) -> None:
    started(database)
    send(database, control("l", "select", Status.QUEUED))
    settled = operations.Settle("l", Status.APPLIED, answer={"branch": "fix"})
    for _ in range(2):
        found = operations.settle(database, RUN, settled, [operations.Select(BASELINE)], 7.0)
        assert (found.status, found.answer) == (Status.APPLIED, {"branch": "fix"})
    assert readings.snapshot(database, RUN, 8.0).run.selected == BASELINE
    with pytest.raises(NoSuchRow):
        operations.settle(database, RUN, operations.Settle("z", Status.FAILED), [], 7.0)


def test_a_run_that_is_over_is_not_taken_up_again(database: Database) -> None:
    started(database)
    send(database, control("i", "invalidate"), operations.SetStage(RunStage.OVER, "baseline"))
    with pytest.raises(NotNow):
        send(database, control("c", "continue"), operations.SetStage(RunStage.OPEN, "asked"))


def test_a_control_that_is_too_large_is_refused(database: Database) -> None:
    started(database)
    with pytest.raises(TooLarge, match="the control"):
        send(database, replace(control("d", "directive"), document={"text": "x" * 70_000}))


def lease_and_first(database: Database) -> tuple[Lease, candidates.ReservedCandidate]:
    lease = started(database)
    return lease, candidates.reserve(database, lease, proposal(0), 3.0)


def test_a_proposal_that_was_cut_off_goes_on_though_its_policy_would_choose_anew(
    database: Database,
) -> None:
    lease, first = lease_and_first(database)
    later = replace(proposal(1, FIRST), hypothesis="idea 0")
    again = candidates.reserve(database, lease, later, 4.0)
    assert (again.candidate, again.is_new) == (first.candidate, False)
    candidates.begin_editing(database, lease, FIRST, 5.0)
    assert candidates.reserve(database, lease, later, 6.0).is_new


def test_a_decision_on_an_older_state_is_refused(database: Database) -> None:
    lease, _ = lease_and_first(database)
    with pytest.raises(RevisionConflict):
        candidates.reserve(database, lease, proposal(0, hypothesis="more"), 4.0)
    with pytest.raises(RevisionConflict):
        candidates.reserve(database, lease, proposal(1), 4.0, expected_revision=1)
    assert [one.number for one in readings.decisions(database, RUN)] == [0]


def test_a_decision_of_any_size_is_read_back(database: Database) -> None:
    lease = started(database)
    document = {"eligible": [{"candidate": f"c{number}", "z": 1, "a": 2} for number in range(300)]}
    record = DecisionRecord(0, BASELINE, document)
    candidates.reserve(database, lease, proposal(0, decision=record), 4.0)
    assert readings.decisions(database, RUN) == (record,)


def test_rounds_follow_each_other_unless_one_is_named(database: Database) -> None:
    lease = started(database)
    for number, named in enumerate((None, None, 1)):
        candidates.reserve(database, lease, proposal(number, round=named), 4.0)
    found = readings.snapshot(database, RUN, 5.0).candidates
    assert [one.round for one in found] == [0, 1, 2, 1]
    assert found[0].last_decision == 2


def test_a_start_that_was_cut_off_goes_on_and_a_finished_one_is_another_run(
    database: Database,
) -> None:
    first = runs.start(database, new_run(), 1.0)
    assert runs.start(database, new_run(run="6" * 32), 2.0) == first
    started(database)
    assert runs.start(database, new_run(run="6" * 32), 3.0).short == "r2"


def test_a_long_id_is_one_run_only(database: Database) -> None:
    started(database)
    assert runs.start(database, new_run(), 9.0).stage is RunStage.OPEN
    with pytest.raises(OtherContent):
        runs.start(database, new_run(digest="0" * 64), 9.0)


def test_what_happened_is_told_in_order(database: Database) -> None:
    lease, _ = lease_and_first(database)
    candidates.begin_editing(database, lease, FIRST, 5.0)
    found = readings.events(database, RUN)
    assert [one.kind for one in found] == ["started", "stage", "candidate", "editing"]
    assert readings.events(database, RUN, after=found[2].place) == found[3:]
