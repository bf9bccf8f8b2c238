"""`evalset submit`, `list`, `resume`, `retry` and `cancel` as people and scripts use them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.evalset.find_set import find_set
from steelyard.evalset.states import SetState
from tests.cli.tmux import Pane
from tests.evalset.projects import agent, write_manifest, write_project

pytestmark = pytest.mark.integration

LONG_S = 60.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    ledger = {"ledger": str(tmp_path)}
    write_project(
        tmp_path,
        agent("reference", "oracle"),
        agent("nothing", "nop"),
        agent("sleeping", "Sleeping", ledger),
        agent("flaky", "Flaky", ledger),
    )
    return tmp_path


@pytest.fixture
def started(project: Path) -> Iterator[Any]:
    """Start the command and leave it running; what still runs at the end is ended."""
    children: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            command(*words), cwd=project, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        children.append(child)
        return child

    yield start
    for child in children:
        if child.poll() is None:
            child.kill()
        child.communicate()


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "steelyard", "evalset", *words]


def evalset(project: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(*words), cwd=project, text=True, stdin=subprocess.DEVNULL, capture_output=True,
        check=False, timeout=LONG_S,
    )  # fmt: skip
    assert done.returncode == status, done.stderr + done.stdout
    return done


def until(path: Path) -> None:
    deadline = time.monotonic() + LONG_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not come"
        time.sleep(0.02)


def test_a_set_is_submitted_listed_and_said_to_be_whole(project: Path) -> None:
    write_manifest(project, "reference", "nothing", repeats=2)
    done = evalset(project, "submit", "set.yaml")
    assert "nightly" in done.stdout
    assert "4 completed" in done.stdout
    (listed,) = json.loads(evalset(project, "list", "--json").stdout)["sets"]
    assert (listed["name"], listed["state"], listed["cells"]) == ("nightly", "completed", 4)
    again = evalset(project, "resume", "latest")
    assert "every cell has ended" in again.stderr
    assert listed["set_id"] in evalset(project, "list").stdout


def test_json_is_one_document_with_the_exit_status(project: Path) -> None:
    write_manifest(project, "flaky")
    done = evalset(project, "submit", "set.yaml", "--json", status=1)
    document = json.loads(done.stdout)
    assert (document["schema"], document["exit_status"]) == ("evalset-result/1", 1)
    (project / "mended").touch()
    again = json.loads(evalset(project, "retry", "nightly", "--json").stdout)
    assert again["exit_status"] == 0


def test_a_dry_run_makes_nothing(project: Path) -> None:
    write_manifest(project, "reference", repeats=3)
    evalset(project, "submit", "set.yaml", "--dry-run")
    document = json.loads(evalset(project, "submit", "set.yaml", "--dry-run", "--json").stdout)
    assert document["schema"] == "evalset-plan/1"
    assert not (project / "results").exists()


def test_another_process_cancels_it_and_a_third_goes_on(project: Path, started: Any) -> None:
    write_manifest(project, "reference", "sleeping")
    child = started("submit", "set.yaml")
    until(project / "asleep")
    said = json.loads(evalset(project, "cancel", "nightly", "--json").stdout)
    assert (said["has_ended"], said["state"]) == (True, "cancelled")
    child.communicate(timeout=LONG_S)
    assert child.returncode == 130
    evalset(project, "cancel", "nightly", status=2)
    (project / "awake").touch()
    evalset(project, "resume", "nightly")
    assert find_set("nightly", project / "results").state() is SetState.COMPLETED


def test_a_killed_submission_is_interrupted_and_goes_on(project: Path, started: Any) -> None:
    write_manifest(project, "sleeping", "reference", limits={"max_concurrent_runs": 1})
    child = started("submit", "set.yaml")
    until(project / "asleep")
    assert "running" in evalset(project, "list").stdout
    evalset(project, "resume", "nightly", status=2)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=LONG_S)
    assert find_set("nightly", project / "results").state() is SetState.INTERRUPTED
    (project / "awake").touch()
    evalset(project, "resume", "nightly")
    assert find_set("nightly", project / "results").state() is SetState.COMPLETED


def test_a_name_that_no_set_has_is_answered_with_the_nearest(project: Path) -> None:
    write_manifest(project, "nothing")
    evalset(project, "submit", "set.yaml")
    done = evalset(project, "resume", "nigthly", status=2)
    assert "did you mean 'nightly'" in done.stderr


def test_faults_of_a_manifest_are_said_with_their_places_and_nothing_is_made(
    project: Path,
) -> None:
    write_manifest(project, "nothing", repeat=3, scanners=["reward-hackin"])
    done = evalset(project, "submit", "set.yaml", status=2)
    assert "set.yaml:1:" in done.stderr
    assert "did you mean repeats" in done.stderr
    assert "did you mean reward-hacking" in done.stderr
    assert not (project / "results").exists()


def test_on_a_terminal_it_asks_before_it_starts(project: Path) -> None:
    write_manifest(project, "nothing")
    pane = Pane(project)
    try:
        pane.type(f"{' '.join(command('submit', 'set.yaml'))}; echo status $?")
        pane.until(lambda: "Start?" in pane.screen())
        pane.type("n")
        pane.until(lambda: "status 1" in pane.screen())
    finally:
        pane.kill()
    assert not (project / "results").exists()


def test_gates_and_baseline_of_the_manifest_are_held_at_the_end(project: Path) -> None:
    write_manifest(project, "reference", "nothing")
    evalset(project, "submit", "set.yaml")
    gates = {"min_score": 0.5, "max_regression": 0.1}
    write_manifest(project, "reference", "nothing", baseline="nightly", gates=gates)
    document = json.loads(evalset(project, "submit", "set.yaml", "--json", status=3).stdout)
    assert document["exit_status"] == 3
    met = {(one["gate"], one["request"]): one["is_met"] for one in document["gates"]}
    assert met == {
        ("gates.min_score", "reference"): True,
        ("gates.min_score", "nothing"): False,
        ("gates.max_regression", None): True,
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"baseline": "nigthly"}, "no eval set 'nigthly'"),
        ({"gates": {"max_regression": 0.1}}, "against a baseline, and none is named"),
    ],
)
def test_a_baseline_that_is_not_there_is_said_before_anything_starts(
    project: Path, fields: dict[str, Any], said: str
) -> None:
    write_manifest(project, "nothing", **fields)
    assert said in evalset(project, "submit", "set.yaml", status=2).stderr
    assert not (project / "results").exists()


def test_scanners_of_the_manifest_read_what_came_of_it(project: Path) -> None:
    write_manifest(project, "nothing", scanners=["reward-hacking", "./rules.yaml"])
    done = evalset(project, "submit", "set.yaml", status=2)
    assert "rules.yaml" in done.stderr
    write_manifest(project, "nothing", scanners=["reward-hacking"])
    document = json.loads(evalset(project, "submit", "set.yaml", "--json").stdout)
    assert document["scan"]["attempts"] == 3


def test_going_on_takes_no_option_that_would_make_it_another_set(project: Path) -> None:
    write_manifest(project, "nothing")
    evalset(project, "submit", "set.yaml")
    for option in ("--limit", "--sample-ids", "--shard", "--run-id"):
        said = evalset(project, "resume", "latest", option, "1", status=2).stderr
        assert f"No such option '{option}'" in said


def test_resuming_what_has_ended_says_how_it_ended(project: Path) -> None:
    write_manifest(project, "nothing", gates={"min_score": 0.5})
    evalset(project, "submit", "set.yaml", status=3)
    evalset(project, "resume", "latest", status=3)


def test_resume_reads_what_a_killed_closing_scan_has_not(project: Path) -> None:
    write_manifest(project, "nothing", scanners=["reward-hacking"])
    evalset(project, "submit", "set.yaml", "--json")
    (scans,) = project.glob("results/*/*/scans.jsonl")
    scans.write_bytes(scans.read_bytes().split(b"\n", 1)[0] + b"\n")  # it came as far as one
    again = json.loads(evalset(project, "resume", "latest", "--json").stdout)
    assert (again["scan"]["attempts"], again["scan"]["read"]) == (3, 2)
    assert "new finding" not in evalset(project, "resume", "latest").stdout  # all is read
    assert json.loads(evalset(project, "retry", "latest", "--json").stdout)["scan"] is None


def test_resume_says_why_scanners_cannot_read_what_is_left(project: Path) -> None:
    rule = {"id": "r", "severity": "low", "message": "m", "commands": ["curl"]}
    rules = {"schema": "scan-rules/1", "name": "own", "rules": [rule]}
    (project / "rules.yaml").write_text(json.dumps(rules))
    write_manifest(project, "nothing", scanners=["./rules.yaml"])
    evalset(project, "submit", "set.yaml")
    (project / "rules.yaml").unlink()
    (project / "set.yaml").unlink()
    again = evalset(project, "resume", "latest")
    assert "rules.yaml" in again.stderr
    assert "every cell has ended" in again.stderr
