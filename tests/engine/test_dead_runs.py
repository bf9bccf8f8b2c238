"""What a killed launch left running is named by the next one; nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from steelyard.cli.show import show
from steelyard.engine.dead_runs import dead_sessions
from steelyard.engine.events import Unobserved
from steelyard.results.summary import rebuild
from tests.engine.launching import COMPONENTS, request, run_all

pytestmark = pytest.mark.integration

CHILD = """
import sys
from pathlib import Path
from tests.engine.launching import request, run_all
run_all(Path(sys.argv[1]), request(benchmark={"tasks": 1}, harness={"execs": "sleep 97"}))
"""


class Notices(Unobserved):
    def __init__(self) -> None:
        self.said: list[str] = []

    def notice(self, request: str | None, message: str) -> None:
        self.said.append(message)


def killed(tmp_path: Path) -> None:
    """Launch, wait until the agent's program runs, kill the driver alone."""
    env = os.environ | {"PYTHONPATH": str(COMPONENTS.parents[2])}
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], env=env)
    deadline = time.monotonic() + 30
    while not sleepers() and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()


def sleepers() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == b"sleep\x0097\x00":
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_what_a_killed_launch_left_is_named_with_its_run_and_not_ended(tmp_path: Path) -> None:
    killed(tmp_path)
    (pid,) = sleepers()
    try:
        (dead,) = (tmp_path / "results" / "r").iterdir()
        notices = Notices()
        run_all(tmp_path, request(benchmark={"tasks": 1}), observer=notices)
        (said,) = [text for text in notices.said if "left" in text]
        assert dead.name in said
        assert str(pid) in said
        assert sleepers() == [pid]
    finally:
        os.kill(pid, signal.SIGKILL)


def test_what_a_killed_run_was_doing_is_named_with_what_it_had_cost(tmp_path: Path) -> None:
    program = Path(__file__).with_name("kill_child.py")
    command = [sys.executable, str(program), str(tmp_path), "attempts_appended:1:before"]
    child = subprocess.run(command, check=False, capture_output=True)
    assert child.returncode == -signal.SIGKILL, child.stderr
    (dead,) = (tmp_path / "results" / "r").iterdir()
    notices = Notices()
    run_all(tmp_path, request(benchmark={"tasks": 1}), observer=notices)
    (said,) = [text for text in notices.said if "under way" in text]
    assert said.startswith(f"{dead.name} died with ")
    assert "t0 attempt 1 (1 model calls, $0.2500 so far)" in said
    shown = CliRunner().invoke(show, [str(dead)], catch_exceptions=False)
    assert "in flight when the run ended: t0 attempt 1 (1 model calls, $0.2500" in shown.stderr
    rebuild(dead)
    assert "1 model requests, cost $0.2500" in (dead / "summary.md").read_text()


def test_a_run_that_ended_and_one_that_is_alive_leave_nothing_to_look_for(tmp_path: Path) -> None:
    result = run_all(tmp_path, request())
    namespace = result.requests[0].run_dir.parent
    assert dead_sessions(namespace, "none") == {}
    assert dead_sessions(tmp_path / "absent", "none") == {}
