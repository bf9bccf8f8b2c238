"""A launch, in process: what is recorded, how it ends, what its requests do to each other."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.config.errors import BadInput
from steelyard.engine.events import RunOutcome
from steelyard.engine.run_state import RunState
from steelyard.results.files import NoFaults, WritePoint
from steelyard.results.reader import RunReader
from tests.engine.launching import COMPONENTS, records, request, run_all


def test_every_attempt_is_recorded_and_the_ledger_closes(tmp_path: Path) -> None:
    result = run_all(tmp_path, request(benchmark={"tasks": 7}, execution={"attempts": {"k": 3}}))
    assert result.outcome is RunOutcome.COMPLETED
    assert result.exit_status == 0
    found = Counter((record.task_id, record.attempt) for record in records(result))
    assert found == Counter((f"t{t}", a) for t in range(7) for a in (1, 2, 3))
    assert sum(result.requests[0].counts.values()) == 21
    assert (result.requests[0].run_dir / "summary.md").is_file()


def test_a_fatal_attempt_fails_its_request_and_no_other(tmp_path: Path) -> None:
    result = run_all(tmp_path, request("a", harness={"fatal": ["t2"]}), request("b"))
    assert [r.outcome for r in result.requests] == [RunOutcome.FAILED, RunOutcome.COMPLETED]
    assert result.outcome is RunOutcome.PARTIAL_FAILURE
    assert result.exit_status == 1
    assert result.requests[0].counts[Outcome.FAILED_FATAL] == 1
    assert result.requests[0].counts[Outcome.SCORED] == 4


def test_all_requests_failing_is_failed_not_partial(tmp_path: Path) -> None:
    result = run_all(tmp_path, request(harness={"fatal": ["t2"]}))
    assert result.outcome is RunOutcome.FAILED


def test_tasks_that_cannot_be_loaded_fail_their_request_alone(tmp_path: Path) -> None:
    result = run_all(tmp_path, request("a", benchmark={"fails_to_load": True}), request("b"))
    assert [r.outcome for r in result.requests] == [RunOutcome.FAILED, RunOutcome.COMPLETED]
    assert "the data is gone" in (result.requests[0].reason or "")


def test_tasks_that_share_an_id_fail_their_request_and_name_it(tmp_path: Path) -> None:
    one = request(benchmark={"id": f"{COMPONENTS}:Twice"})
    result = run_all(tmp_path, one)
    (ended,) = result.requests
    assert (ended.outcome, ended.planned) == (RunOutcome.FAILED, 0)
    assert "tasks share the id 't1'" in (ended.reason or "")
    assert "\n  give each task an id of its own" in (ended.reason or "")  # lines are kept


def test_a_benchmark_without_tasks_says_so(tmp_path: Path) -> None:
    result = run_all(tmp_path, request(benchmark={"tasks": 0}))
    assert result.requests[0].outcome is RunOutcome.FAILED
    assert "loaded no tasks: the list is empty" in (result.requests[0].reason or "")


def test_a_rejected_request_stops_at_the_first_answer(tmp_path: Path) -> None:
    one = request(benchmark={"tasks": 500}, harness={"refused": True})
    result = run_all(tmp_path, one, task_concurrency=1)
    assert result.requests[0].outcome is RunOutcome.FAILED
    assert result.requests[0].reason == "401"
    assert len(records(result)) == 1
    assert result.requests[0].counts[Outcome.NOT_STARTED] == 499


def test_strategy_pass_stops_a_task_at_its_first_success(tmp_path: Path) -> None:
    one = request(
        benchmark={"tasks": 2},
        harness={"right": {"t0": [2], "t1": []}},
        execution={"attempts": {"k": 4, "strategy": "pass"}},
    )
    result = run_all(tmp_path, one)
    counts = result.requests[0].counts
    assert counts[Outcome.SKIPPED_PASSED] == 2
    assert counts[Outcome.SCORED] == 6
    assert result.outcome is RunOutcome.COMPLETED


def test_early_stop_false_runs_all_k(tmp_path: Path) -> None:
    one = request(execution={"attempts": {"k": 4, "strategy": "pass", "early_stop": False}})
    assert run_all(tmp_path, one).requests[0].counts[Outcome.SCORED] == 20


def test_the_deadline_ends_the_orchestration_with_its_own_status(tmp_path: Path) -> None:
    one = request(benchmark={"tasks": 3}, harness={"sleep_s": 60})
    result = run_all(
        tmp_path, one, request("b"), task_concurrency=2, runtime={"timeout_seconds": 0.2}
    )
    assert result.outcome is RunOutcome.TIMED_OUT
    assert result.exit_status == 5
    assert result.requests[0].counts[Outcome.CANCELLED] == 2
    assert result.requests[0].counts[Outcome.NOT_STARTED] == 1


def test_a_large_answer_lies_beside_the_records(tmp_path: Path) -> None:
    result = run_all(tmp_path, request(benchmark={"tasks": 1}, harness={"large": 200_000}))
    record = records(result)[0]
    assert record.answer is None
    assert record.answer_file is not None
    path = result.requests[0].run_dir / record.answer_file
    assert path.read_text() == "x" * 200_000


def test_filters_choose_the_tasks(tmp_path: Path) -> None:
    one = request(execution={"sample_ids": ["t1", "t3", "t4"], "exclude_ids": ["t3"], "limit": 1})
    assert [record.task_id for record in records(run_all(tmp_path, one))] == ["t1"]


def test_shards_cover_every_task_once(tmp_path: Path) -> None:
    shards = [request(f"s{i}", execution={"shard": f"{i}/3"}) for i in (1, 2, 3)]
    result = run_all(tmp_path, *shards)
    seen = [record.task_id for index in range(3) for record in records(result, index)]
    assert sorted(seen) == ["t0", "t1", "t2", "t3", "t4"]


def test_filters_that_leave_nothing_fail_the_request_with_the_reason(tmp_path: Path) -> None:
    result = run_all(tmp_path, request(execution={"sample_ids": ["t9"]}))
    assert result.outcome is RunOutcome.FAILED
    assert "no task 't9'" in (result.requests[0].reason or "")


def test_reuse_takes_what_is_finished_and_runs_the_rest(tmp_path: Path) -> None:
    first = run_all(tmp_path, request(harness={"fatal": ["t2"]}))
    assert first.requests[0].counts[Outcome.FAILED_FATAL] == 1
    again = run_all(tmp_path, request(harness={"fatal": ["t2"]}, runtime={"reuse": True}))
    taken = {record.task_id: record.reused_from for record in records(again)}
    assert [task for task, source in taken.items() if source is None] == ["t2"]
    assert again.requests[0].reuse is not None
    assert first.requests[0].run_dir.name in again.requests[0].reuse


def test_a_changed_harness_is_never_given_anothers_score(tmp_path: Path) -> None:
    run_all(tmp_path, request())
    changed = request(harness={"right": {"t0": [1]}}, runtime={"reuse": True})
    result = run_all(tmp_path, changed)
    assert all(record.reused_from is None for record in records(result))


def test_a_used_run_id_is_refused_before_anything_starts(tmp_path: Path) -> None:
    one = request(output={"run_id": "baseline"})
    run_all(tmp_path, one)
    with pytest.raises(BadInput, match="baseline"):
        run_all(tmp_path, one)


def test_intents_come_before_records_and_the_outcome_is_last(tmp_path: Path) -> None:
    result = run_all(tmp_path, request())
    events = list(RunReader(result.requests[0].run_dir).events())
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "planned"
    assert kinds[-1] == "finished"
    assert kinds.count("started") == 5


def test_pass_on_a_scalar_metric_is_refused_by_the_plan(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="calls no model"):
        run_all(tmp_path, request(model={"id": "gpt-x"}))


def test_reused_attempts_take_no_slot_and_a_success_among_them_spares_the_rest(
    tmp_path: Path,
) -> None:
    plan = {"attempts": {"k": 3, "strategy": "pass"}}
    script = {"right": {"t0": [2], "t1": [], "t2": [1], "t3": [3], "t4": [1]}}
    first = run_all(tmp_path, request(harness=script, execution=plan))
    again = run_all(tmp_path, request(harness=script, execution=plan, runtime={"reuse": True}))
    assert again.requests[0].counts == first.requests[0].counts
    assert all(
        record.reused_from is not None
        for record in records(again)
        if record.outcome is Outcome.SCORED
    )


def test_a_run_that_died_while_taking_over_hides_nothing_of_its_source(tmp_path: Path) -> None:
    """Else a second crash right after a resume would pay for everything again."""
    whole = run_all(tmp_path, request(output={"run_id": "a"}))
    run_all(tmp_path, request(output={"run_id": "b"}, runtime={"reuse": True}))
    torn = whole.requests[0].run_dir.parent / "b"
    kept = (torn / "attempts.jsonl").read_bytes().split(b"\n")[:2]
    (torn / "attempts.jsonl").write_bytes(b"\n".join(kept) + b"\n")
    events = (torn / "events.jsonl").read_bytes().split(b"\n")[:1]
    (torn / "events.jsonl").write_bytes(b"\n".join(events) + b"\n")
    third = run_all(tmp_path, request(output={"run_id": "c"}, runtime={"reuse": True}))
    taken = [record.reused_from for record in records(third)]
    assert len(taken) == 5
    assert all(source is not None for source in taken)
    assert third.requests[0].reuse == "reusing b and a: 5 of 5 attempts taken"


def test_reuse_says_what_it_takes_and_why_the_rest_runs(tmp_path: Path) -> None:
    run_all(tmp_path, request(output={"run_id": "a"}))
    changed = request(harness={"steps": True}, runtime={"reuse": True}, output={"run_id": "b"})
    none = run_all(tmp_path, changed)
    why = "what the agent was asked has changed"
    assert none.requests[0].reuse == (
        f"reusing a: 0 of 5 attempts taken, 5 run ({why}); "
        "changed: harness.params.steps was False, is True"
    )
    larger = request(
        benchmark={"tasks": 7}, harness={"steps": True}, runtime={"reuse": True},
        output={"run_id": "c"},
    )  # fmt: skip
    some = run_all(tmp_path, larger)
    said = "0 of 7 attempts taken, 5 scored again, 2 run (b has no record of it)"
    assert some.requests[0].reuse == f"reusing b: {said}"


def test_what_lies_beside_a_record_is_taken_along(tmp_path: Path) -> None:
    one = request(benchmark={"tasks": 1}, harness={"large": 70_000, "steps": True})
    run_all(tmp_path, one)
    again = run_all(tmp_path, {**one, "runtime": {"reuse": True}})
    (record,) = records(again)
    root = again.requests[0].run_dir
    assert record.reused_from is not None
    assert record.answer_file is not None
    assert (root / record.answer_file).stat().st_size == 70_000
    assert record.trajectory is not None
    assert (root / record.trajectory["path"]).is_file()


def test_a_trajectory_that_was_changed_is_not_taken(tmp_path: Path) -> None:
    one = request(benchmark={"tasks": 1}, harness={"steps": True})
    first = run_all(tmp_path, one)
    (record,) = records(first)
    assert record.trajectory is not None
    path = first.requests[0].run_dir / record.trajectory["path"]
    path.write_bytes(path.read_bytes() + b" ")
    (again,) = records(run_all(tmp_path, {**one, "runtime": {"reuse": True}}))
    assert again.reused_from is None


def test_a_rejection_of_the_last_attempt_is_named_too(tmp_path: Path) -> None:
    result = run_all(tmp_path, request(benchmark={"tasks": 1}, harness={"refused": True}))
    assert result.requests[0].outcome is RunOutcome.FAILED
    assert result.requests[0].reason == "401"


def test_a_fault_of_the_driver_itself_ends_the_launch_with_its_ledger_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(RunState, "_record", breaks)
    result = run_all(tmp_path, request(harness={"sleep_s": 0.01}), task_concurrency=2)
    (ended,) = result.requests
    assert ended.outcome is RunOutcome.FAILED
    assert "internal error: RuntimeError: a bug" in (ended.reason or "")
    assert ended.counts[Outcome.FAILED_FATAL] == 2
    assert ended.counts[Outcome.NOT_STARTED] == 3
    assert ended.metrics is not None
    assert ended.metrics["usage"]["cost_usd"] is None


def test_a_fault_while_taking_over_ends_the_launch_and_loses_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_all(tmp_path, request())

    def breaks(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("steelyard.engine.opening.taken_records", breaks)
    (ended,) = run_all(tmp_path, request(runtime={"reuse": True})).requests
    assert ended.outcome is RunOutcome.FAILED
    assert "internal error: RuntimeError: a bug" in (ended.reason or "")
    monkeypatch.undo()
    third = run_all(tmp_path, request(runtime={"reuse": True}))
    assert third.requests[0].metrics is not None
    reused = third.requests[0].metrics["reused"]["runs"]
    assert reused == {first.requests[0].run_dir.name: 5}


def test_the_record_says_what_was_shown_whoever_was_asked(tmp_path: Path) -> None:
    """Two models are compared by it: the generation identity holds model and harness as well."""
    one = request("a", benchmark={"tasks": 2})
    other = request("b", benchmark={"tasks": 2}, harness={"large": 3})
    result = run_all(tmp_path, one, other)
    first, second = ({r.task_id: r for r in records(result, index)} for index in (0, 1))
    assert {r.content for r in first.values()} == {r.content for r in second.values()}
    assert len({r.content for r in first.values()}) == 2
    assert first["t0"].content == second["t0"].content
    assert first["t0"].generation != second["t0"].generation


def test_snapshots_are_written_off_the_loop_and_the_last_one_last(tmp_path: Path) -> None:
    """A disk that is slow with them holds up no attempt."""
    writers = []

    class Watched(NoFaults):
        def before(self, point: WritePoint) -> None:
            if point is WritePoint.PROGRESS_WRITTEN:
                writers.append(threading.current_thread())

    result = run_all(tmp_path, request(harness={"sleep_s": 0.2}), faults=Watched())
    assert writers
    assert threading.main_thread() not in writers
    last = json.loads((result.requests[0].run_dir / "progress.json").read_bytes())
    assert (last["ended"], last["outcome"]) == (5, "completed")
