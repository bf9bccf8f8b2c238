"""What broke sets once: two that go on at once, killed again and again, folders edited by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.components.values import Usage
from steelyard.config.errors import BadInput
from steelyard.evalset.following import standing_of
from steelyard.evalset.report.report import read_set
from steelyard.evalset.resuming import plan_resume
from steelyard.evalset.set_reader import OpenedSet, SetUnreadable
from steelyard.evalset.spent import set_charge_usd, set_spending
from steelyard.evalset.submission import SetWentOn
from steelyard.results.lines import encode
from tests.evalset.projects import around, dear_endpoint, ran, submitted
from tests.evalset.sets import a_record, verdicts, write_set

ONE = {"max_concurrent_runs": 1}
Edit = Callable[[dict[str, Any]], None]


def test_a_resume_planned_before_another_one_ran_spends_nothing(tmp_path: Path) -> None:
    with dear_endpoint(tmp_path) as endpoint:
        opened = submitted(tmp_path, "dear", repeats=3, budget_usd=2.0, limits=ONE).opened
        first = plan_resume(opened, around(tmp_path), budget_usd=5.0)
        second = plan_resume(opened, around(tmp_path), budget_usd=5.0)
        ran(first)
        with pytest.raises(SetWentOn, match="meanwhile"):
            ran(second)
        assert endpoint.stats()["calls"] == 5
        assert set_spending(opened).cost_usd == 5.0
        assert [one.kind for one in opened.submissions()] == ["submit", "resume"]
        assert not opened.is_running()


def test_what_was_ended_in_the_middle_of_a_call_counts_against_the_budget(tmp_path: Path) -> None:
    cut = a_record(
        "c", None, outcome=Outcome.CANCELLED, usage=Usage(requests=1, cost_usd=None)
    )  # fmt: skip
    root = write_set(
        tmp_path,
        lambda _cell: [a_record("a", cost_usd=0.5), a_record("b", cost_usd=2.0), cut],
        agents=("base",),
    )
    opened = OpenedSet(root)
    spent = set_spending(opened)
    assert (spent.cost_usd, spent.known_usd) == (None, 2.5)
    assert set_charge_usd(opened, spent) == 4.5  # as much as the dearest that is known


def test_what_died_in_flight_is_paid_and_nobody_says_it_was_nothing(tmp_path: Path) -> None:
    root = write_set(tmp_path, lambda _cell: [a_record("a", cost_usd=2.0)], agents=("base",))
    run = next(root.glob("cells/*/*"))
    (run / "metrics.json").unlink()
    (run / "progress.json").unlink()
    started = {"kind": "started", "task_id": "b", "attempt": 1, "execution": 1, "token": "t-1"}
    write_events(run, {"kind": "planned", "tasks": 2, "k": 1}, started)
    opened = OpenedSet(root)
    spent = set_spending(opened)
    assert (spent.cost_usd, spent.known_usd) == (None, 2.0)
    assert set_charge_usd(opened, spent) == 4.0


def write_events(run: Path, *events: dict[str, Any]) -> None:
    at = "2026-12-01T08:00:00.000Z"
    lines = (
        encode({"schema": "event/1", "seq": seq, "at": at, **event})
        for seq, event in enumerate(events, 1)
    )
    (run / "events.jsonl").write_bytes(b"".join(lines))


def set_cell(**changes: Any) -> Edit:
    return lambda document: document["cells"][0].update(changes)


def set_document(**changes: Any) -> Edit:
    return lambda document: document.update(changes)


@pytest.mark.parametrize(
    "edit",
    [
        set_cell(model_ref=[]),
        set_cell(model_ref=-1),
        set_cell(repeat=[]),
        set_cell(repeat=0),
        set_cell(index=-1),
        set_cell(seed="7"),
        set_cell(matrix_key=None),
        set_cell(agent_label=7),
        set_document(manifest=None),
        set_document(manifest_file=-1),
        lambda document: document["packs"][0].update(version="2"),
        lambda document: document["packs"][0].update(path=None),
        lambda document: document["agents"][0].update(digest=[]),
    ],
)
def test_a_document_with_a_value_of_the_wrong_kind_is_named(edit: Edit, tmp_path: Path) -> None:
    root = a_set(tmp_path)
    document = json.loads((root / "evalset.json").read_text())
    edit(document)
    (root / "evalset.json").write_text(json.dumps(document))
    with pytest.raises(SetUnreadable, match="was changed by hand"):
        OpenedSet(root)


@pytest.mark.parametrize(
    "changes",
    [{"ended_at": -1}, {"reason": -1}, {"began_at": []}, {"budget_usd": "1"}, {"exit_status": "0"}],
)
def test_a_submission_with_a_value_of_the_wrong_kind_is_named(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    root = a_set(tmp_path)
    file = root / "submissions" / "0001.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    with pytest.raises(BadInput, match="changed by hand"):
        OpenedSet(root).submissions()
    assert any("0001" in warning for warning in standing_of(OpenedSet(root)).warnings)


@pytest.mark.parametrize(
    "spent", [None, {}, {"requests": -1}, [], {"requests": 1, "input_tokens": "x"}, "much"]
)
def test_figures_that_are_none_are_made_from_the_records(spent: Any, tmp_path: Path) -> None:
    root = a_set(tmp_path)
    right = set_spending(OpenedSet(root))
    for file in root.glob("cells/*/*/metrics.json"):
        file.write_text(json.dumps({"schema": "metrics/1", "spent": spent}))
    assert set_spending(OpenedSet(root)) == right
    assert standing_of(OpenedSet(root)).spent == right
    assert read_set(OpenedSet(root)).report.spent == right


def test_figures_below_nothing_do_not_lengthen_a_budget(tmp_path: Path) -> None:
    root = a_set(tmp_path)
    right = set_spending(OpenedSet(root))
    for file in root.glob("cells/*/*/metrics.json"):
        figures = json.loads(file.read_text())
        figures["spent"] |= {"cost_usd": -100.0, "known_cost_usd": -100.0}
        file.write_text(json.dumps(figures))
    assert set_spending(OpenedSet(root)) == right


def a_set(tmp_path: Path) -> Path:
    return write_set(tmp_path, verdicts({"base": {"c": [True]}, "new": {"c": [False]}}))


def test_a_combination_that_has_not_begun_is_missing_and_not_left_out(tmp_path: Path) -> None:
    """Of an agent under two models one has not begun: its attempts count as missing."""
    root = write_set(
        tmp_path,
        lambda cell: (
            None
            if (cell.agent.shown, cell.cell.model_ref) == ("new", "large")
            else [a_record("a", attempt=attempt) for attempt in (1, 2)]
        ),
        models=("small", "large"),
        k=2,
        cases=3,
        outcome=None,
    )
    report = read_set(OpenedSet(root)).report
    rows = {"whole": report.whole} | {str(row.names.agent): row for row in report.agents}
    assert {name: row.planned for name, row in rows.items()} == {
        "whole": 24, "base": 12, "new": 12,
    }  # fmt: skip
    covered = {name: (row.headline or {})["coverage"] for name, row in rows.items()}
    assert {name: (one["planned"], one["counted"]) for name, one in covered.items()} == {
        "whole": (24, 6), "base": (12, 4), "new": (12, 2),
    }  # fmt: skip
    assert {(row.headline or {})["official"] for row in rows.values()} == {None}


def test_an_agent_with_a_model_that_has_not_begun_has_no_official_score(tmp_path: Path) -> None:
    root = write_set(
        tmp_path,
        lambda cell: None if cell.cell.model_ref == "large" else [a_record("a"), a_record("b")],
        agents=("base",),
        models=("small", "large"),
        outcome=None,
    )
    (row,) = read_set(OpenedSet(root)).report.agents
    head = row.headline or {}
    assert (head["official"], head["failures_as_zero"]) == (None, 0.5)
    assert (head["coverage"]["planned"], head["coverage"]["missing"]) == (4, 2)


@pytest.mark.parametrize("changes", [{"elapsed_s": "x"}, {"elapsed_s": []}, {"running": "many"}])
@pytest.mark.parametrize("outcome", ["completed", None])
def test_a_snapshot_with_nonsense_says_nothing(
    changes: dict[str, Any], outcome: str | None, tmp_path: Path
) -> None:
    root = a_set(tmp_path)
    for file in root.glob("cells/*/*/progress.json"):
        known = json.loads(file.read_text()) | {"outcome": outcome}
        file.write_text(json.dumps(known | changes))
    for status in OpenedSet(root).statuses():
        assert status.state == "completed"
        assert status.elapsed_s in (0.0, 60.0)
        assert status.running == 0
