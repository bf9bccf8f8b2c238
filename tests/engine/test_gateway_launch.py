"""Launches whose agents call their model through the gateway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.steps import Step
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.results.lines import decode
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.launching import records, request, run_all
from tests.harnesses.asking import AGENT

pytestmark = pytest.mark.integration

SECOND_THOUGHT = Path(__file__).parents[2] / "examples/components/second_thought.py"
ASK = f"python3 - <<'AGENT'\n{AGENT}\nAGENT\n"
PRICES = {"m": {"input_per_mtok": 1_000_000, "output_per_mtok": 1_000_000}}
"""A dollar a token."""


def launched(
    tmp_path: Path, harness: dict[str, Any], *options: str, tasks: int = 1, **rest: Any
) -> tuple[LaunchResult, Any]:
    with MockEndpoint("--text", "right", *options) as endpoint:
        one = request(
            benchmark={"tasks": tasks},
            harness=harness,
            model={"id": "m", "base_url": endpoint.url},
            **rest,
        )
        return run_all(tmp_path, one, prices=PRICES), endpoint.stats()


def test_steps_are_on_the_disk_while_the_agent_runs_and_in_one_document_afterwards(
    tmp_path: Path,
) -> None:
    seen = tmp_path / "seen"
    looks = f"cat {tmp_path}/results/r/*/tasks/t0/attempt-1/trajectory.jsonl >{seen}\n"
    result, _ = launched(tmp_path, {"id": "command", "script": ASK + looks})
    steps = []
    for line in seen.read_bytes().split(b"\n")[:-1]:
        data = decode(line)
        assert data is not None
        assert data["schema"] == "step/1"
        steps.append(Step.from_json(data))
    assert [step.source for step in steps] == ["user", "agent"]
    assert steps[1].message == "right"
    assert steps[1].usage is not None
    assert steps[1].usage.cost_usd == steps[1].usage.input_tokens + steps[1].usage.output_tokens
    (record,) = records(result)
    assert (record.outcome, record.metrics) == (Outcome.SCORED, {"passed": True})
    assert record.usage.cost_usd == steps[1].usage.cost_usd
    folder = result.requests[0].run_dir / "tasks/t0/attempt-1"
    assert [path.name for path in folder.iterdir()] == ["trajectory.json"]
    document = json.loads((folder / "trajectory.json").read_bytes())
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "system"]
    assert document["final_metrics"]["total_cost_usd"] == record.usage.cost_usd


def test_an_agents_token_is_in_no_file_of_the_run(tmp_path: Path) -> None:
    script = f"python3 - --show-token <<'AGENT'\n{AGENT}\nAGENT\nenv >&2; env >out; exit 5"
    result, _ = launched(tmp_path, {"id": "command", "script": script, "log": "out"}, tasks=3)
    assert [record.outcome for record in records(result)] == [Outcome.FAILED_ERROR] * 3
    said = b""
    for path in result.requests[0].run_dir.rglob("*"):
        if path.is_file():
            said += path.read_bytes()
    assert b"OPENAI_API_KEY" in said
    assert b"sk-steelyard-" not in said


def test_an_attempts_bound_holds_for_calls_of_the_driver_too(tmp_path: Path) -> None:
    harness = {"id": f"{SECOND_THOUGHT}:SecondThought", "rounds": 5}
    result, stats = launched(tmp_path, harness, budget={"attempt_tokens": 1}, tasks=2)
    for record in records(result):
        assert record.outcome is Outcome.FAILED_ERROR
        assert [issue.code for issue in record.issues] == [IssueCode.ATTEMPT_BUDGET]
        assert record.usage.requests == 1
    assert result.outcome is RunOutcome.COMPLETED  # every attempt has ended, none of them FATAL
    assert stats["calls"] == 2


@pytest.mark.parametrize("harness", [{"id": "chat"}, {"id": "command", "script": ASK}])
def test_an_attempt_whose_last_call_passes_its_bound_has_fallen_short(
    tmp_path: Path, harness: dict[str, Any]
) -> None:
    result, stats = launched(tmp_path, harness, budget={"attempt_tokens": 2})
    (record,) = records(result)
    assert stats["calls"] == 1
    assert record.outcome is Outcome.FAILED_ERROR
    assert [issue.code for issue in record.issues] == [IssueCode.ATTEMPT_BUDGET]
    assert record.answer is not None


def test_one_agents_overrun_leaves_the_others_alone(tmp_path: Path) -> None:
    script = f'case "$(cat "$STEELYARD_PROMPT_FILE")" in t1) n=90;; *) n=1;; esac\n{ASK}'
    script = script.replace("python3 - ", "python3 - --calls $n ")
    result, _ = launched(
        tmp_path, {"id": "command", "script": script}, tasks=3, budget={"attempt_usd": 30}
    )
    outcomes = {record.task_id: record.outcome for record in records(result)}
    assert outcomes == {
        "t0": Outcome.SCORED, "t1": Outcome.FAILED_ERROR, "t2": Outcome.SCORED
    }  # fmt: skip


def test_a_refused_key_stops_the_request_and_is_said(tmp_path: Path) -> None:
    result, _ = launched(
        tmp_path, {"id": "command", "script": ASK}, "--require-key", "the-key-0123456", tasks=40
    )
    assert result.outcome is RunOutcome.FAILED
    assert result.requests[0].reason is not None
    assert "401" in result.requests[0].reason
    assert result.requests[0].counts[Outcome.NOT_STARTED] > 0


def test_what_was_cut_off_in_the_driver_has_an_unknown_cost(tmp_path: Path) -> None:
    result, _ = launched(
        tmp_path,
        {"id": "chat"},
        "--latency",
        "30",
        execution={"run_timeout_seconds": 1.5},
    )
    (record,) = records(result)
    assert record.outcome is Outcome.TIMED_OUT
    assert record.usage.requests == 1
    assert record.usage.cost_usd is None
