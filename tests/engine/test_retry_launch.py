"""Retries over a whole launch: what is kept, what counts, what is spent."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import IssueCode, Outcome, Phase
from steelyard.engine.events import AttemptObserver, LaunchResult, RunOutcome
from steelyard.models.backoff import Backoff
from steelyard.results.executions import earlier_executions
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.results.summary import rebuild
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.flaky import LONG_WAIT, agent_ran, events, files_of, flaky, run_flaky
from tests.engine.launching import records, request

SCORER = f"{Path(__file__).with_name('flaky.py')}:FlakyScorer"


def only(result: LaunchResult) -> AttemptRecord:
    (record,) = records(result)
    return record


def scorer(tmp_path: Path, fails: int, **more: Any) -> dict[str, Any]:
    return {"id": SCORER, "scored": str(tmp_path / "scored"), "scorer_fails": fails, **more}


def test_an_attempt_that_ends_fatal_is_tried_again_and_its_last_result_counts(
    tmp_path: Path,
) -> None:
    result = run_flaky(tmp_path, flaky(tmp_path, fails={"t0": 2}))
    record = only(result)
    assert (result.outcome, record.outcome) == (RunOutcome.COMPLETED, Outcome.SCORED)
    assert (record.executions, record.metrics) == (3, {"passed": True})
    assert agent_ran(tmp_path) == ["t0 1"] * 3


def test_without_retries_a_fatal_end_stands(tmp_path: Path) -> None:
    result = run_flaky(tmp_path, flaky(tmp_path, retries=0))
    assert (only(result).outcome, only(result).executions) == (Outcome.FAILED_FATAL, 1)
    assert files_of(result.requests[0].run_dir) == ["trajectory.json"]


def test_when_all_retries_are_used_the_last_failure_stands(tmp_path: Path) -> None:
    result = run_flaky(tmp_path, flaky(tmp_path, fails={"t0": 9}))
    record = only(result)
    assert (record.outcome, record.executions) == (Outcome.FAILED_FATAL, 3)
    assert [issue.execution for issue in record.issues] == [1, 2, 3]
    assert [issue.execution for issue in record.last_issues] == [3]
    assert result.exit_status == 1


def test_a_retry_is_no_further_sample(tmp_path: Path) -> None:
    result = run_flaky(tmp_path, flaky(tmp_path, tasks=3, execution={"attempts": {"k": 2}}))
    (request,) = result.requests
    assert (request.planned, request.counts[Outcome.SCORED]) == (6, 6)
    metrics = request.metrics or {}
    assert metrics["scores"][0]["coverage"]["counted"] == 6


def test_the_history_of_every_execution_is_on_the_disk(tmp_path: Path) -> None:
    result = run_flaky(tmp_path, flaky(tmp_path, fails={"t0": 2}))
    run_dir, record = result.requests[0].run_dir, only(result)
    assert files_of(run_dir) == [
        "execution-1/execution.json",
        "execution-1/trajectory.json",
        "execution-2/execution.json",
        "execution-2/trajectory.json",
        "trajectory.json",
    ]
    first, second = earlier_executions(run_dir, record)
    assert (first.execution, second.execution) == (1, 2)
    assert first.outcome is Outcome.FAILED_FATAL
    assert [issue.message for issue in first.issues] == ["as scripted"]
    assert (first.timing.started_at or "") <= (second.timing.started_at or "")
    assert first.retry == {"scope": "whole", "cause": "harness_crashed", "wait_s": 0.0}
    for number, execution in enumerate((first, second), 1):
        path = str((execution.trajectory or {})["path"])
        steps = json.loads((run_dir / path).read_text())["steps"]
        assert [step["message"] for step in steps] == [f"try {number}"]


def test_an_attempt_without_a_retry_has_no_file_of_its_own(tmp_path: Path) -> None:
    result = run_flaky(tmp_path, flaky(tmp_path, tasks=2))
    assert files_of(result.requests[0].run_dir, "t1") == ["trajectory.json"]


def test_a_large_answer_of_a_replaced_execution_stays_its_own(tmp_path: Path) -> None:
    one = flaky(
        tmp_path,
        fails={},
        script={"large": 70_000},
        benchmark=scorer(tmp_path, 1, fails_with="no"),
    )
    result = run_flaky(tmp_path, one)
    record = only(result)
    assert record.answer_file == "tasks/t0/attempt-1/answer.txt"
    assert agent_ran(tmp_path) == ["t0 1"]
    kept = files_of(result.requests[0].run_dir)
    assert kept.count("answer.txt") == 1


def test_the_journal_has_a_retry_before_the_next_intent_with_a_token_of_its_own(
    tmp_path: Path,
) -> None:
    run_dir = run_flaky(tmp_path, flaky(tmp_path)).requests[0].run_dir
    kinds = [e["kind"] for e in RunReader(run_dir).events() if e["kind"] in ("started", "retry")]
    assert kinds == ["started", "retry", "started"]
    (retry,) = events(run_dir, "retry")
    first, second = events(run_dir, "started")
    assert (retry["execution"], retry["token"]) == (1, first["token"])
    assert (retry["scope"], retry["cause"]) == ("whole", "harness_crashed")
    assert (second["execution"], second["token"] != first["token"]) == (2, True)


@pytest.mark.parametrize(
    ("patterns", "executions"),
    [(None, 1), ([], 1), (["nothing like it"], 1), (["agent_f"], 3), (["(?i)AS SCRIPT"], 3)],
)
def test_an_error_is_tried_again_only_where_a_pattern_matches(
    tmp_path: Path, patterns: list[str] | None, executions: int
) -> None:
    one = flaky(tmp_path, fails={"t0": 9}, patterns=patterns, script={"code": "agent_failed"})
    record = only(run_flaky(tmp_path, one))
    assert (record.outcome, record.executions) == (Outcome.FAILED_ERROR, executions)


@pytest.mark.integration
def test_a_pattern_without_end_holds_up_no_launch(tmp_path: Path) -> None:
    message = "a" * 60 + "b"
    script = {"code": "agent_failed", "message": message}
    one = flaky(tmp_path, fails={"t0": 9}, patterns=["(a+)+$"], script=script)
    result = run_flaky(tmp_path, one)
    assert (only(result).outcome, only(result).executions) == (Outcome.FAILED_ERROR, 1)
    assert (result.loop_lag_p99_ms or 0) < 500


@pytest.mark.parametrize("code", ["model_endpoint_rejected", "configuration"])
def test_a_fault_of_the_request_stops_it_and_is_not_tried_again(tmp_path: Path, code: str) -> None:
    script = {"code": code, "is_request_fault": True}
    result = run_flaky(tmp_path, flaky(tmp_path, fails={"t0": 9}, script=script))
    assert result.outcome is RunOutcome.FAILED
    assert agent_ran(tmp_path) == ["t0 1"]


def test_where_only_scoring_failed_the_agent_does_not_run_again(tmp_path: Path) -> None:
    one = flaky(tmp_path, fails={}, benchmark=scorer(tmp_path, 2))
    result = run_flaky(tmp_path, one)
    record = only(result)
    assert agent_ran(tmp_path) == ["t0 1"]
    assert (record.outcome, record.executions, record.answer) == (Outcome.SCORED, 3, "right")
    assert [retry["scope"] for retry in events(result.requests[0].run_dir, "retry")] == [
        "scoring"
    ] * 2
    trajectory = record.trajectory or {}
    assert trajectory["path"] == "tasks/t0/attempt-1/trajectory.json"
    assert (result.requests[0].run_dir / trajectory["path"]).exists()
    assert {issue.phase for issue in record.issues} == {Phase.EVALUATE}
    assert record.last_issues == ()


def test_usage_is_the_sum_of_all_executions(tmp_path: Path) -> None:
    with MockEndpoint("--text", "right") as endpoint:
        one = flaky(
            tmp_path,
            fails={"t0": 2},
            script={"calls": True},
            model={"id": "priced", "base_url": endpoint.url},
        )
        prices = {"priced": {"input_per_mtok": 0, "output_per_mtok": 500_000}}
        result = run_flaky(tmp_path, one, prices=prices)
    record = only(result)
    assert record.usage.requests == 3
    each = [execution.usage for execution in earlier_executions(result.requests[0].run_dir, record)]
    assert [usage.requests for usage in each] == [1, 1]
    assert record.usage.cost_usd == pytest.approx(3 * (each[0].cost_usd or 0))
    retries = events(result.requests[0].run_dir, "retry")
    assert [event["usage"]["requests"] for event in retries] == [1, 2]


@pytest.mark.parametrize(("attempt_usd", "executions"), [(1.5, 2), (10.0, 4), (0.5, 1)])
def test_the_allowance_of_an_attempt_is_for_all_its_executions(
    tmp_path: Path, attempt_usd: float, executions: int
) -> None:
    with MockEndpoint("--text", "right") as endpoint:
        one = flaky(
            tmp_path,
            retries=3,
            fails={"t0": 9},
            script={"calls": True},
            model={"id": "priced", "base_url": endpoint.url},
            budget={"attempt_usd": attempt_usd},
        )
        prices = {"priced": {"input_per_mtok": 0, "output_per_mtok": 500_000}}
        result = run_flaky(tmp_path, one, prices=prices)
    record = only(result)
    assert record.executions == executions
    assert record.usage.cost_usd == pytest.approx(executions)


def test_a_retry_that_the_budget_does_not_allow_leaves_the_failure_as_it_is(
    tmp_path: Path,
) -> None:
    with MockEndpoint("--text", "right") as endpoint:
        one = flaky(
            tmp_path,
            retries=5,
            fails={"t0": 9},
            script={"calls": True},
            model={"id": "priced", "base_url": endpoint.url},
        )
        prices = {"priced": {"input_per_mtok": 0, "output_per_mtok": 500_000}}
        result = run_flaky(tmp_path, one, prices=prices, budget={"usd": 2})
    record = only(result)
    assert (record.outcome, record.executions) == (Outcome.FAILED_FATAL, 2)
    assert record.usage.cost_usd == pytest.approx(2)
    assert (result.outcome, result.exit_status) == (RunOutcome.BUDGET_EXCEEDED, 4)
    assert "1 retries unmade" in (result.requests[0].reason or "")
    assert sum(result.requests[0].counts.values()) == 1


def test_a_success_makes_the_retries_of_its_task_needless(tmp_path: Path) -> None:
    one = flaky(
        tmp_path,
        fails={"t0": 1},
        execution={"attempts": {"k": 2, "strategy": "pass"}},
        benchmark={"overlap": False},
        script={"ledger": str(tmp_path / "ran")},
    )
    # The first attempt waits longer than the test; the second one's first execution fails, too.
    one["harness"]["fails"] = {}
    one["harness"]["id"] = one["harness"]["id"].replace(":Flaky", ":FlakyFirst")
    result = run_flaky(tmp_path, one, backoff=LONG_WAIT)
    first, second = sorted(records(result), key=lambda record: record.attempt)
    assert (first.outcome, first.executions) == (Outcome.SKIPPED_PASSED, 1)
    assert [issue.code for issue in first.issues] == [IssueCode.HARNESS_CRASHED]
    assert second.outcome is Outcome.SCORED
    assert result.outcome is RunOutcome.COMPLETED
    assert (result.requests[0].metrics or {})["is_official"]


def test_observers_are_told_of_each_execution_and_of_one_record(tmp_path: Path) -> None:
    told: list[Any] = []

    class Told(AttemptObserver):
        def attempt_started(self, request: str, task_id: str, attempt: int, execution: int) -> None:
            told.append(execution)

        def attempt_recorded(self, request: str, record: AttemptRecord) -> None:
            told.append(record.outcome.value)

    run_flaky(tmp_path, flaky(tmp_path), observer=Told())
    assert told == [1, 2, "scored"]


def test_scores_are_told_by_the_retries_that_attempts_needed(tmp_path: Path) -> None:
    one = flaky(tmp_path, retries=3, tasks=6, fails={"t0": 1, "t1": 2, "t2": 3, "t3": 9})
    result = run_flaky(tmp_path, one)
    metrics = result.requests[0].metrics or {}
    groups = metrics["retries"]["groups"]
    assert [(g["retries"], g["attempts"], g["counted"]) for g in groups] == [
        (0, 2, 2),
        (1, 1, 1),
        (2, 3, 2),
    ]
    assert groups[2]["is_or_more"]
    assert [group["estimate"]["value"] for group in groups] == [1.0, 1.0, 1.0]
    assert metrics["retries"]["attempts"] == 4
    assert metrics["retries"]["executions"] == 1 + 2 + 3 + 3
    assert metrics["retries"]["issues"] == {"harness_crashed": 9}
    # What was mended counts no more among what went wrong.
    assert metrics["issues"] == [{"severity": "FATAL", "code": "harness_crashed", "count": 1}]
    text = (result.requests[0].run_dir / "summary.md").read_text()
    assert "## By number of retries" in text
    assert "| 2+ | 3 | 2 | 1.000 |" in text


def test_without_a_retry_no_figure_speaks_of_them(tmp_path: Path) -> None:
    result = run_flaky(tmp_path, flaky(tmp_path, fails={}))
    assert "retries" not in (result.requests[0].metrics or {})
    assert "retries" not in (result.requests[0].run_dir / "summary.md").read_text()


def test_a_summary_of_retries_is_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    run_dir = run_flaky(tmp_path, flaky(tmp_path, tasks=3)).requests[0].run_dir
    before = (run_dir / "metrics.json").read_bytes()
    rebuild(run_dir)
    assert (run_dir / "metrics.json").read_bytes() == before


def test_reuse_takes_an_attempt_that_a_retry_has_mended(tmp_path: Path) -> None:
    run_flaky(tmp_path, flaky(tmp_path))
    again = run_flaky(tmp_path, flaky(tmp_path, runtime={"reuse": True}))
    assert len(agent_ran(tmp_path)) == 2
    record = only(again)
    assert record.reused_from is not None
    assert (record.outcome, record.executions) == (Outcome.SCORED, 2)


def test_reuse_grants_the_present_retries_to_what_ended_fatal(tmp_path: Path) -> None:
    run_flaky(tmp_path, flaky(tmp_path, retries=1, fails={"t0": 4}))
    again = run_flaky(tmp_path, flaky(tmp_path, fails={"t0": 4}, runtime={"reuse": True}))
    assert (only(again).outcome, only(again).executions) == (Outcome.SCORED, 3)
    assert len(agent_ran(tmp_path)) == 5


def test_work_of_an_earlier_run_is_scored_again_as_often_as_retries_allow(tmp_path: Path) -> None:
    run_flaky(tmp_path, flaky(tmp_path, retries=0, fails={}, benchmark=scorer(tmp_path, 3)))
    again = flaky(tmp_path, fails={}, benchmark=scorer(tmp_path, 3), runtime={"reuse": True})
    record = only(run_flaky(tmp_path, again))
    assert agent_ran(tmp_path) == ["t0 1"]
    assert (record.outcome, record.answer) == (Outcome.SCORED, "right")
    assert record.usage.cost_usd == pytest.approx(1.0)
    assert record.reused_from is not None


def test_the_ledger_adds_up_with_retries(tmp_path: Path) -> None:
    fails = {"t0": 1, "t1": 9, "t2": 2, "t4": 1}
    result = run_flaky(
        tmp_path,
        flaky(tmp_path, tasks=6, fails=fails, execution={"attempts": {"k": 2}}),
        task_concurrency=2,
    )
    counts = Counter(record.outcome for record in records(result))
    assert counts == {Outcome.SCORED: 10, Outcome.FAILED_FATAL: 2}
    assert sum(result.requests[0].counts.values()) == 12


def test_a_pause_that_the_endpoint_asks_for_is_kept_before_the_retry(tmp_path: Path) -> None:
    with MockEndpoint("--text", "right", "--fault", "429:first=1,retry_after=1") as endpoint:
        one = request(
            benchmark={"tasks": 1},
            harness={"id": "chat"},
            model={"id": "m", "base_url": endpoint.url, "max_request_retries": 0},
            execution={"max_retries": 1},
        )
        result = run_flaky(tmp_path, one, backoff=Backoff(base_s=0.0, cap_s=0.0))
    record = only(result)
    assert (record.outcome, record.executions) == (Outcome.SCORED, 2)
    (issue,) = record.issues
    assert (issue.code, issue.retry_after_s) == (IssueCode.MODEL_UNAVAILABLE, 1.0)
    (retry,) = events(result.requests[0].run_dir, "retry")
    assert retry["wait_s"] == pytest.approx(1.0)
