"""A launch that dies between an agent's work and its score: the next one scores, pays nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import IssueCode, Outcome
from steelyard.engine.explain import explain
from steelyard.results.reader import RunReader
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.launching import records, request, resolved, run_all

pytestmark = pytest.mark.integration

CHILD = "import json,sys;from pathlib import Path;from tests.engine.launching import run_all;"
CHILD += "run_all(Path(sys.argv[1]), json.loads(sys.argv[2]))"

PACK = """
schema: pack/v1
slug: slow
version: VERSION
prompt: "{{ q }}"
cases: [{id: a, q: "one?"}, {id: b, q: "two?"}]
scoring:
  validators:
    - {type: command, run: [python3, -c, "import time, sys; time.sleep(SECONDS)"]}
  threshold: 1.0
"""


def write_pack(folder: Path, *, seconds: float, version: int = 1) -> None:
    folder.mkdir(exist_ok=True)
    text = PACK.replace("SECONDS", str(seconds)).replace("VERSION", str(version))
    (folder / "pack.yaml").write_text(text)


def asking(pack: Path, endpoint: MockEndpoint, **rest: Any) -> dict[str, Any]:
    return request(
        benchmark={"id": str(pack)},
        harness={"id": "chat"},
        model={"id": "m", "base_url": endpoint.url},
        **rest,
    )


def killed_while_scoring(tmp_path: Path, one: dict[str, Any], wanted: int) -> Path:
    """Start a launch, kill it once so many checkpoints are on the disk; give its run."""
    root = str(Path(__file__).parents[2])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), json.dumps(one)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": root},
    )
    try:
        deadline = time.monotonic() + 60
        found: list[Path] = []
        while len(found) < wanted:
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.02)
            found = list(tmp_path.glob("results/r/*/tasks/*/attempt-*/checkpoint.json"))
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    return found[0].parents[3]


def test_a_kill_between_agent_and_score_calls_no_model_again(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    write_pack(pack, seconds=60)
    with MockEndpoint("--text", "an answer") as endpoint:
        one = asking(pack, endpoint)
        dead = killed_while_scoring(tmp_path, one, 2)
        calls = endpoint.stats()["calls"]
        assert calls == 2
        assert list(RunReader(dead).records()) == []
        before = {path: path.read_bytes() for path in dead.rglob("*") if path.is_file()}
        reused = {**one, "runtime": {"reuse": True}}
        document = resolved(tmp_path, reused)
        rows = explain(dead, document, None)["attempts"]
        assert {(row["decision"], row["reason"]) for row in rows} == {
            ("rescore", "its agent was done, and its scoring is pending")
        }
        # The same scoring, not as slow: what changes is the evaluation alone.
        write_pack(pack, seconds=0)
        again = run_all(tmp_path, reused)
        assert endpoint.stats()["calls"] == calls
    found = records(again)
    assert [record.outcome for record in found] == [Outcome.SCORED] * 2
    for record in found:
        assert record.answer == "an answer"
        assert record.usage.requests == 1
        assert record.reused_from is not None
        assert record.reused_from["run_id"] == dead.name
        assert record.checkpoint is not None
        assert record.metrics["correct"] is True
        assert record.timing.agent_s > 0
    assert before == {path: path.read_bytes() for path in dead.rglob("*") if path.is_file()}


def test_without_checkpoint_resume_the_agent_runs_again(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    write_pack(pack, seconds=60)
    with MockEndpoint("--text", "an answer") as endpoint:
        one = asking(pack, endpoint)
        killed_while_scoring(tmp_path, one, 2)
        write_pack(pack, seconds=0)
        runtime = {"reuse": True, "checkpoint_resume": False}
        again = run_all(tmp_path, {**one, "runtime": runtime})
        assert endpoint.stats()["calls"] == 4
    assert all(record.reused_from is None for record in records(again))


def test_a_damaged_checkpoint_runs_its_agent_and_is_named(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    write_pack(pack, seconds=60)
    with MockEndpoint("--text", "an answer") as endpoint:
        one = asking(pack, endpoint)
        dead = killed_while_scoring(tmp_path, one, 2)
        damaged = dead / "tasks" / "a" / "attempt-1" / "checkpoint.json"
        damaged.write_bytes(damaged.read_bytes().replace(b"an answer", b"AN answer"))
        write_pack(pack, seconds=0)
        again = run_all(tmp_path, {**one, "runtime": {"reuse": True}})
        assert endpoint.stats()["calls"] == 3
    taken = {record.task_id: record.reused_from is not None for record in records(again)}
    assert taken == {"a": False, "b": True}
    said = {record.task_id: [i.code for i in record.issues] for record in records(again)}
    assert said == {"a": [IssueCode.REUSE_REFUSED], "b": []}
    (refused,) = next(r.issues for r in records(again) if r.task_id == "a")
    assert "checkpoint.json" in refused.message
    events = RunReader(again.requests[0].run_dir).events()
    warnings = [event["message"] for event in events if event["kind"] == "warning"]
    assert any("checkpoint.json" in message for message in warnings)


def test_collected_files_and_artifacts_follow_the_record_into_later_runs(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ran")

    def scored_by(version: str, **more: Any) -> dict[str, Any]:
        return request(
            benchmark={"version": version, "collects": True, "tasks": 2},
            harness={"ledger": ledger, "execs": "touch out"},
            execution={"save_artifacts": ["out", {"globs": ["*.none"]}]},
            **more,
        )

    first = run_all(tmp_path, scored_by("1"))
    second = run_all(tmp_path, scored_by("1", runtime={"reuse": True}))
    third = run_all(tmp_path, scored_by("2", runtime={"reuse": True}))
    assert Path(ledger).read_text().count("\n") == 2
    for result in (first, second, third):
        for record in records(result):
            (artifact,) = record.artifacts
            assert (result.requests[0].run_dir / artifact["path"]).is_file()
            assert record.evaluation_mode == "fresh"
    assert all(record.reused_from is not None for record in records(third))
    last = [event["kind"] for event in RunReader(first.requests[0].run_dir).events()]
    assert last.count("checkpoint") == 2
