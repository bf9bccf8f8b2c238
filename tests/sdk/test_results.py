"""Typed results: of this launch, and of runs that were made earlier."""

from __future__ import annotations

import dataclasses
import json
import traceback
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.components.issues import Outcome
from steelyard.components.values import Usage
from steelyard.engine.events import RequestResult, RunOutcome
from steelyard.results.kept_files import KeptFileUnreadable
from steelyard.results.lines import encode
from steelyard.sdk.results import run_result
from tests.sdk.parts import Say, Sums


@pytest.fixture
def run() -> sy.RunResult:
    return sy.run(Sums, Say(Say.Params(text="2")), k=3)


def test_a_run_read_later_is_the_same(run: sy.RunResult) -> None:
    found = sy.load_run(run.run_dir)
    for field in dataclasses.fields(sy.RunResult):
        if field.name not in ("_redact", "metrics"):
            assert getattr(found, field.name) == getattr(run, field.name), field.name
    assert found.metrics is not None
    assert (
        found.metrics["scores"] == json.loads((run.run_dir / "metrics.json").read_text())["scores"]
    )


def test_of_a_folder_of_runs_the_newest_is_read(run: sy.RunResult) -> None:
    newer = sy.run(Sums, Say(Say.Params(text="2")), k=3)
    assert sy.load_run(run.run_dir.parent).run_id == newer.run_id


def test_reading_what_is_no_run_says_so_without_how_it_was_found_out(own_folder: Path) -> None:
    with pytest.raises(sy.RunUnreadable) as caught:
        sy.load_run("nix")
    text = "".join(traceback.format_exception(caught.value))
    assert "direct cause" not in text
    assert text.count('  File "') == 2


def test_reading_what_is_no_run_is_bad_input(own_folder: Path) -> None:
    with pytest.raises(sy.RunUnreadable, match="there is no run here"):
        sy.load_run(own_folder)
    with pytest.raises(sy.BadInput, match="there is no run here"):
        sy.load_run(own_folder / "nowhere")


def test_the_records_are_read_as_one_goes_and_may_be_chosen(run: sy.RunResult) -> None:
    assert len(list(run.attempts())) == 9
    chosen = list(run.attempts(lambda record: record.task_id == "sum-1"))
    assert [record.attempt for record in chosen] == [1, 2, 3]
    assert all(isinstance(record, sy.AttemptRecord) for record in chosen)
    assert {record.task_id for record in run.failures()} == {"sum-0", "sum-2"}


def test_every_estimator_of_every_metric_is_there(run: sy.RunResult) -> None:
    assert {(score.metric, score.estimator) for score in run.scores} == {
        ("right", "avg@3"), ("right", "pass@3"), ("right", "pass^3"), ("chars", "avg@3"),
    }  # fmt: skip
    assert run.score() is run.headline
    assert run.score("chars").value == 1.0
    assert run.score(estimator="pass@3").metric == "right"
    with pytest.raises(KeyError, match=r"no speed; it has: right avg@3, .*chars avg@3"):
        run.score("speed")


def test_a_score_says_how_sure_it_is(run: sy.RunResult) -> None:
    score = run.score()
    assert score.value == pytest.approx(1 / 3)
    assert score.standard_error == pytest.approx(1 / 3)
    assert score.estimate.level == 0.95
    assert (score.estimate.tasks, score.coverage.planned, score.coverage.missing) == (3, 9, 0)
    assert score.bounds == (score.value, score.value)
    assert str(score) == "right avg@3: 0.333 [0.000, 1.000] (9/9)"


def test_a_partial_run_is_not_official_and_its_bounds_are_apart() -> None:
    class Flaky(Say):
        api = 1
        id = "flaky"

        async def run(self, context: sy.HarnessContext) -> sy.HarnessResult:
            if context.task_id == "sum-2":
                raise RuntimeError("not this one")
            return sy.HarnessResult("1")

    run = sy.run(Sums, Flaky)
    score = run.score()
    assert not score.is_official
    assert score.coverage.missing == 1
    assert score.bounds == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert "not official" in str(score)
    failed = list(run.failures())
    assert [record.task_id for record in failed] == ["sum-1", "sum-2"]


def test_answers_and_trajectories_are_read_from_where_they_lie() -> None:
    long = "x" * 100_000
    run = sy.run({"id": Sums, "tasks": 1}, Say(Say.Params(text=long)))
    record = next(run.attempts())
    assert record.answer is None
    assert run.answer(record) == long
    trajectory = run.trajectory(record)
    assert trajectory is not None
    assert trajectory["schema_version"].startswith("ATIF-")
    assert trajectory["steps"][0]["message"] == long
    assert run.trajectory(dataclasses.replace(record, trajectory=None)) is None


def test_a_record_cannot_lead_out_of_the_run(run: sy.RunResult, own_folder: Path) -> None:
    (own_folder / "secret.json").write_text("{}")
    record = next(run.attempts())
    for path in ("../../../secret.json", str(own_folder / "secret.json")):
        forged = dataclasses.replace(record, answer_file=path, trajectory={"path": path})
        with pytest.raises(KeptFileUnreadable, match="leads out of the run directory"):
            run.answer(forged)
        with pytest.raises(KeptFileUnreadable, match="leads out of the run directory"):
            run.trajectory(forged)
    gone = dataclasses.replace(record, trajectory={"path": "tasks/none.json"})
    with pytest.raises(KeptFileUnreadable, match="is missing"):
        run.trajectory(gone)


def test_results_cannot_be_changed_and_are_short_to_look_at(run: sy.RunResult) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        run.counts[sy.Outcome.SCORED] = 1  # type: ignore[index]
    assert repr(run) == (
        "<RunResult 'none_Sums_Say' completed: right avg@3: 0.333 [0.000, 1.000] (9/9)>"
    )
    whole = sy.launch(sy.Request(Sums, Say, name="r"))
    assert repr(whole) == "<LaunchResult completed: 'r'>"


def test_the_working_folder_may_change(
    run: sy.RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    assert len(list(run.attempts())) == 9


@pytest.mark.integration
def test_usage_and_cost_are_typed(model_url: str) -> None:
    prices = {"small": {"input_per_mtok": 1_000_000, "output_per_mtok": 0}}
    run = sy.run(Sums, "chat", sy.Model("small", base_url=model_url), settings={"prices": prices})
    assert isinstance(run.usage, Usage)
    assert run.usage.requests == 3
    assert run.cost_usd == pytest.approx(run.usage.input_tokens)
    unpriced = sy.run(Sums, "chat", sy.Model("small", base_url=model_url))
    assert unpriced.cost_usd is None


def test_a_journal_that_ends_with_no_outcome_of_ours_is_refused(run: sy.RunResult) -> None:
    events = run.run_dir / "events.jsonl"
    lines = events.read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1].rpartition(b"\t")[0]) | {"outcome": "exploded"}
    events.write_bytes(b"".join([*lines[:-1], encode(last)]))
    with pytest.raises(sy.RunUnreadable, match="unknown outcome 'exploded'"):
        sy.load_run(run.run_dir)
    events.write_bytes(b"".join(lines[:-1]))
    dead = sy.load_run(run.run_dir)
    assert (dead.outcome, dead.is_complete) == (None, False)
    assert repr(dead).startswith("<RunResult 'none_Sums_Say' not ended: ")
    assert "not ended" in dead._repr_html_()
    with pytest.raises(sy.NotCompleted, match="none_Sums_Say: not ended"):
        dead.require_completed()


def test_a_request_that_never_began_has_a_result_and_nothing_to_read() -> None:
    counts = dict.fromkeys(Outcome, 0)
    why = "SIGINT was received"
    never = run_result(RequestResult("late", RunOutcome.CANCELLED, why, None, 0, counts, None), str)
    assert (never.run_dir, never.run_id, never.planned, never.headline) == (None, None, 0, None)
    assert list(never.attempts()) == list(never.failures()) == []
    assert not never.is_complete
    assert why in never._repr_html_()
    with pytest.raises(sy.BadInput, match="late never began"):
        sy.compare(never, never)
