"""`evalset watch` and `logs -f` beside a real runner: they end when it does, however that is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.evalset.find_set import sets_below
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.states import SetState
from tests.cli.tmux import Pane
from tests.evalset.living_sets import living_set
from tests.evalset.projects import agent, lines, write_manifest, write_project

pytestmark = pytest.mark.integration

STEELYARD = [sys.executable, "-m", "steelyard"]
ENV = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def until(claim: Callable[[], Any], within_s: float = 30.0) -> Any:
    deadline_s = time.monotonic() + within_s
    while not (found := claim()):
        assert time.monotonic() < deadline_s, "it never came"
        time.sleep(0.05)
    return found


class Beside:
    """A project whose set runs in one process, while others follow it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> subprocess.Popen[str]:
        started = subprocess.Popen(
            [*STEELYARD, "evalset", *words], cwd=self.folder, env=ENV, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.processes.append(started)
        return started

    def submit(self, harness: str = "Sleeping", **fields: Any) -> subprocess.Popen[str]:
        """Start a set of two cells; with `Sleeping` it ends only where somebody ends it."""
        write_project(self.folder, agent("one", harness, {"ledger": str(self.folder)}))
        write_manifest(self.folder, "one", repeats=2, **fields)
        runner = self.start("submit", "set.yaml")
        if harness == "Sleeping":
            until(lambda: len(lines(self.folder / "asleep")) >= 2)
        return runner

    @property
    def opened(self) -> OpenedSet:
        (root,) = sets_below(self.folder / "results")
        return OpenedSet(root)

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    made = Beside(tmp_path)
    yield made
    made.end()


def test_watch_ends_when_the_runner_is_killed(beside: Beside) -> None:
    runner = beside.submit()
    watcher = beside.start("watch", "latest", "--json")
    assert watcher.stdout is not None
    first = json.loads(watcher.stdout.readline())
    assert first["state"] == "running"
    assert first["is_whole"]
    logs = beside.start("logs", "latest", "-f")
    runner.send_signal(signal.SIGKILL)
    rest, err = watcher.communicate(timeout=30)
    assert watcher.returncode == 1, err
    last = json.loads(rest.splitlines()[-1])
    assert last["state"] == "interrupted"
    assert last["exit_status"] == 1
    assert {cell["state"] for cell in last["cells"]} == {"interrupted"}
    told, err = logs.communicate(timeout=30)
    assert logs.returncode == 1, err
    assert "started" in told
    plain = beside.start("watch", "latest")
    shown, _ = plain.communicate(timeout=30)
    assert plain.returncode == 1
    assert "interrupted" in shown


def test_watch_sees_a_set_through_to_its_end_and_logs_tell_all_of_it(beside: Beside) -> None:
    runner = beside.submit()
    watcher = beside.start("watch", "latest")
    logs = beside.start("logs", "latest", "--follow", "--json", "--case", "case-1")
    status = beside.start("status", "latest", "--json")
    document = json.loads(status.communicate(timeout=30)[0])
    assert document["state"] == "running"
    assert document["attempts"]["planned"] == 6
    time.sleep(1.0)
    cancel = beside.start("cancel", "latest")
    assert cancel.wait(30) == 0
    assert runner.wait(30) == 130
    shown, err = watcher.communicate(timeout=30)
    assert watcher.returncode == 130, err
    assert "refunds" not in shown
    assert "p/one/1: cancelled" in shown
    told, err = logs.communicate(timeout=30)
    assert logs.returncode == 130, err
    found = [json.loads(line) for line in told.splitlines()]
    assert {one["case"] for one in found} == {"case-1"}
    assert {one["kind"] for one in found} == {"event", "record"}


def test_a_watcher_goes_on_where_the_set_is_resumed_before_it_looks(beside: Beside) -> None:
    runner = beside.submit()
    watcher = beside.start("watch", "latest", "--json")
    assert watcher.stdout is not None
    watcher.stdout.readline()
    watcher.send_signal(signal.SIGSTOP)
    runner.kill()
    runner.wait()
    (beside.folder / "awake").touch()
    resumed = beside.start("resume", "latest")
    until(lambda: resumed.poll() is not None or len(beside.opened.submissions()) == 2)
    watcher.send_signal(signal.SIGCONT)
    rest, err = watcher.communicate(timeout=60)
    assert resumed.wait(30) == 0
    assert watcher.returncode == 0, err
    last = json.loads(rest.splitlines()[-1])
    assert last["state"] == "completed"
    assert last["submission"]["kind"] == "resume"
    assert last["attempts"]["ended"] == 6


def test_a_reader_that_goes_away_ends_the_watcher_and_not_the_set(beside: Beside) -> None:
    beside.submit()
    watcher = beside.start("watch", "latest", "--json")
    assert watcher.stdout is not None
    watcher.stdout.readline()
    watcher.stdout.close()
    cell = beside.opened.cells[0]
    root = beside.opened.run_dir(cell)
    assert root is not None
    progress = json.loads((root / "progress.json").read_bytes())

    def has_ended() -> bool:
        # Something must change, or there is nothing to write that could fail.
        changed = {**progress, "issues": {"x": time.time_ns()}}
        (root / "progress.json").write_text(json.dumps(changed))
        return watcher.poll() is not None

    until(has_ended)
    assert watcher.returncode == 0
    assert beside.opened.state() is SetState.RUNNING


def test_ctrl_c_stops_watching_and_not_the_set(beside: Beside) -> None:
    beside.submit()
    for command in (("watch", "latest", "--json"), ("logs", "latest", "-f", "--json")):
        watcher = beside.start(*command)
        assert watcher.stdout is not None
        watcher.stdout.readline()
        watcher.send_signal(signal.SIGINT)
        _, err = watcher.communicate(timeout=30)
        assert watcher.returncode == 130
        assert "the set goes on" in err
    assert beside.opened.state() is SetState.RUNNING


def test_keys_that_match_nothing_are_refused_before_anything_is_followed(beside: Beside) -> None:
    beside.submit()
    process = beside.start("logs", "latest", "-f", "--cell", "p/one/7")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "'p/one/1'" in err


# -- a real terminal ---------------------------------------------------------------------------


@pytest.fixture
def pane() -> Iterator[Pane]:
    with tempfile.TemporaryDirectory(prefix="sy-") as folder:
        opened = Pane(Path(folder), width=100, height=20)
        yield opened
        opened.kill()


def test_the_matrix_is_drawn_and_taken_away_when_the_set_ends(pane: Pane, tmp_path: Path) -> None:
    made = living_set(tmp_path, repeats=3)
    made.run(0)
    pane.type(f"{' '.join(STEELYARD)} evalset watch {made.root}")
    pane.sees("1/6 cells")
    pane.sees("refunds  base")
    assert "1.000 [" in pane.screen()
    assert not pane.has_cursor()
    made.run(1)
    pane.sees("2/6 cells")
    for width, height in ((40, 8), (20, 4), (100, 20)):
        pane.resize(width, height)
        pane.sees("running")
    pane.press("C-z")
    pane.sees("Stopped")
    assert "2/6 cells" not in pane.screen()
    pane.type("fg")
    pane.sees("2/6 cells")
    made.let_go()
    pane.sees("interrupted")
    pane.type("echo status=$?")
    pane.until(lambda: "status=1\n" in pane.screen())
    assert "Traceback" not in pane.history()
    assert "2/6 cells" not in pane.screen()
    assert pane.has_cursor()


def test_a_watcher_that_is_ended_gives_the_terminal_back(pane: Pane, tmp_path: Path) -> None:
    made = living_set(tmp_path)
    pane.type(
        f"{' '.join(STEELYARD)} evalset watch {made.root} & echo $! > pid; fg; echo status=$?"
    )
    pane.sees("0/4 cells")
    pane.run("run-shell", f"kill -TERM $(cat {pane.folder}/pid)")
    pane.sees("status=143")
    assert pane.has_cursor()
    pane.type(f"{' '.join(STEELYARD)} evalset watch {made.root}; echo status=$?")
    pane.sees("0/4 cells")
    pane.press("C-c")
    pane.sees("status=130")
    assert "the set goes on" in pane.history()
    assert pane.has_cursor()
