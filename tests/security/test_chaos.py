"""The driver is killed, stopped, cut off and raced; what is done is kept and paid once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steelyard.components.environment import TOKEN_VARIABLE
from steelyard.components.issues import Outcome
from steelyard.results.layout import attempt_folder
from steelyard.results.reader import RunReader, RunState
from steelyard.testing.endpoint import MockEndpoint

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
TASKS = 8


def command(url: str, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "steelyard", "run", "humaneval", "chat", "mock"),
        *("--model-base-url", url, "--env", "sandbox", "--limit", str(TASKS)),
        *("--task-concurrency", "3", "--progress", "plain", *more),
    ]


@contextmanager
def driving(folder: Path, argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the product while the block lasts; end it at the latest then."""
    with subprocess.Popen(
        argv,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def run_of(folder: Path) -> Path:
    return max((folder / "results").glob("*/*"), key=lambda path: path.name)


def until_recorded(folder: Path, count: int, seconds: float = 40) -> Path:
    """Wait until a run has so many records; give its directory."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for path in (folder / "results").glob("*/*/attempts.jsonl"):
            if path.read_bytes().count(b"\n") >= count:
                return path.parent
        time.sleep(0.01)
    raise AssertionError("nothing was recorded in time")


def marked(stem: str) -> list[int]:
    """Find the live processes of a run: the token of their session begins with its stem."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{TOKEN_VARIABLE}={stem}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def mounted() -> set[str]:
    """What is mounted, but for the containers of tests that run beside this one."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return {line for line in lines if "/sy-engine-" not in line}


def test_a_killed_driver_leaves_nothing_running_and_reuse_pays_nothing_twice(
    tmp_path: Path,
) -> None:
    with MockEndpoint("--benchmark", "humaneval", "--latency", "0.15") as endpoint:
        mounts = mounted()
        with driving(tmp_path, command(endpoint.url)) as child:
            root = until_recorded(tmp_path, 3)
            child.send_signal(signal.SIGKILL)
            child.wait()
        reader = RunReader(root)
        assert reader.state is not RunState.RUNNING
        done = {(record.task_id, record.attempt) for record in reader.records()}
        assert 3 <= len(done) < TASKS
        tokens = [flight.token for flight in reader.in_flight]
        assert tokens, "something was under way"
        stem = tokens[0].partition("-")[0]
        deadline = time.monotonic() + 10
        while marked(stem) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert marked(stem) == []
        assert mounted() <= mounts
        # What was being scored has its checkpoint, and is scored without another call.
        folders = {attempt_folder(*key) for key in done}
        kept = {path.parent for path in root.glob("tasks/*/attempt-*/checkpoint.json")}
        kept = {path for path in kept if str(path.relative_to(root)) not in folders}
        paid = endpoint.stats()["calls"]
        ended = subprocess.run(
            [*command(endpoint.url), "--reuse", "--json"],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr.decode()
        (result,) = json.loads(ended.stdout)["requests"]
        assert result["outcomes"][Outcome.SCORED.value] == TASKS
        assert endpoint.stats()["calls"] - paid == TASKS - len(done) - len(kept)


def test_a_driver_that_was_stopped_for_a_while_goes_on(tmp_path: Path) -> None:
    with (
        MockEndpoint("--benchmark", "humaneval", "--latency", "0.1") as endpoint,
        driving(tmp_path, command(endpoint.url)) as child,
    ):
        until_recorded(tmp_path, 2)
        child.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        child.send_signal(signal.SIGCONT)
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors.decode()
        assert endpoint.stats()["calls"] == TASKS
    assert RunReader(run_of(tmp_path)).ledger.outcomes[Outcome.SCORED] == TASKS


def test_a_run_whose_readers_have_gone_is_run_to_its_end(tmp_path: Path) -> None:
    with (
        MockEndpoint("--benchmark", "humaneval", "--latency", "0.05") as endpoint,
        driving(tmp_path, command(endpoint.url, "--log-level", "DEBUG")) as child,
    ):
        until_recorded(tmp_path, 1)
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        child.stderr.close()
        assert child.wait(60) == 0
    assert RunReader(run_of(tmp_path)).ledger.outcomes[Outcome.SCORED] == TASKS


def test_results_deleted_in_mid_run_end_it_with_a_reason(tmp_path: Path) -> None:
    with (
        MockEndpoint("--benchmark", "humaneval", "--latency", "0.2") as endpoint,
        driving(tmp_path, command(endpoint.url)) as child,
    ):
        until_recorded(tmp_path, 2)
        while (tmp_path / "results").exists():  # it is being written to meanwhile
            shutil.rmtree(tmp_path / "results", ignore_errors=True)
        output, errors = child.communicate(timeout=60)
        assert child.returncode == 1, (child.returncode, output, errors)
        assert b"Traceback" not in errors + output, errors.decode()
        assert endpoint.stats()["calls"] <= TASKS


def test_of_two_launches_with_one_run_id_exactly_one_wins(tmp_path: Path) -> None:
    with MockEndpoint("--benchmark", "humaneval") as endpoint:
        argv = command(endpoint.url, "--run-id", "mine")
        with driving(tmp_path, argv) as one, driving(tmp_path, argv) as other:
            said = [child.communicate(timeout=60)[1] for child in (one, other)]
        assert sorted((one.returncode, other.returncode)) == [0, 2], said
        assert endpoint.stats()["calls"] == TASKS


SLOW = """
import time
from tests.engine.components import Counted
class Slow(Counted):
    def load_tasks(self):
        time.sleep(20)
        return super().load_tasks()
"""


def test_a_signal_while_tasks_are_loading_ends_it_at_once(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    argv = [
        *(sys.executable, "-m", "steelyard", "run", "./slow.py:Slow", "nop", "none"),
        *("--env", "host_process", "--progress", "plain"),
    ]
    with driving(tmp_path, argv) as child:
        deadline = time.monotonic() + 20
        while not list(tmp_path.glob("results/*/*/run.json")) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        began = time.monotonic()
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=30)
        assert child.returncode == 143, errors.decode()
        assert time.monotonic() - began < 5
    assert RunReader(run_of(tmp_path)).finished is not None
