"""What people see of retries: while a launch runs, at its end, and of each attempt afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.pace import Paces
from steelyard.cli.progress import describe
from steelyard.cli.report import report_lines
from steelyard.engine.events import LaunchResult, Progress
from tests.cli.conftest import Run
from tests.engine.flaky import flaky, run_flaky


@pytest.fixture
def retried(tmp_path: Path) -> LaunchResult:
    return run_flaky(tmp_path, flaky(tmp_path, tasks=3, fails={"t0": 2, "t1": 9}))


def progress(**more: Any) -> Progress:
    return Progress("r", "running", 9, 2, {}, {}, {}, 0, 0.0, 12.0, **more)


def said(one: Progress) -> str:
    return describe(one, Paces().see((one,))["r"])


def test_plain_progress_names_retries_and_those_that_wait() -> None:
    assert "3 retries (2 waiting)" in said(progress(retries=3, waiting=2))
    assert "3 retries," in said(progress(retries=3))
    assert "retries" not in said(progress())


def test_progress_as_json_has_both() -> None:
    found = progress(retries=3, waiting=2).as_json()
    assert (found["retries"], found["waiting_for_retry"]) == (3, 2)


def test_the_final_table_tells_scores_by_retries(retried: LaunchResult) -> None:
    lines = "\n".join(report_lines(retried))
    assert "by retries needed: 0: 1 attempts, 1.000; 2+: 2 attempts, 1.000" in lines
    assert max(map(len, lines.split("\n"))) <= max(80, len(str(retried.requests[0].run_dir)) + 2)


def test_a_table_without_retries_says_nothing_of_them(tmp_path: Path) -> None:
    result = run_flaky(tmp_path, flaky(tmp_path, fails={}))
    assert "retries needed" not in "\n".join(report_lines(result))


def test_show_counts_the_retries_of_each_attempt(steelyard: Run, retried: LaunchResult) -> None:
    ran = steelyard("show", str(retried.requests[0].run_dir))
    rows = [line.split() for line in ran.out.split("\n")[:5] if line]
    assert rows[0][-1] == "retries"
    assert {row[0]: row[-1] for row in rows if row[0] in ("t0", "t1", "t2")} == {
        "t0": "2",
        "t1": "2",
        "t2": "0",
    }
    # What a retry has mended is no issue of the attempt any more.
    assert next(row for row in rows if row[0] == "t0").count("harness_crashed") == 0


def test_show_of_a_task_lists_its_executions(steelyard: Run, retried: LaunchResult) -> None:
    out = steelyard("show", str(retried.requests[0].run_dir), "t0").out
    assert "--- execution 1: failed_fatal, replaced" in out
    assert "--- execution 2: failed_fatal, replaced" in out
    assert "FATAL harness_crashed (run): as scripted" in out
    assert "run again after 0.0 s, because of harness_crashed" in out
    assert "execution-1/trajectory.json" in out


def test_show_as_json_has_the_executions(steelyard: Run, retried: LaunchResult) -> None:
    out = steelyard("show", str(retried.requests[0].run_dir), "t0", "--json").out
    (attempt,) = json.loads(out)["attempts"]
    assert attempt["executions"] == 3
    assert [one["execution"] for one in attempt["earlier_executions"]] == [1, 2]
    assert [issue["execution"] for issue in attempt["issues"]] == [1, 2]
