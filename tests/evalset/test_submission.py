"""A set from its manifest to its runs: one orchestration, whose cells are requests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.config.errors import BadInput
from steelyard.engine.events import RunOutcome
from steelyard.evalset.expansion import derived_seed
from steelyard.evalset.set_folder import SetIsRunning, own_set
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.states import CellState, SetState
from steelyard.results.documents import read_run_document
from steelyard.results.reader import RunReader
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.launching import run_all
from tests.evalset.projects import (
    agent,
    dear_endpoint,
    lines,
    planned,
    ran,
    records,
    submitted,
    write_pack,
    write_project,
)
from tests.harnesses.asking import AGENT

ONE = {"max_concurrent_runs": 1}
"""Cells one after the other, each with its cases one after the other: money is spent in order."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(
        tmp_path,
        agent("reference", "oracle"),
        agent("nothing", "nop"),
        agent("paying", "Paying", {"ledger": str(tmp_path)}),
    )


def test_every_cell_is_a_request_of_one_orchestration(project: Path) -> None:
    result = submitted(project, "reference", "nothing", repeats=2)
    assert (result.outcome, result.exit_status) == (RunOutcome.COMPLETED, 0)
    assert [request.name for request in result.launch.requests] == [
        "0000-p-reference-1", "0001-p-reference-2", "0002-p-nothing-1", "0003-p-nothing-2",
    ]  # fmt: skip
    opened = OpenedSet(result.opened.root)
    assert opened.state() is SetState.COMPLETED
    assert opened.root.parent == project / "results" / "nightly"
    scores = {
        key: [record.metrics["correct"] for record in found]
        for key, found in records(opened).items()
    }
    assert scores == {
        "p/reference/1": [True] * 3, "p/reference/2": [True] * 3,
        "p/nothing/1": [False] * 3, "p/nothing/2": [False] * 3,
    }  # fmt: skip


def test_a_set_of_one_cell_writes_what_launch_of_that_request_writes(project: Path) -> None:
    plan = planned(project, "reference")
    result = ran(plan)
    (request,) = plan.prepared.plan.orchestration.requests
    written = request.model_dump(mode="json", exclude_unset=True)
    launched = run_all(project, {**written, "output": {}})
    ours, theirs = result.launch.requests[0].run_dir, launched.requests[0].run_dir
    assert ours is not None
    assert theirs is not None
    names = {path.relative_to(ours).as_posix() for path in ours.rglob("*")}
    assert names == {path.relative_to(theirs).as_posix() for path in theirs.rglob("*")}
    assert stripped(read_run_document(ours)) == stripped(read_run_document(theirs))
    for pair in zip(RunReader(ours).records(), RunReader(theirs).records(), strict=True):
        one, other = pair
        assert (one.task_id, one.metrics, one.generation, one.evaluation, one.outcome) == (
            other.task_id, other.metrics, other.generation, other.evaluation, other.outcome
        )  # fmt: skip
    metrics = [json.loads((root / "metrics.json").read_text()) for root in (ours, theirs)]
    assert metrics[0]["scores"] == metrics[1]["scores"]


def stripped(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out of `run.json` what is of a time or a place."""
    kept = {
        name: value
        for name, value in document.items()
        if name not in {"run_id", "created_at", "ordered_at"}
    }
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]


@pytest.mark.parametrize(("fanout", "bound"), [(False, 1), (True, None)])
def test_cases_of_a_cell_run_one_after_the_other_unless_they_fan_out(
    project: Path, fanout: bool, bound: int | None
) -> None:
    plan = planned(project, "reference", case_fanout=fanout)
    (request,) = plan.prepared.plan.orchestration.requests
    assert request.execution.max_concurrent_attempts == bound


def test_a_bound_that_the_manifest_sets_itself_is_kept(project: Path) -> None:
    execution = {"max_concurrent_attempts": 2, "task_concurrency": 7}
    whole = planned(project, "reference", execution=execution).prepared.plan.orchestration
    assert whole.requests[0].execution.max_concurrent_attempts == 2
    assert whole.task_concurrency == 7


def test_as_many_cells_as_the_manifest_allows_are_open_at_once(project: Path) -> None:
    limits = {"max_concurrent_runs": 2}
    result = submitted(project, "reference", "nothing", repeats=3, limits=limits)
    spans = []
    for cell in result.opened.cells:
        reader = result.opened.reader(cell)
        assert reader is not None
        assert reader.finished is not None
        spans.append((str(reader.document["created_at"]), str(reader.finished["at"])))
    most = max(sum(a <= began < b for a, b in spans) for began, _ in spans)
    assert most == 2


def test_the_seed_of_a_repeat_is_the_same_in_every_cell(project: Path) -> None:
    submitted(project, "paying", repeats=2)
    seen = Counter(line.split()[0] for line in lines(project / "paid"))
    assert seen == {str(derived_seed("nightly", repeat)): 3 for repeat in (1, 2)}


@pytest.mark.integration
def test_models_and_seeds_reach_the_endpoint(project: Path) -> None:
    with MockEndpoint("--text", "right", "--keep-bodies", "50") as endpoint:
        model = {"id": "own", "base_url": endpoint.url}
        write_project(project, {**agent("chatter", "chat"), "model": model})
        seeds = {"strategy": "explicit", "seeds": [7, 3]}
        result = submitted(project, "chatter", models=["m1", "m2"], repeats=2, seeds=seeds)
        assert result.outcome is RunOutcome.COMPLETED
        bodies = [json.loads(kept["body"]) for kept in endpoint.stats()["bodies"]]
    asked = Counter((body["model"], body["seed"]) for body in bodies)
    assert asked == {(model, seed): 3 for model in ("m1", "m2") for seed in (7, 3)}
    assert {f"seed {body['seed']}" in body["messages"][0]["content"] for body in bodies} == {True}


@pytest.mark.integration
def test_models_and_seeds_reach_a_program_in_the_sandbox(project: Path) -> None:
    script = f"python3 - <<'AGENT'\n{AGENT}\nAGENT\necho seed $STEELYARD_SEED\n"
    with MockEndpoint("--text", "right", "--keep-bodies", "50") as endpoint:
        program = {
            "name": "program",
            "harness": {
                "id": "command",
                "run": ["sh", "-c", script],
                "answer": {"stream": "stdout"},
            },
            "model": {"id": "own", "base_url": endpoint.url},
            "environment": {"id": "sandbox"},
        }
        write_project(project, program)
        seeds = {"strategy": "explicit", "seeds": [41]}
        result = submitted(project, "program", models=["m1", "m2"], seeds=seeds)
        bodies = [json.loads(kept["body"]) for kept in endpoint.stats()["bodies"]]
    assert result.outcome is RunOutcome.COMPLETED, result.launch.requests[0].reason
    asked = Counter((body["model"], body["seed"]) for body in bodies)
    assert asked == {("m1", 41): 3, ("m2", 41): 3}
    answers = {
        str(r.answer).split("\n")[-1] for one in records(result.opened).values() for r in one
    }
    assert answers == {"seed 41"}


def test_a_key_that_is_not_set_is_named_before_anything_starts(project: Path) -> None:
    model = {"id": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "${NO_SUCH_KEY}"}
    write_project(project, {**agent("keyed", "chat"), "model": model}, agent("reference", "oracle"))
    with pytest.raises(BadInput, match="NO_SUCH_KEY") as raised:
        planned(project, "keyed")
    assert raised.value.problems[0].where.file == "steelyard.yaml"
    assert not (project / "results").exists()
    assert submitted(project, "reference").exit_status == 0  # which does not use it


def test_everything_wrong_with_references_is_said_at_once(project: Path) -> None:
    with pytest.raises(BadInput) as raised:
        planned(project, "referense", "nothin", packs=["p", "qq", "p@7"])
    said = str(raised.value)
    expected = ("'referense'", "'reference'", "'nothin'", "'nothing'", "'qq'", "version 7")
    assert [part for part in expected if part not in said] == [], said
    assert len(raised.value.problems) == 4


def test_an_explicit_id_that_is_taken_is_refused(project: Path) -> None:
    output = {"run_id": "first", "run_name": "group"}
    result = submitted(project, "nothing", output=output)
    assert result.opened.root == project / "results" / "group" / "nightly" / "first"
    with pytest.raises(BadInput, match="is in use"):
        planned(project, "nothing", output=output)


def test_two_sets_of_one_second_have_ids_of_their_own(project: Path) -> None:
    roots = {submitted(project, "nothing").opened.root for _ in range(3)}
    assert len(roots) == 3


def test_a_set_that_runs_is_not_run_by_another_process(project: Path) -> None:
    result = submitted(project, "nothing")
    owned = own_set(result.opened)
    try:
        with pytest.raises(SetIsRunning, match="running now"):
            own_set(result.opened)
    finally:
        owned.release()


@pytest.mark.integration
def test_the_budget_stops_the_set_and_says_which_cells_it_stopped(project: Path) -> None:
    with dear_endpoint(project) as endpoint:
        result = submitted(project, "dear", repeats=4, budget_usd=4.0, limits=ONE)
        assert (result.outcome, result.exit_status) == (RunOutcome.BUDGET_EXCEEDED, 4)
        assert sum(endpoint.stats()["by_model"].values()) == 4
    opened = OpenedSet(result.opened.root)
    assert opened.state() is SetState.BUDGET_EXCEEDED
    states = [status.state for status in opened.statuses()]
    assert states == [CellState.COMPLETED, *[CellState.SKIPPED_BUDGET] * 3]
    skipped = sum(status.outcomes.get(Outcome.SKIPPED_BUDGET, 0) for status in opened.statuses())
    assert skipped == 12 - 4
    assert all(status.planned == 3 for status in opened.statuses())


def test_a_pack_of_one_ref_may_stand_beside_another_version(project: Path, tmp_path: Path) -> None:
    write_pack(tmp_path / "later" / "p", cases=2, version=2)
    result = submitted(project, "reference", packs=["p", "./later/p"])
    assert [len(found) for found in records(result.opened).values()] == [3, 2]
    assert [cell.pack.version for cell in result.opened.cells] == [1, 2]
