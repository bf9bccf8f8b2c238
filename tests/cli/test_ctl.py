"""`steelyard ctl`, as it is typed while a launch runs in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.ctl import status_lines
from steelyard.results.reader import RunReader
from tests.cli.conftest import Run
from tests.engine.launching import COMPONENTS, request

pytestmark = pytest.mark.integration


@pytest.fixture
def going(project: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start launches in the project; whatever still runs at the end is killed."""
    children: list[subprocess.Popen[bytes]] = []

    def start(*requests: dict[str, Any]) -> subprocess.Popen[bytes]:
        document = {"requests": list(requests), "task_concurrency": 2}
        (project / "o.json").write_text(json.dumps(document))
        child = subprocess.Popen(
            [sys.executable, "-m", "steelyard", "launch", "o.json", "--progress", "plain"],
            cwd=project,
            env=os.environ | {"PYTHONPATH": str(COMPONENTS.parents[2])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        children.append(child)
        deadline = time.monotonic() + 20
        while not list((project / "results").glob("*/*/progress.json")):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return child

    yield start
    for child in children:
        if child.poll() is None:
            child.kill()
        child.communicate()


SLOW = request("slow", benchmark={"tasks": 9}, harness={"sleep_s": 60})
SHORT = request("short", benchmark={"tasks": 9}, harness={"sleep_s": 0.5})


def test_a_launch_is_found_by_path_folder_id_and_as_the_latest(
    project: Path, steelyard: Run, going: Callable[..., Any]
) -> None:
    going(SLOW, SHORT)
    (root,) = (project / "results" / "slow").iterdir()
    for word in (str(root), "results/slow", root.name, "latest"):
        ran = steelyard("ctl", word, "--json")
        assert ran.status == 0, ran.err
        assert ran.json["schema"] == "ctl/1"
        assert ran.json["changed"] is None
        status = ran.json["status"]
        assert status["state"] == "running"
        assert [one["name"] for one in status["requests"]] == ["slow", "short"]
    shown = steelyard("ctl", "latest", "status").out
    assert shown.startswith("running: ")
    assert "running longest:" in shown


def test_a_drained_launch_ends_cancelled_with_what_ran_on_record(
    project: Path, steelyard: Run, going: Callable[..., Any]
) -> None:
    child = going(SHORT)
    assert "concurrency is now 3" in steelyard("ctl", "latest", "concurrency", "3").out
    assert "was already 3" in steelyard("ctl", "latest", "concurrency", "3").out
    ran = steelyard("ctl", "latest", "drain")
    assert ran.status == 0, ran.err
    assert ran.out.startswith("draining: ")
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130, err.decode()
    assert b"--reuse" in out
    (root,) = (project / "results" / "short").iterdir()
    run = RunReader(root)
    assert run.finished is not None
    assert run.finished["outcome"] == "cancelled"
    assert len(list(run.records())) >= 2
    late = steelyard("ctl", "latest", "pause")
    assert late.status == 2
    assert "has ended: cancelled" in late.err


def test_a_killed_launch_leaves_nothing_that_hangs(
    project: Path, steelyard: Run, going: Callable[..., Any]
) -> None:
    child = going(SLOW)
    child.kill()
    child.wait()
    ran = steelyard("ctl", "latest", "pause", "--json")
    assert ran.status == 2
    assert "has died" in ran.err + ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "no run 'nowhere'"),
        (("latest",), "there is no run below results"),
        (("x", "concurrency"), "steelyard ctl RUN concurrency N"),
        (("x", "concurrency", "many"), "'many' is no whole number"),
        (("x", "provider", "3"), "steelyard ctl RUN provider NAME N"),
        (("x", "pause", "now"), "pause takes no more words"),
        (("x", "explode"), "no such action 'explode'; actions: status, pause"),
        (("x", "dran"), "did you mean drain?"),
    ],
)
def test_what_makes_no_sense_is_exit_2(
    project: Path, steelyard: Run, words: tuple[str, ...], said: str
) -> None:
    ran = steelyard("ctl", *words)
    assert ran.status == 2
    assert said in ran.err


def test_more_than_a_lowered_limit_is_explained() -> None:
    none = {"spent_usd": None, "limit_usd": None, "spent_tokens": None, "limit_tokens": None}
    use = {"running": 8, "limit": 2}
    lines = status_lines(
        {"state": "running", "task_concurrency": 4, "running": 8, "providers": {"sandbox": use},
         "budget": none, "requests": []}
    )  # fmt: skip
    assert lines[:2] == [
        "running: 8 (limit 4) run (sandbox 8 (limit 2))",
        "what is above a limit began before it was lowered, and goes on to its end",
    ]


def test_a_status_right_after_a_change_counts_what_it_let_start(
    project: Path, steelyard: Run, going: Callable[..., Any]
) -> None:
    going(SLOW)
    deadline = time.monotonic() + 20
    while steelyard("ctl", "latest", "--json").json["status"]["running"] < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    status = steelyard("ctl", "latest", "concurrency", "6", "--json").json["status"]
    assert status["running"] == sum(one["running"] for one in status["requests"]) == 6


def test_what_no_budget_bounds_is_not_said_to_be_nothing(
    project: Path, steelyard: Run, going: Callable[..., Any]
) -> None:
    going(SLOW)
    status = steelyard("ctl", "latest", "--json").json["status"]
    for budget in (status["budget"], *(one["budget"] for one in status["requests"])):
        assert set(budget.values()) == {None}


def test_a_status_names_budgets_and_what_is_waited_for() -> None:
    budget = {"spent_usd": 1.5, "limit_usd": 2.0, "spent_tokens": 70, "limit_tokens": 100}
    none = {"spent_usd": None, "limit_usd": None, "spent_tokens": None, "limit_tokens": None}
    one: dict[str, Any] = {
        "name": "a", "state": "running", "planned": None, "ended": 0, "running": 0, "queued": 0,
        "outcomes": {"failed_fatal": 1, "timed_out": 2, "scored": 4}, "cost_usd": None,
        "budget": budget, "waits_for": "backoff", "slowest": [],
    }  # fmt: skip
    lines = status_lines(
        {
            "state": "paused",
            "task_concurrency": 4,
            "running": 0,
            "providers": {"docker": {"running": 0, "limit": 8}, "ssh": {"running": 0, "limit": 0}},
            "budget": none,
            "requests": [one],
        }
    )
    assert lines[0] == "paused: 0 of at most 4 run (docker 0 of 8, ssh 0)"
    assert "what is above a limit" not in lines[1]
    assert lines[-1].split("  ")[0] == "a"
    assert lines[-1].endswith("3  unknown ($1.50 of $2.00, 70 of 100 tokens)  backoff")


@pytest.mark.parametrize(
    "status", [{}, {"state": "running", "providers": [1]}, {"state": 1, "providers": {"p": 7}}]
)
def test_a_status_of_another_form_is_no_fault_of_ours(
    status: dict[str, Any], steelyard: Run, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    from steelyard.cli import ctl
    from steelyard.engine import control_client

    monkeypatch.setattr(ctl, "find_run", Path)
    monkeypatch.setattr(
        control_client, "ask", lambda root, action, **_: {"changed": None, "status": status}
    )
    result = steelyard("ctl", "the-run")
    assert result.status == 1
    assert "makes no sense" in result.err
    assert "unexpected" not in result.err
