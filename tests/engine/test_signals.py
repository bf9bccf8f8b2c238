"""Real signals to a real launch: it cleans up, keeps what is done, and says how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.results.reader import RunReader, RunState
from tests.engine.launching import COMPONENTS, request

pytestmark = pytest.mark.integration


def started(tmp_path: Path, *requests: dict[str, object]) -> subprocess.Popen[bytes]:
    document = {
        "requests": list(requests),
        "task_concurrency": 3,
        "runtime": {"results_dir": str(tmp_path / "results"), "cleanup_grace_seconds": 2},
    }
    path = tmp_path / "orchestration.json"
    path.write_text(json.dumps(document))
    command = [sys.executable, "-m", "steelyard", "launch", str(path), "--progress", "plain"]
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(COMPONENTS.parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        roots = list((tmp_path / "results").glob("r/*/events.jsonl"))
        if roots and roots[0].read_bytes().count(b'"started"') >= 3:
            return child
        time.sleep(0.02)
    child.kill()
    raise AssertionError(child.communicate()[1].decode())


def reader(tmp_path: Path) -> RunReader:
    (root,) = (tmp_path / "results" / "r").iterdir()
    return RunReader(root)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_ends_a_launch_with_its_ledger_closed(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    child = started(tmp_path, request(benchmark={"tasks": 9}, harness={"sleep_s": 60}))
    child.send_signal(number)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == status, errors.decode()
    run = reader(tmp_path)
    assert run.state is RunState.FINISHED
    assert run.finished is not None
    assert run.finished["outcome"] == "cancelled"
    assert run.ledger.outcomes[Outcome.CANCELLED] == 3
    assert run.ledger.outcomes[Outcome.NOT_STARTED] == 6
    assert (run.root / "summary.md").is_file()
    assert b"Traceback" not in errors


def test_a_second_signal_gives_up_a_clean_up_that_hangs(tmp_path: Path) -> None:
    one = request(
        benchmark={"tasks": 3},
        harness={"id": f"{COMPONENTS}:Scripted", "sleep_s": 60, "opens": True},
        environment={"id": f"{COMPONENTS}:Stuck"},
    )
    child = started(tmp_path, one)
    time.sleep(0.3)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 130, errors.decode()
    assert time.monotonic() - began < 2, "the grace of two seconds was not cut short"
    assert reader(tmp_path).state is RunState.FINISHED


def test_a_clean_up_that_hangs_is_given_up_after_the_grace(tmp_path: Path) -> None:
    one = request(
        benchmark={"tasks": 3},
        harness={"sleep_s": 60, "opens": True},
        environment={"id": f"{COMPONENTS}:Stuck"},
    )
    child = started(tmp_path, one)
    time.sleep(0.3)
    child.send_signal(signal.SIGTERM)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 143, errors.decode()
    issues = [issue for record in reader(tmp_path).records() for issue in record.issues]
    assert {issue.code.value for issue in issues} == {"cleanup_failed"}
