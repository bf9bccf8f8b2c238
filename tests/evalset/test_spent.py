"""What a set has spent: what died in flight is the least, never the whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.evalset_status import cost_text
from steelyard.components.steps import Step
from steelyard.components.values import Usage
from steelyard.evalset.following import standing_of
from steelyard.evalset.report.report import read_set
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.spent import set_charge_usd, set_spending
from steelyard.results.layout import attempt_folder
from steelyard.results.lines import encode
from tests.evalset.sets import a_record, write_set
from tests.evalset.test_broken_into import write_events


def test_status_report_and_budget_take_what_is_known_of_a_killed_run_as_the_least(
    tmp_path: Path,
) -> None:
    root = write_set(tmp_path, lambda _cell: [a_record("a", cost_usd=2.0)], agents=("base",))
    dead_run(root, started("b"))
    opened = OpenedSet(root)
    status, report = standing_of(opened), read_set(opened).report
    for spent in (status.spent, status.agents[0].spent, report.spent):
        assert (spent.cost_usd, spent.known_usd) == (None, 2.0)
    assert cost_text(status) == "at least $2.0000"


@pytest.mark.parametrize(("model", "judge"), [("none", None), ("none", {"id": "j"})])
def test_an_agent_without_a_model_costs_nothing_where_it_dies_unless_a_judge_was_asked(
    model: str, judge: Any, tmp_path: Path
) -> None:
    root = write_set(
        tmp_path, lambda _cell: [a_record("a", cost_usd=0.0)], agents=("base",), model=model
    )
    run = dead_run(root, started("b"))
    document = json.loads((run / "run.json").read_text())
    if judge is not None:
        document["identities"]["evaluation"]["benchmark"]["params"] = {"judge": judge}
        (run / "run.json").write_text(json.dumps(document))
    opened = OpenedSet(root)
    assert set_spending(opened).cost_usd == (0.0 if judge is None else None)
    charge_usd = set_charge_usd(opened, set_spending(opened))
    assert charge_usd == 0.0
    assert standing_of(opened).spent.cost_usd == (0.0 if judge is None else None)


def test_a_call_under_way_makes_what_was_recorded_the_least_that_was_paid(tmp_path: Path) -> None:
    root = write_set(tmp_path, lambda _cell: [a_record("a", cost_usd=2.0)], agents=("base",))
    run = dead_run(root, started("b"))
    folder = run / attempt_folder("b", 1)
    folder.mkdir(parents=True)
    step = Step("agent", "hm", usage=Usage(10, 2, requests=1, cost_usd=0.25))
    (folder / "trajectory.jsonl").write_bytes(encode({"schema": "step/1", **step.as_json()}))
    spent = set_spending(OpenedSet(root))
    assert (spent.requests, spent.cost_usd, spent.known_usd) == (2, None, 2.25)


def test_what_waited_for_another_try_when_it_died_is_known_whole(tmp_path: Path) -> None:
    root = write_set(tmp_path, lambda _cell: [a_record("a", cost_usd=2.0)], agents=("base",))
    retry = {
        "kind": "retry", "task_id": "b", "attempt": 1, "execution": 1, "token": "t-1",
        "usage": Usage(10, 2, requests=1, cost_usd=0.25).as_json(),
    }  # fmt: skip
    dead_run(root, started("b"), retry)
    assert set_spending(OpenedSet(root)).cost_usd == 2.25


def started(case: str) -> dict[str, Any]:
    return {"kind": "started", "task_id": case, "attempt": 1, "execution": 1, "token": "t-1"}


def dead_run(root: Path, *events: dict[str, Any]) -> Path:
    """Leave a set's one run as if its process had died after these events."""
    run = next(root.glob("cells/*/*"))
    (run / "metrics.json").unlink()
    (run / "progress.json").unlink()
    write_events(run, {"kind": "planned", "tasks": 2, "k": 1}, *events)
    return run
