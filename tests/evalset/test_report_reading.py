"""What a report reads of a set: the same as the reader of runs, whatever the files look like."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.evalset.report.record_sums import _BATCH
from steelyard.evalset.report.report import SetReport, read_set
from steelyard.evalset.rows import rows_of
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.calibration import CALIBRATION_SCHEMA
from steelyard.results.layout import RunFiles
from steelyard.results.lines import encode
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import record_to_json
from steelyard.results.summary import summarise
from tests.evalset.projects import agent, dear_endpoint, submitted, write_project
from tests.evalset.sets import a_record, failed, fatal, write_cell_run, write_set

MANY = 3 * _BATCH + 1
CANCELLED: dict[str, Any] = {"outcome": Outcome.CANCELLED, "executions": 0}


def a_set(root: Path, records: Iterable[AttemptRecord], **changes: Any) -> OpenedSet:
    listed = list(records)
    return OpenedSet(write_set(root, lambda cell: listed, agents=("a",), **changes))


def run_of(opened: OpenedSet) -> Path:
    run = opened.run_dir(opened.cells[0])
    assert run is not None
    return run


def reported(opened: OpenedSet) -> SetReport:
    return read_set(opened).report


def assert_scores_as_summarised(opened: OpenedSet) -> None:
    """A calibration leaves tasks out of scores alone."""
    assert_as_summarised(opened, only_scores=True)


def assert_as_summarised(opened: OpenedSet, *, only_scores: bool = False) -> None:
    """A cell's row is what the run's own summary says."""
    for row, cell in zip(reported(opened).cells, opened.cells, strict=True):
        run = opened.run_dir(cell)
        assert run is not None
        metrics = summarise(run)
        wanted = next(score for score in metrics["scores"] if score["is_headline"])
        head = dict(row.headline or {})
        for name in ("official", "reference", "failures_as_zero", "bounds", "coverage"):
            assert head[name] == wanted[name], name
        for name in ("value", "standard_error", "interval", "interval_method", "tasks", "note"):
            assert head["estimate"][name] == wanted["estimate"][name], name
        if only_scores:
            continue
        outcomes = {outcome.value: row.outcomes.get(outcome, 0) for outcome in Outcome}
        assert outcomes == metrics["attempts"]["outcomes"]
        assert row.planned == metrics["attempts"]["planned"]
        assert row.known_usd == pytest.approx(metrics["usage"]["known_cost_usd"])
        found = [
            {"severity": severity, "code": code, "count": count}
            for (severity, code), count in sorted(row.issues.items())
        ]
        assert found == metrics["issues"]


def mixed() -> list[AttemptRecord]:
    """More records than are added at once, some of each kind."""
    retried = (
        replace(Issue.of(IssueCode.MODEL_TIMED_OUT, Phase.RUN, "mended"), execution=1),
        replace(Issue.of(IssueCode.OUTPUT_TRUNCATED, Phase.RUN, "kept"), execution=2),
    )
    found = [a_record(f"c{n:03}", n % 3 == 0) for n in range(MANY)]
    found[5] = fatal("c005")
    found[6] = failed("c006")
    found[7] = a_record("c007", None, **CANCELLED)
    found[8] = a_record("c008", True, executions=2, issues=retried)
    found[9] = a_record("c009", True, cost_usd=None)
    found[10] = a_record("c010", None)  # scored, without the metric
    found[70] = a_record("c070", None, outcome=Outcome.TIMED_OUT)
    found[71] = a_record("c071", True, cluster="pair")
    found[72] = a_record("c072", False, cluster="pair")
    return found


def test_a_cell_is_what_its_run_summarises(tmp_path: Path) -> None:
    assert_as_summarised(a_set(tmp_path, mixed(), cases=MANY + 4))


def test_records_in_any_order_and_batch_give_the_same(tmp_path: Path) -> None:
    one, other = (
        reported(a_set(tmp_path / name, records, cases=MANY))
        for name, records in (("a", mixed()), ("b", reversed(mixed())))
    )
    assert one.whole.scores == other.whole.scores
    assert one.whole.outcomes == other.whole.outcomes


def test_of_two_records_of_an_attempt_the_last_counts(tmp_path: Path) -> None:
    records = [a_record("x", False), a_record("y", True), a_record("x", True)]
    opened = a_set(tmp_path, records)
    assert_as_summarised(opened)
    assert reported(opened).whole.outcomes[Outcome.SCORED] == 2


def test_a_torn_tail_and_a_spoilt_line_are_named_and_the_rest_counts(tmp_path: Path) -> None:
    opened = a_set(tmp_path, mixed(), cases=MANY)
    path = RunFiles(run_of(opened)).attempts
    lines = path.read_bytes().split(b"\n")
    lines[100] = lines[100].replace(b"scored", b"sc0red")
    path.write_bytes(b"\n".join(lines))
    assert_as_summarised(opened)
    report = reported(opened)
    assert sum(report.whole.outcomes.values()) == MANY
    assert report.whole.outcomes[Outcome.NOT_STARTED] == MANY - 100
    assert any("wrong checksum" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"task_id": 7}, {"attempt": None}, {"outcome": "splendid"}, {"timing": {}},
        {"usage": {"cost_usd": "much"}}, {"metrics": {"passed": "yes"}}, {"issues": 3},
        {"metrics": None}, {"executions": "two"},
    ],
    ids=lambda spoilt: next(iter(spoilt)),
)  # fmt: skip
def test_a_line_that_is_no_record_is_named_and_the_rest_counts(
    spoilt: dict[str, Any], tmp_path: Path
) -> None:
    opened = a_set(tmp_path, [a_record(f"c{n}", True) for n in range(4)])
    path = RunFiles(run_of(opened)).attempts
    bad = encode({**record_to_json(a_record("bad", True)), **spoilt})
    path.write_bytes(bad + path.read_bytes())
    report = reported(opened)
    assert report.whole.outcomes[Outcome.SCORED] == 4
    assert report.whole.known_usd == pytest.approx(0.004)
    assert any("attempt" in warning for warning in report.warnings)


def test_a_run_that_cannot_be_read_is_named_and_its_cell_is_missing(tmp_path: Path) -> None:
    opened = OpenedSet(write_set(tmp_path, lambda cell: [a_record("c", True)]))
    (run_of(opened) / "run.json").write_text("{")
    report = reported(opened)
    assert report.cells[0].scores == ()
    assert report.whole.planned == 2
    assert any("refunds/base/1" in warning for warning in report.warnings)


def test_tasks_that_a_calibration_leaves_out_are_left_out(tmp_path: Path) -> None:
    opened = a_set(tmp_path, [a_record(f"c{n}", n > 0) for n in range(4)])
    run = run_of(opened)
    lists = ("oracle_failed", "nop_passed", "no_reference", "not_calibrated")
    document = {"schema": CALIBRATION_SCHEMA, "left_out": ["c0"], **{name: [] for name in lists}}
    (run / "calibration.json").write_text(json.dumps(document))
    assert_scores_as_summarised(opened)
    assert (reported(opened).whole.estimate or {})["tasks"] == 3


def test_attempts_of_a_task_and_repeats_are_its_attempts(tmp_path: Path) -> None:
    def records(cell: SetCell) -> list[AttemptRecord]:
        return [
            a_record("x", (cell.cell.repeat, attempt) == (1, 1), attempt=attempt)
            for attempt in (1, 2)
        ] + [a_record("y", True, attempt=attempt) for attempt in (1, 2)]

    opened = OpenedSet(write_set(tmp_path, records, agents=("a",), repeats=2, k=2))
    report = reported(opened)
    assert [s["estimator"] for s in report.whole.scores] == ["avg@4", "pass@4", "pass^4"]
    assert [s["estimate"]["value"] for s in report.whole.scores] == [0.625, 1.0, 0.5]
    assert [s["estimator"] for s in report.cells[0].scores] == ["avg@2", "pass@2", "pass^2"]


def test_a_set_that_stops_at_the_first_success_is_scored_by_pass_at_k(tmp_path: Path) -> None:
    skipped: dict[str, Any] = {"outcome": Outcome.SKIPPED_PASSED, "executions": 0}
    records = [
        a_record("x", True), a_record("x", None, attempt=2, **skipped),
        a_record("y", False), a_record("y", False, attempt=2),
    ]  # fmt: skip
    opened = a_set(tmp_path, records, k=2, plan={"strategy": "pass", "early_stop": True})
    assert_as_summarised(opened)
    row = reported(opened).whole
    assert [(s["estimator"], s["estimate"]["value"]) for s in row.scores] == [("pass@2", 0.5)]


def test_the_newest_run_of_a_cell_counts_and_all_of_them_were_paid(tmp_path: Path) -> None:
    opened = a_set(tmp_path, [a_record("x", False)])
    cell = opened.cells[0]
    write_cell_run(
        opened.files.cell(cell.folder) / "20261202-080000", [a_record("x", True)], cell=cell,
        metrics=[{"name": "passed", "kind": "binary", "higher_is_better": True,
                  "bounds": [0.0, 1.0], "on_failure": 0.0}],
        k=1, cases=1, plan={}, model="m", created_at="2026-12-02T08:00:00.000Z",
    )  # fmt: skip
    report = reported(opened)
    assert (report.whole.estimate or {})["value"] == 1.0
    assert report.whole.cost_usd == pytest.approx(0.001)
    assert report.spent.cost_usd == pytest.approx(0.002)


def test_uneven_repeats_have_a_mean_and_the_least_k(tmp_path: Path) -> None:
    opened = OpenedSet(
        write_set(
            tmp_path, lambda cell: [a_record("x", True), a_record("y", cell.cell.repeat == 1)],
            agents=("a",), packs=("one", "two"), repeats=2,
        )
    )  # fmt: skip
    document = json.loads(opened.files.document.read_text())
    del document["cells"][3]  # the second pack has one repeat less
    opened.files.document.write_text(json.dumps(document))
    whole = reported(OpenedSet(opened.root)).whole
    assert [s["estimator"] for s in whole.scores] == ["avg"]  # pass@1 is the same
    # of one: 1 and 1/2; of two: 1 and 1
    assert whole.scores[0]["estimate"]["value"] == pytest.approx(0.875)
    assert whole.planned == 6


@pytest.mark.integration
def test_a_set_that_really_ran_is_reported_as_its_runs_are(tmp_path: Path) -> None:
    with dear_endpoint(tmp_path) as endpoint:
        model = {"id": "m", "base_url": endpoint.url, "max_request_retries": 0}
        write_project(
            tmp_path,
            agent("reference", "oracle"),
            agent("nothing", "nop"),
            {**agent("dear", "chat"), "model": model},
            prices={"m": {"input_per_mtok": 0, "output_per_mtok": 500_000}},
        )
        result = submitted(tmp_path, "reference", "nothing", "dear", repeats=2)
        opened = result.opened
    assert_as_summarised(opened)
    report = reported(opened)
    values = {str(row.names.agent): (row.estimate or {})["value"] for row in report.agents}
    assert values == {"reference": 1.0, "nothing": 0.0, "dear": 1.0}
    assert report.spent.cost_usd == pytest.approx(6.0)
    assert {choice.agent for choice in report.choices if choice.is_on_frontier} == {"reference"}
    rows = list(rows_of(opened))
    assert len(rows) == 18
    assert sum(row.cost_usd or 0 for row in rows) == pytest.approx(6.0)
    assert {(row.agent, row.verdict) for row in rows} == {
        ("reference", "pass"), ("nothing", "fail"), ("dear", "pass"),
    }  # fmt: skip
    assert all((opened.root / row.trace_path).is_file() for row in rows if row.trace_path)
