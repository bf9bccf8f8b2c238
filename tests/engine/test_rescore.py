"""Only the scoring changed: saved answers are scored again, and no agent runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome, Phase
from steelyard.engine.events import LaunchResult
from steelyard.engine.explain import explain
from steelyard.results.records import AttemptRecord
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.launching import records, request, resolved, run_all


def in_order(result: LaunchResult) -> list[AttemptRecord]:
    return sorted(records(result), key=lambda record: (record.task_id, record.attempt))


def scored_by(version: str, **more: Any) -> dict[str, Any]:
    return request(benchmark={"version": version, **more.pop("benchmark", {})}, **more)


def test_a_changed_score_runs_no_agent(tmp_path: Path) -> None:
    first = run_all(tmp_path, scored_by("1", harness={"ledger": str(tmp_path / "ran")}))
    ran = (tmp_path / "ran").read_text()
    again = run_all(
        tmp_path,
        scored_by("2", harness={"ledger": str(tmp_path / "ran")}, runtime={"reuse": True}),
    )
    assert (tmp_path / "ran").read_text() == ran
    for old, new in zip(in_order(first), in_order(again), strict=True):
        assert new.reused_from is not None
        assert new.generation == old.generation
        assert new.evaluation != old.evaluation
        assert new.answer == old.answer
        assert new.timing.agent_s == old.timing.agent_s


def test_a_scorer_that_crashed_is_run_again_without_its_agent(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ran")
    broken = scored_by("1", benchmark={"scorer_crashes": True}, harness={"ledger": ledger})
    first = run_all(tmp_path, broken)
    assert first.requests[0].counts[Outcome.FAILED_FATAL] == 5
    ran = Path(ledger).read_text()
    mended = scored_by("1", harness={"ledger": ledger}, runtime={"reuse": True})
    again = run_all(tmp_path, mended)
    assert again.requests[0].counts[Outcome.SCORED] == 5
    assert Path(ledger).read_text() == ran
    assert all(
        issue.phase is not Phase.EVALUATE for record in records(again) for issue in record.issues
    )


def test_what_scoring_needs_of_the_environment_was_kept_so_no_agent_runs(tmp_path: Path) -> None:
    collects = {"collects": True}
    ledger = str(tmp_path / "ran")
    run_all(tmp_path, scored_by("1", benchmark=collects, harness={"ledger": ledger}))
    ran = Path(ledger).read_text()
    again = run_all(
        tmp_path,
        scored_by("2", benchmark=collects, harness={"ledger": ledger}, runtime={"reuse": True}),
    )
    assert all(record.reused_from is not None for record in records(again))
    assert Path(ledger).read_text() == ran


def test_a_large_answer_is_scored_from_its_file(tmp_path: Path) -> None:
    large = {"large": 70_000}
    run_all(tmp_path, scored_by("1", benchmark={"tasks": 1}, harness=large))
    again = run_all(
        tmp_path,
        scored_by("2", benchmark={"tasks": 1}, harness=large, runtime={"reuse": True}),
    )
    (record,) = records(again)
    assert record.outcome is Outcome.SCORED
    assert record.answer_file is not None
    assert (again.requests[0].run_dir / record.answer_file).stat().st_size == 70_000


@pytest.mark.integration
def test_a_mended_validator_of_a_pack_calls_no_model(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    text = """
schema: pack/v1
slug: near
version: 1
prompt: "{{ q }}"
cases: [{id: a, q: "one?", answer: "10"}, {id: b, q: "two?", answer: "10"}]
scoring:
  validators: [{type: number, expected: "{{ answer }}", tolerance: TOLERANCE}]
  threshold: 1.0
"""
    (pack / "pack.yaml").write_text(text.replace("TOLERANCE", "0.1"))
    with MockEndpoint("--text", "10.4") as endpoint:
        one = request(
            benchmark={"id": str(pack)},
            harness={"id": "chat"},
            model={"id": "m", "base_url": endpoint.url},
        )
        first = run_all(tmp_path, one)
        assert [record.metrics["correct"] for record in records(first)] == [False, False]
        calls = endpoint.stats()["calls"]
        (pack / "pack.yaml").write_text(text.replace("TOLERANCE", "0.5"))
        again = run_all(tmp_path, {**one, "runtime": {"reuse": True}})
        assert [record.metrics["correct"] for record in records(again)] == [True, True]
        assert endpoint.stats()["calls"] == calls
    tokens = [record.usage.output_tokens for record in in_order(again)]
    assert tokens == [record.usage.output_tokens for record in in_order(first)]


def test_without_checkpoint_resume_a_failed_scoring_runs_its_agent_again(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ran")
    run_all(
        tmp_path,
        scored_by("1", benchmark={"scorer_crashes": True}, harness={"ledger": ledger}),
    )
    whole = {"reuse": True, "checkpoint_resume": False}
    run_all(tmp_path, scored_by("1", harness={"ledger": ledger}, runtime=whole))
    assert len(Path(ledger).read_text().split("\n")) == 11


def test_it_does_not_force_a_finished_attempt_to_run_again(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ran")
    run_all(tmp_path, scored_by("1", harness={"ledger": ledger}))
    whole = {"reuse": True, "checkpoint_resume": False}
    run_all(tmp_path, scored_by("2", harness={"ledger": ledger}, runtime=whole))
    assert len(Path(ledger).read_text().split("\n")) == 6


def test_explain_reuse_says_what_reuse_then_does(tmp_path: Path) -> None:
    first = run_all(tmp_path, scored_by("1"))
    resolution = resolved(tmp_path, scored_by("2"))
    found = explain(first.requests[0].run_dir, resolution, None)
    assert {row["decision"] for row in found["attempts"]} == {"rescore"}
    assert found["differences"]["generation"] == []
    assert [change["field"] for change in found["differences"]["evaluation"]] == [
        "benchmark.params.version",
        "benchmark.version",
    ]
