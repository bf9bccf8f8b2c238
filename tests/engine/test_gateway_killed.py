"""SIGKILL of a launch whose sandboxed agents stream: nothing runs on, is lost, or paid twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.environment import TOKEN_VARIABLE
from steelyard.components.issues import Outcome
from steelyard.engine.events import Unobserved
from steelyard.engine.work import AGENT_SUFFIX
from steelyard.environments import leftovers
from steelyard.results.reader import RunReader
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.launching import COMPONENTS, records, request, run_all
from tests.harnesses.asking import AGENT

pytestmark = pytest.mark.integration

TASKS = 4
SCRIPT = f"""python3 - <<'AGENT'
{AGENT}
AGENT
case "$(cat "$STEELYARD_PROMPT_FILE")" in t0) ;; *) python3 - --stream <<'AGENT'
{AGENT}
AGENT
;; esac
"""
PRICES = {"m": {"input_per_mtok": 1_000_000, "output_per_mtok": 1_000_000}}
"""A dollar a token."""
CHILD = """
import sys
from pathlib import Path
from tests.engine.test_gateway_killed import launch
launch(Path(sys.argv[1]), sys.argv[2])
"""


class Notices(Unobserved):
    def __init__(self) -> None:
        self.said: list[str] = []

    def notice(self, request: str | None, message: str) -> None:
        self.said.append(message)


def launch(folder: Path, url: str, notices: Notices | None = None, **rest: Any) -> Any:
    one = request(
        benchmark={"tasks": TASKS},
        harness={"id": "command", "script": SCRIPT},
        model={"id": "m", "base_url": url},
        environment={"id": "sandbox"},
        **rest,
    )
    return run_all(folder, one, observer=notices, prices=PRICES)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def of_this_run(tokens: set[str]) -> list[int]:
    """The processes that bear a token of the run's sessions."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        marks = {word.partition(b"=")[2].decode() for word in words
                 if word.startswith(TOKEN_VARIABLE.encode() + b"=")}  # fmt: skip
        if any(mark.startswith(token) for mark in marks for token in tokens):
            found.append(int(path.parent.name))
    return found


def test_a_launch_killed_while_its_agents_stream(tmp_path: Path) -> None:
    options = ("--text", "one two three four five six seven eight nine ten", "--chunk-delay", "20")
    with MockEndpoint(*options) as mock:
        env = {**os.environ, "PYTHONPATH": str(COMPONENTS.parents[2])}
        words = [sys.executable, "-c", CHILD, str(tmp_path), mock.url]
        child = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL)
        try:
            # t0 has ended; the others are in the middle of their second answer.
            until(lambda: mock.stats()["by_path"].get("/v1/chat/completions", 0) >= 2 * TASKS - 1)
            (dead,) = (tmp_path / "results" / "r").iterdir()
            until(lambda: len(list(RunReader(dead).records())) == 1)
            flights = RunReader(dead).in_flight
            tokens = {flight.token for flight in flights}
            assert len(tokens) == TASKS - 1
            assert of_this_run(tokens)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
        until(lambda: not of_this_run(tokens))
        until(lambda: mock.stats()["in_flight"] <= 1)  # nobody goes on reading: 1 is this question
        on_disk = b"".join(path.read_bytes() for path in dead.rglob("*") if path.is_file())
        assert b"sk-steelyard-" not in on_disk
        spent = [RunReader(dead).spent_in_flight(flight) for flight in flights]
        assert all(usage is not None and usage.requests >= 1 for usage in spent)

        mock.reset()
        notices = Notices()
        again = {"runtime": {"reuse": True}, "execution": {"run_timeout_seconds": 3}}
        result = launch(tmp_path, mock.url, notices, **again)
        (said,) = [text for text in notices.said if "under way" in text]
        assert said.startswith(f"{dead.name} died with {TASKS - 1} attempts under way")
        assert "1 model calls, $" in said
        (left,) = [text for text in notices.said if "left" in text]
        assert "folder" in left
        outcomes = {record.task_id: record.outcome for record in records(result)}
        assert outcomes["t0"] is Outcome.SCORED
        assert mock.stats()["calls"] <= 2 * (TASKS - 1)  # t0 is not asked again
    leftovers.end([token + AGENT_SUFFIX for token in tokens])
