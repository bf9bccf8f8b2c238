"""A harness that never opens an environment, before tasks of files: it runs, and is warned of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.results.reader import RunReader
from tests.engine.launching import request, run_all

DEAD = {"id": "m", "base_url": "http://127.0.0.1:9/v1", "max_request_retries": 0}
CHAT: dict[str, Any] = {"harness": {"id": "chat"}, "model": DEAD}


def warnings_of(tmp_path: Path, collects: bool, **changes: Any) -> list[str]:
    asked = {"tasks": 1, "collects": collects}
    result = run_all(tmp_path, request(benchmark=asked) | changes)
    events = RunReader(result.requests[0].run_dir).events()
    return [str(event["message"]) for event in events if event["kind"] == "warning"]


def test_chat_before_tasks_that_are_scored_by_files_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (warning,) = warnings_of(tmp_path, True, **CHAT)
    assert warning.startswith("the harness 'chat' never works in an environment, and the task 't0'")
    assert "is scored by the files that the agent leaves" in warning
    assert f"r: {warning}" in caplog.text


def test_chat_before_tasks_of_words_is_not(tmp_path: Path) -> None:
    assert warnings_of(tmp_path, False, **CHAT) == []


def test_harnesses_that_call_no_model_are_not(tmp_path: Path) -> None:
    assert warnings_of(tmp_path, True) == []
    assert warnings_of(tmp_path, True, harness={"id": "nop"}) == []


def test_a_program_in_the_environment_is_not(tmp_path: Path) -> None:
    program = {"id": "command", "run": ["true"]}
    assert warnings_of(tmp_path, True, harness=program) == []
