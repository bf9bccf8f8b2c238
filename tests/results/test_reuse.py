"""Which run is taken from, and what becomes of each attempt: the contract's table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.config.errors import BadInput
from steelyard.results.documents import RunUnreadable
from steelyard.results.files import write_beside
from steelyard.results.lines import encode
from steelyard.results.records import AttemptRecord
from steelyard.results.reuse import (
    DecisionKind,
    PlanShape,
    ReuseSource,
    SourceUnusable,
    choose_source,
    fired_limits,
)
from tests.results.workload import DOCUMENT, EVALUATION, FixedClock, a_record, a_run, generation
from tests.results.written import write_run

SHAPE = PlanShape("toy", 2, "avg", False)


def at(minute: int) -> FixedClock:
    return FixedClock(datetime(2026, 8, 6, 12, minute, tzinfo=UTC))


def source_of(tmp_path: Path, *records: AttemptRecord, **options: Any) -> ReuseSource:
    return ReuseSource(write_run(tmp_path, records, **options).root)


def decide(source: ReuseSource, task_id: str = "plain", **changes: Any) -> tuple[str, str]:
    wanted = {"generation": generation(task_id), "evaluation": EVALUATION, **changes}
    decision = source.decide(task_id, 1, **wanted)
    return decision.kind.value, decision.reason


# -- the source --------------------------------------------------------------------------------


def test_the_newest_run_is_taken(tmp_path: Path) -> None:
    for minute, name in ((1, "c"), (2, "a"), (3, "b")):
        write_run(tmp_path, [a_record()], clock=at(minute), run_id=name)
    assert choose_source(tmp_path / "toy", SHAPE).taken == "b"


def test_runs_of_one_second_are_ordered_by_their_number(tmp_path: Path) -> None:
    for _ in range(11):
        folder = write_run(tmp_path, [a_record()])
    assert folder.run_id.endswith("-11")
    assert choose_source(tmp_path / "toy", SHAPE).taken == folder.run_id


def test_what_was_passed_over_is_said_with_the_reason(tmp_path: Path) -> None:
    write_run(tmp_path, [a_record()], run_id="good", clock=at(0))
    other = {**DOCUMENT, "plan": {"k": 3, "strategy": "avg", "early_stop": False}}
    write_run(tmp_path, [a_record()], run_id="other-k", document=other, clock=at(1))
    write_run(tmp_path, [], run_id="empty", clock=at(2))
    held = write_run(tmp_path, [a_record()], run_id="running", clock=at(3), keep_alive=True)
    broken = write_run(tmp_path, [a_record()], run_id="broken", clock=at(4))
    broken.files.document.write_bytes(b"{")
    future = write_run(tmp_path, [a_record()], run_id="future", clock=at(5))
    future.files.document.write_bytes(
        orjson.dumps({**orjson.loads(future.files.document.read_bytes()), "schema": "run/2"})
    )
    choice = choose_source(tmp_path / "toy", SHAPE, exclude="new")
    held.lock.release()
    assert choice.taken == "good"
    reasons = dict(choice.passed_over)
    assert "its k is 3, not 2" in reasons["other-k"]
    assert "no records" in reasons["empty"]
    assert "running" in reasons["running"]
    assert "not JSON" in reasons["broken"]
    assert "run/2 is newer" in reasons["future"]


def test_without_runs_nothing_is_taken(tmp_path: Path) -> None:
    assert choose_source(tmp_path / "not-there", SHAPE).taken is None


def test_a_run_that_was_refused_hides_no_older_one_with_work(tmp_path: Path) -> None:
    write_run(tmp_path, [a_record()], run_id="20260801_000000")
    cut = a_record("t1", outcome=Outcome.CANCELLED, metrics={}, answer=None)
    refused = a_record("t2", outcome=Outcome.FAILED_FATAL, metrics={}, answer=None)
    write_run(tmp_path, [cut, refused], run_id="20260801_000001")
    choice = choose_source(tmp_path / "toy", SHAPE)
    assert choice.taken == "20260801_000000"
    said = "none of its 2 records holds any work"
    assert choice.passed_over == (("20260801_000001", said),)
    crashed = a_record("t2", outcome=Outcome.FAILED_FATAL, metrics={}, answer="42")
    write_run(tmp_path, [crashed], run_id="20260801_000002")
    assert choose_source(tmp_path / "toy", SHAPE).taken == "20260801_000002"


def test_the_new_run_itself_is_no_source(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record()])
    assert choose_source(tmp_path / "toy", SHAPE, exclude=folder.run_id).taken is None


@pytest.mark.parametrize(
    ("shape", "named", "reason"),
    [
        (SHAPE, "missing", "no such run"),
        (PlanShape("other", 2, "avg", False), "mine", "benchmark is 'toy'"),
        (PlanShape("toy", 2, "pass", False), "mine", "strategy is 'avg'"),
        (PlanShape("toy", 2, "avg", True), "mine", "early_stop is False"),
        (SHAPE, "../toy/mine", "not the id of a run"),
        (SHAPE, "..", "not the id of a run"),
    ],
)
def test_a_named_source_that_cannot_be_taken_is_bad_input(
    shape: PlanShape, named: str, reason: str, tmp_path: Path
) -> None:
    write_run(tmp_path, [a_record()], run_id="mine")
    with pytest.raises(SourceUnusable, match=reason) as caught:
        choose_source(tmp_path / "toy", shape, named)
    assert isinstance(caught.value, BadInput)
    assert caught.value.exit_status == 2


def test_a_named_source_is_taken_though_it_is_not_the_newest(tmp_path: Path) -> None:
    write_run(tmp_path, [a_record()], run_id="old", clock=at(0))
    write_run(tmp_path, [a_record()], run_id="new", clock=at(1))
    assert choose_source(tmp_path / "toy", SHAPE, "old").taken == "old"


# -- the attempts ------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [Outcome.SCORED, Outcome.FAILED_ERROR, Outcome.TIMED_OUT])
def test_what_ended_by_itself_is_reused_with_its_origin(outcome: Outcome, tmp_path: Path) -> None:
    source = source_of(tmp_path, a_record(outcome=outcome))
    decision = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert decision.kind is DecisionKind.REUSE
    assert decision.record is not None
    assert decision.record.metrics == {"accuracy": True}
    assert decision.record.reused_from == {
        "run_id": source.run_id,
        "path": str(source.root),
        "cost_usd": 0.001,
    }


def test_a_result_reused_twice_names_where_it_was_made(tmp_path: Path) -> None:
    origin = {"run_id": "first", "path": "somewhere", "cost_usd": 0.001}
    source = source_of(tmp_path, a_record(reused_from=origin))
    decision = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert decision.record is not None
    assert decision.record.reused_from == origin


@pytest.mark.parametrize(
    "outcome", [Outcome.CANCELLED, Outcome.SKIPPED_BUDGET, Outcome.SKIPPED_PASSED]
)
def test_what_did_not_end_by_itself_is_executed(outcome: Outcome, tmp_path: Path) -> None:
    assert decide(source_of(tmp_path, a_record(outcome=outcome)))[0] == "execute"


def test_a_fatal_end_is_executed_again(tmp_path: Path) -> None:
    issue = Issue.of(IssueCode.SCORER_CRASHED, Phase.EVALUATE, "boom")
    source = source_of(tmp_path, a_record(outcome=Outcome.FAILED_FATAL, issues=(issue,)))
    kind, reason = decide(source)
    assert (kind, "FATAL: scorer_crashed" in reason) == ("execute", True)


@pytest.mark.parametrize(
    ("patterns", "kind"),
    [
        ((), "reuse"),
        (("nothing like it",), "reuse"),
        (("(?i)CONNECTION.*reset",), "execute"),
        (("^turn_limit$",), "execute"),
    ],
)
def test_an_error_is_executed_again_where_a_pattern_matches_it(
    patterns: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    issue = Issue.of(IssueCode.TURN_LIMIT, Phase.RUN, "connection was reset")
    source = source_of(tmp_path, a_record(outcome=Outcome.FAILED_ERROR, issues=(issue,)))
    assert decide(source, retry_patterns=patterns)[0] == kind


def test_a_pattern_never_matches_a_warning(tmp_path: Path) -> None:
    issue = Issue.of(IssueCode.CLEANUP_FAILED, Phase.CLEANUP, "connection was reset")
    source = source_of(tmp_path, a_record(issues=(issue,)))
    assert decide(source, retry_patterns=["."])[0] == "reuse"


def test_another_generation_is_executed(tmp_path: Path) -> None:
    kind, reason = decide(source_of(tmp_path, a_record()), generation="f" * 32)
    assert (kind, "agent" in reason) == ("execute", True)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.SKIPPED_BUDGET, "it did not end by itself: skipped_budget"),
        (Outcome.CANCELLED, "it did not end by itself: cancelled"),
        (Outcome.FAILED_FATAL, "it ended FATAL"),
        (Outcome.SCORED, "what the agent was asked has changed"),
    ],
)
def test_an_attempt_without_an_identity_is_executed_and_nothing_is_said_to_have_changed(
    outcome: Outcome, reason: str, tmp_path: Path
) -> None:
    """It never began, or our own fault ended it; only a result needs an identity to be taken."""
    record = a_record(outcome=outcome, executions=0, generation=None, evaluation=None)
    assert decide(source_of(tmp_path, record)) == ("execute", reason)


def test_another_evaluation_is_executed_and_says_why(tmp_path: Path) -> None:
    kind, reason = decide(source_of(tmp_path, a_record()), evaluation="f" * 32)
    assert (kind, "scored" in reason) == ("execute", True)


def test_an_attempt_that_is_not_there_is_executed_without_a_warning(tmp_path: Path) -> None:
    source = source_of(tmp_path, a_record())
    decision = source.decide("other", 1, "g", "e")
    assert (decision.kind, decision.warning) == (DecisionKind.EXECUTE, None)


def test_the_last_valid_record_of_an_attempt_counts(tmp_path: Path) -> None:
    source = source_of(tmp_path, a_record(answer="first"), a_record(answer="last"))
    decision = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert decision.record is not None
    assert decision.record.answer == "last"
    assert source.attempts == 1


@pytest.mark.parametrize("how", ["torn", "flipped"])
def test_a_damaged_record_is_executed_with_a_warning(how: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record("plain"), a_record("with/slash")])
    data = bytearray(folder.files.attempts.read_bytes())
    if how == "torn":
        del data[-10:]
    else:
        data[-30] ^= 1
    folder.files.attempts.write_bytes(data)
    source = ReuseSource(folder.root)
    assert decide(source)[0] == "reuse"
    assert len(source.warnings) == 1
    decision = source.decide("with/slash", 1, generation("with/slash"), EVALUATION)
    assert decision.kind is DecisionKind.EXECUTE
    assert decision.warning is not None
    assert "with/slash" in decision.warning


def test_a_whole_line_that_is_no_record_is_executed_with_a_warning(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [])
    line = encode({"schema": "attempt/1", "task_id": "plain", "attempt": 1, "outcome": "great"})
    folder.files.attempts.write_bytes(line)
    decision = ReuseSource(folder.root).decide("plain", 1, "g", "e")
    assert decision.kind is DecisionKind.EXECUTE
    assert "outcome" in str(decision.warning)


def test_a_record_of_a_future_version_is_executed_with_a_warning(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record()])
    with folder.files.attempts.open("ab") as file:
        file.write(encode({"schema": "attempt/2", "task_id": "new", "attempt": 1}))
    decision = ReuseSource(folder.root).decide("new", 1, "g", "e")
    assert "attempt/2" in str(decision.warning)


ANSWER = "tasks/plain/attempt-1/answer.txt"


def test_an_answer_file_is_carried_over_and_missed_when_gone(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record(answer=None, answer_file=ANSWER)])
    source = ReuseSource(folder.root)
    decision = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert "missing" in str(decision.warning)
    write_beside(folder.root, ANSWER, b"long")
    decision = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert decision.record is not None
    new = a_run(tmp_path)
    source.carry_files(decision.record, new.root)
    assert (new.root / ANSWER).read_bytes() == b"long"


def test_an_answer_file_outside_of_the_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    source = source_of(tmp_path, a_record(answer=None, answer_file="../../secret"))
    decision = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert "leads out" in str(decision.warning)


def test_a_result_that_met_a_limit_stands_only_under_the_same_limits(tmp_path: Path) -> None:
    timed_out = a_record("plain", outcome=Outcome.TIMED_OUT)
    folder = write_run(tmp_path, [timed_out, a_record("with/slash")])
    same = {"execution": {"run_timeout_seconds": 60.0}}
    longer = {"execution": {"run_timeout_seconds": 600.0}}
    assert decide(ReuseSource(folder.root, limits=fired_limits(same)))[0] == "reuse"
    source = ReuseSource(folder.root, limits=fired_limits(longer))
    assert decide(source)[0] == "execute"
    assert decide(source, "with/slash")[0] == "reuse"


def test_reuse_leaves_the_source_as_it_was(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record()])
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.root.iterdir()}
    decide(ReuseSource(folder.root))
    assert before == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.root.iterdir()}


def test_a_folder_that_is_no_run_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(RunUnreadable, match="there is no run here"):
        ReuseSource(tmp_path)


def test_a_file_that_cannot_be_looked_at_is_named_and_the_attempt_runs(tmp_path: Path) -> None:
    source = source_of(tmp_path, a_record(answer=None, answer_file=ANSWER))
    folder = source.root / "tasks" / "plain"
    folder.mkdir(parents=True)
    (folder / "attempt-1").symlink_to("attempt-1")
    assert decide(source) == ("execute", "a file of it is gone")
    decision = source.decide("plain", 1, generation("plain"), EVALUATION)
    assert "attempt-1" in (decision.warning or "")
