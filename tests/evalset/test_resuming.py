"""Going on with a set: what is missing, what failed, what has changed, what it may cost."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.config.errors import BadInput
from steelyard.config.layers import Override
from steelyard.engine.control import Controls
from steelyard.engine.events import RunOutcome
from steelyard.evalset.resuming import ManifestChanged, NothingToDo, plan_resume
from steelyard.evalset.set_folder import SetIsRunning, own_set
from steelyard.evalset.set_plan import plan_submission
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.spent import set_spending
from steelyard.evalset.states import CellState, SetState
from steelyard.evalset.submission import SetResult, run_set
from steelyard.evalset.surroundings import Surroundings
from tests.evalset.projects import (
    agent,
    around,
    dear_endpoint,
    lines,
    planned,
    ran,
    records,
    submitted,
    write_manifest,
    write_pack,
    write_project,
)

ONE = {"max_concurrent_runs": 1}
"""Cells one after the other, each with its cases one after the other: money is spent in order."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    ledger = {"ledger": str(tmp_path)}
    return write_project(
        tmp_path,
        agent("reference", "oracle"),
        agent("nothing", "nop"),
        agent("flaky", "Flaky", ledger),
        agent("sleeping", "Sleeping", ledger),
    )


def resumed(folder: Path, opened: OpenedSet, **options: Any) -> SetResult:
    return ran(plan_resume(OpenedSet(opened.root), around(folder), **options))


def stopped(folder: Path, *agents: str, **fields: Any) -> SetResult:
    """Run a set until one of its agents sleeps, then cancel it."""
    plan = planned(folder, *agents, **fields)

    async def run() -> SetResult:
        controls = Controls()
        running = asyncio.ensure_future(run_set(plan, controls=controls))
        while not (folder / "asleep").exists():
            await asyncio.sleep(0.01)
        controls.cancel(by="a test")
        return await running

    return asyncio.run(run())


def test_what_a_cancelled_set_has_not_done_is_run_and_nothing_else(project: Path) -> None:
    result = stopped(project, "reference", "sleeping", "nothing", limits=ONE)
    assert (result.outcome, result.exit_status) == (RunOutcome.CANCELLED, 130)
    opened = OpenedSet(result.opened.root)
    assert opened.state() is SetState.CANCELLED
    states = [status.state for status in opened.statuses()]
    assert states == [CellState.COMPLETED, CellState.CANCELLED, CellState.PENDING]
    (project / "awake").touch()
    again = resumed(project, opened)
    assert [cell.index for cell in again.submission.cells and again.opened.cells] == [0, 1, 2]
    assert again.submission.cells == (1, 2)
    assert (again.outcome, again.submission.number) == (RunOutcome.COMPLETED, 2)
    assert len(opened.run_dirs(opened.cells[0])) == 1
    with pytest.raises(NothingToDo, match="every cell has ended"):
        resumed(project, opened)


def test_retry_runs_what_failed_but_not_by_the_agent(project: Path) -> None:
    result = submitted(project, "reference", "flaky")
    assert (result.outcome, result.exit_status) == (RunOutcome.PARTIAL_FAILURE, 1)
    opened = result.opened
    with pytest.raises(NothingToDo):
        resumed(project, opened)
    (project / "mended").touch()
    before = len(lines(project / "tried"))
    again = resumed(project, opened, kind="retry")
    assert again.submission.cells == (1,)
    assert (again.outcome, again.exit_status) == (RunOutcome.COMPLETED, 0)
    assert lines(project / "tried")[before:] == ["case-2"]
    outcomes = Counter(record.outcome for record in records(opened)["p/flaky/1"])
    assert outcomes == {Outcome.SCORED: 2, Outcome.FAILED_ERROR: 1}
    with pytest.raises(NothingToDo, match="not the agent's"):
        resumed(project, opened, kind="retry")


def test_a_set_is_still_a_partial_failure_where_only_other_cells_were_gone_on_with(
    project: Path,
) -> None:
    result = stopped(project, "flaky", "sleeping", limits=ONE)
    (project / "awake").touch()
    again = resumed(project, result.opened)
    assert again.launch.outcome is RunOutcome.COMPLETED
    assert (again.outcome, again.exit_status) == (RunOutcome.PARTIAL_FAILURE, 1)


@pytest.mark.integration
def test_a_spent_budget_is_resumed_with_a_new_limit_of_the_whole(project: Path) -> None:
    with dear_endpoint(project) as endpoint:
        result = submitted(project, "dear", repeats=2, budget_usd=4.0, limits=ONE)
        assert result.outcome is RunOutcome.BUDGET_EXCEEDED
        with pytest.raises(BadInput, match=r"budget of \$4 is spent: \$4.*") as raised:
            resumed(project, result.opened)
        assert "--budget-usd" in str(raised.value)
        again = resumed(project, result.opened, budget_usd=5.0)
        assert again.outcome is RunOutcome.BUDGET_EXCEEDED
        assert again.opened.budget_usd() == 5.0
        last = resumed(project, result.opened, budget_usd=60.0)
        assert last.outcome is RunOutcome.COMPLETED
        assert sum(endpoint.stats()["by_model"].values()) == 6
    assert set_spending(last.opened).cost_usd == 6.0


def test_the_command_lines_settings_are_kept_with_the_set(project: Path) -> None:
    path = write_manifest(project, "nothing", "sleeping", limits=ONE)
    overrides = (
        Override(("execution", "limit"), "2", "--limit", is_text=True),
        Override(("runtime", "results_dir"), str(project / "results"), "--results-dir"),
    )
    plan = plan_submission(path, Surroundings((), overrides, project, {}))
    (project / "awake").touch()
    result = ran(plan)
    shutil.rmtree(result.opened.files.cell(result.opened.cells[1].folder))
    again = resumed(project, result.opened)
    assert [len(found) for found in records(again.opened).values()] == [2, 2]


def test_a_set_that_runs_is_not_gone_on_with(project: Path) -> None:
    result = submitted(project, "nothing")
    owned = own_set(result.opened)
    try:
        with pytest.raises(SetIsRunning):
            resumed(project, result.opened)
    finally:
        owned.release()


# -- changes -----------------------------------------------------------------------------------


def remade(folder: Path, *agents: str, **fields: Any) -> None:
    write_manifest(folder, *agents, runtime={"results_dir": str(folder / "results")}, **fields)


def test_what_was_added_to_the_manifest_runs_where_it_is_accepted(project: Path) -> None:
    result = submitted(project, "nothing")
    remade(project, "reference", "nothing", repeats=2)
    with pytest.raises(ManifestChanged) as raised:
        resumed(project, result.opened)
    assert "added: p/reference/1" in str(raised.value)
    assert "--accept-changes" in str(raised.value)
    again = resumed(project, result.opened, accepts_changes=True)
    assert again.outcome is RunOutcome.COMPLETED
    keys = {cell.matrix_key: cell.index for cell in again.opened.cells}
    assert keys["p/nothing/1"] == 0
    assert sorted(keys.values()) == [0, 1, 2, 3]
    assert len(again.submission.cells) == 3
    assert len(again.opened.run_dirs(again.opened.cells[0])) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"agents": ("reference",)}, "removed: p/nothing/1"),
        ({"execution": {"max_retries": 2}}, "execution.max_retries: not set -> 2"),
        ({"name": "other"}, "name: 'nightly' -> 'other'"),
        ({"seeds": {"strategy": "explicit", "seeds": [5]}}, "seed"),
    ],
)
def test_what_alters_what_the_set_has_is_refused_even_so(
    project: Path, change: dict[str, Any], said: str
) -> None:
    result = submitted(project, "nothing")
    fields = dict(change)
    remade(project, *fields.pop("agents", ("nothing",)), **fields)
    for accepts in (False, True):
        with pytest.raises(ManifestChanged) as raised:
            resumed(project, result.opened, accepts_changes=accepts)
        assert said in str(raised.value)


def test_a_pack_that_has_changed_is_refused(project: Path) -> None:
    result = stopped(project, "nothing", "sleeping", limits=ONE)
    write_pack(project / "packs" / "p", cases=4, version=2)
    with pytest.raises(ManifestChanged, match=r"the pack p has changed: p@1 .* -> p@2"):
        resumed(project, result.opened, accepts_changes=True)


def test_a_deployment_that_does_something_else_is_refused_and_one_reached_elsewhere_is_not(
    project: Path,
) -> None:
    result = stopped(project, "nothing", "sleeping", limits=ONE)
    (project / "awake").touch()
    document = json.loads((project / "steelyard.yaml").read_text())
    one = next(each for each in document["deployments"] if each["name"] == "sleeping")
    one["harness"]["seconds"] = 9
    (project / "steelyard.yaml").write_text(json.dumps(document))
    with pytest.raises(ManifestChanged, match="the deployment sleeping has changed"):
        resumed(project, result.opened)
    del one["harness"]["seconds"]
    one["model"]["max_connections"] = 3
    (project / "steelyard.yaml").write_text(json.dumps(document))
    assert resumed(project, result.opened).outcome is RunOutcome.COMPLETED


def test_a_manifest_that_is_gone_is_read_from_the_set(project: Path) -> None:
    result = stopped(project, "sleeping")
    (project / "set.yaml").unlink()
    (project / "awake").touch()
    assert resumed(project, result.opened).outcome is RunOutcome.COMPLETED


def test_budget_and_bounds_of_the_manifest_may_change(project: Path) -> None:
    result = stopped(project, "sleeping")
    (project / "awake").touch()
    remade(project, "sleeping", limits={"max_concurrent_runs": 7, "budget_usd": 3})
    with pytest.raises(ManifestChanged, match=r"limits.*budget_usd"):
        resumed(project, result.opened)
    again = resumed(project, result.opened, accepts_changes=True)
    assert again.opened.budget_usd() == 3
    assert replace(again.submission, number=0).kind == "resume"


def test_explicit_seeds_may_be_added_with_repeats_and_not_changed(project: Path) -> None:
    explicit = {"strategy": "explicit", "seeds": [5, 6]}
    result = submitted(project, "nothing", repeats=2, seeds=explicit)
    remade(project, "nothing", repeats=3, seeds={**explicit, "seeds": [5, 6, 7]})
    again = resumed(project, result.opened, accepts_changes=True)
    assert again.submission.cells == (2,)
    remade(project, "nothing", repeats=3, seeds={**explicit, "seeds": [5, 9, 7]})
    with pytest.raises(ManifestChanged, match="seed 6 -> 9"):
        resumed(project, result.opened, accepts_changes=True)


@pytest.mark.parametrize("execution", [{"limit": 1}, {"attempts": {"k": 2}}])
def test_a_configuration_file_that_chooses_other_tasks_is_refused(
    project: Path, execution: dict[str, Any]
) -> None:
    result = stopped(project, "nothing", "sleeping", limits=ONE)
    (project / "awake").touch()
    document = json.loads((project / "steelyard.yaml").read_text())
    (project / "steelyard.yaml").write_text(json.dumps({**document, "execution": execution}))
    with pytest.raises(ManifestChanged, match=f"execution.{next(iter(execution))}"):
        resumed(project, result.opened)
    (project / "steelyard.yaml").write_text(json.dumps(document))
    assert resumed(project, result.opened).outcome is RunOutcome.COMPLETED


def test_a_set_that_has_ended_is_said_to_have_whatever_became_of_the_project(project: Path) -> None:
    result = submitted(project, "nothing")
    (project / "steelyard.yaml").unlink()
    for kind in ("resume", "retry"):
        with pytest.raises(NothingToDo):
            resumed(project, result.opened, kind=kind)
