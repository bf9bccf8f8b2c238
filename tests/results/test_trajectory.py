"""Trajectories: ATIF that others read, redacted, named by the record."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from steelyard.components.harness import Step
from steelyard.components.values import Usage
from steelyard.results.trajectory import atif_document, write_trajectory

STEPS = (Step("user", "what is 2+2?"), Step("agent", "4", {"reasoning": "easy", "n": 1}))


def document() -> dict[str, object]:
    return atif_document(
        STEPS,
        session_id="s",
        harness="chat",
        version="1",
        model="m",
        usage=Usage(input_tokens=5, output_tokens=2, requests=1, cost_usd=None),
    )


def test_steps_are_numbered_from_one_and_reasoning_has_its_own_field() -> None:
    made = json.loads(json.dumps(document()))
    assert [step["step_id"] for step in made["steps"]] == [1, 2]
    assert made["steps"][1] == {
        "step_id": 2,
        "source": "agent",
        "message": "4",
        "reasoning_content": "easy",
        "extra": {"n": 1},
    }
    assert made["agent"] == {"name": "chat", "version": "1", "model_name": "m"}
    assert made["final_metrics"]["total_prompt_tokens"] == 5
    assert made["final_metrics"]["total_cost_usd"] is None


def test_the_record_names_the_file_and_its_digest_after_redaction(tmp_path: Path) -> None:
    named = write_trajectory(
        tmp_path, "tasks/t/attempt-1", document(), redact=lambda data: data.replace(b"easy", b"[x]")
    )
    data = (tmp_path / named["path"]).read_bytes()
    assert b"easy" not in data
    assert hashlib.sha256(data).hexdigest() == named["sha256"]
    assert named["steps"] == 2


def metrics_of(usage: Usage) -> object:
    made = atif_document(
        [Step("agent", "", usage=usage)],
        session_id="s",
        harness="h",
        version="1",
        model="m",
        usage=usage,
    )
    return made["steps"][0]["metrics"]


def test_what_a_call_consumed_stands_in_its_step() -> None:
    assert metrics_of(Usage(7, 2, 3, 0, 1, None)) == {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "cached_tokens": 3,
        "cost_usd": None,
    }


def test_a_call_of_unknown_usage_is_no_call_of_no_tokens() -> None:
    assert metrics_of(Usage(requests=1, cost_usd=None)) == {
        "prompt_tokens": None,
        "completion_tokens": None,
        "cached_tokens": None,
        "cost_usd": None,
    }
