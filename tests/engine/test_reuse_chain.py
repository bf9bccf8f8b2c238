"""A run that took from another and did not get to all of it: nothing is paid again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.components.issues import Outcome
from steelyard.components.values import Usage
from steelyard.engine.events import LaunchResult
from steelyard.results.lines import encode
from steelyard.results.reader import RunReader
from steelyard.results.records_io import record_to_json
from tests.engine.launching import records
from tests.engine.test_reuse_table import FILES, Rows, by_task


def forget_attempts(result: LaunchResult, kept: int) -> None:
    """Leave the run as one that was stopped once it had ended so many attempts."""
    run = result.requests[0].run_dir
    lines = (run / "attempts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "attempts.jsonl").write_bytes(b"".join(lines[:kept]))
    ended = {record.task_id for record in RunReader(run).records()}
    for folder in (run / "tasks").glob("*"):
        if folder.name not in ended:
            shutil.rmtree(folder)


def events_of(result: LaunchResult, kind: str) -> list[dict[str, Any]]:
    found = RunReader(result.requests[0].run_dir).events()
    return [event for event in found if event["kind"] == kind]


@FILES
def test_what_was_still_to_be_scored_again_is_found_behind_the_stopped_run(
    tmp_path: Path, with_files: bool
) -> None:
    rows = Rows(tmp_path, with_files)
    first = by_task(rows.launch())
    rescored = {"version": "2"}
    for _ in range(2):
        stopped = rows.launch(benchmark=rescored, resumes=True)
        assert events_of(stopped, "carried")[0]["rescored"] > 0
        forget_attempts(stopped, kept=1)
    last = by_task(rows.launch(benchmark=rescored, resumes=True))
    assert len(rows.ran) == 2
    assert {record.outcome for record in last.values()} == {Outcome.SCORED}
    for task_id, record in last.items():
        assert record.evaluation != first[task_id].evaluation
        assert record.reused_from is not None


def test_a_run_of_fewer_tasks_does_not_hide_the_others(tmp_path: Path) -> None:
    rows = Rows(tmp_path)
    rows.launch()
    rows.launch(resumes=True, execution={"limit": 1})
    rows.launch(resumes=True, execution={"limit": 1})
    whole = rows.launch(resumes=True)
    assert len(rows.ran) == 2
    assert len(records(whole)) == 2
    assert all(record.reused_from for record in records(whole))


def test_what_a_needless_attempt_cost_stays_in_the_report(tmp_path: Path) -> None:
    """In one run it would have been counted, and so would its retries."""
    rows = Rows(tmp_path)
    execution = {"attempts": {"k": 2, "strategy": "pass"}}
    first = rows.launch(benchmark={"tasks": 1}, harness={"right": {"t0": [2]}}, execution=execution)
    spent = Usage(7, 5, requests=2, cost_usd=0.25)
    lost, passed = sorted(records(first), key=lambda record: record.attempt)
    lost = replace(lost, outcome=Outcome.FAILED_FATAL, metrics={}, executions=3, usage=spent)
    lines = [encode(record_to_json(record)) for record in (lost, passed)]
    (first.requests[0].run_dir / "attempts.jsonl").write_bytes(b"".join(lines))
    again = rows.launch(
        benchmark={"tasks": 1}, harness={"right": {"t0": [2]}}, resumes=True, execution=execution
    )
    needless = next(record for record in records(again) if record.attempt == 1)
    assert (needless.outcome, needless.executions) == (Outcome.SKIPPED_PASSED, 3)
    assert needless.usage == spent
    metrics = again.requests[0].metrics
    assert metrics is not None
    assert metrics["usage"]["cost_usd"] == 0.25
    assert metrics["reused"]["attempts"] == 1
    assert metrics["spent"]["cost_usd"] == 0
    assert len(rows.ran) == 2


def test_a_run_that_got_to_all_of_it_needs_no_other(tmp_path: Path) -> None:
    rows = Rows(tmp_path)
    first = rows.launch()
    rows.launch(benchmark={"version": "2"}, resumes=True)
    shutil.rmtree(first.requests[0].run_dir)
    rows.launch(benchmark={"version": "2"}, resumes=True)
    assert len(rows.ran) == 2
