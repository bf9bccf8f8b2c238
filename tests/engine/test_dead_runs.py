"""What a killed launch left running is named by the next one; nothing else is."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from steelyard.cli.show import show
from steelyard.components.session_folders import new_folder, temporary_base
from steelyard.engine.dead_runs import dead_remains
from steelyard.engine.events import Unobserved
from steelyard.engine.launch import launch, prepare
from steelyard.results.lock import is_alive
from steelyard.results.session_tokens import FILES_SUFFIX
from steelyard.results.summary import rebuild
from tests.engine.keeping import closed, command, listed
from tests.engine.launching import COMPONENTS, request, resolved, run_all
from tests.results.test_remains import STEM, a_dead_run

pytestmark = pytest.mark.integration

CHILD = """
import sys
from pathlib import Path
from tests.engine.launching import request, run_all
folder, naps = sys.argv[1:]
run_all(Path(folder), request(benchmark={"tasks": 1}, harness={"execs": "sleep " + naps}))
"""


class Notices(Unobserved):
    def __init__(self) -> None:
        self.said: list[str] = []

    def notice(self, request: str | None, message: str) -> None:
        self.said.append(message)


def launched(tmp_path: Path, naps: str) -> subprocess.Popen[bytes]:
    """Launch in a process of its own; wait until the agent's program runs."""
    env = os.environ | {"PYTHONPATH": str(COMPONENTS.parents[2])}
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), naps], env=env)
    deadline = time.monotonic() + 60
    while not sleepers(naps) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sleepers(naps), "the agent's program never started"
    return child


def killed(tmp_path: Path, naps: str) -> Path:
    """Launch, wait until the agent's program runs, kill the driver alone; the run."""
    child = launched(tmp_path, naps)
    child.send_signal(signal.SIGKILL)
    child.wait()
    return max((tmp_path / "results" / "r").iterdir())


def sleepers(naps: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0{naps}\0".encode():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def gone(naps: str) -> bool:
    deadline = time.monotonic() + 20
    while sleepers(naps) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not sleepers(naps)


@pytest.fixture
def naps() -> Iterator[str]:
    """Seconds that no other test sleeps; who still does at the end is ended."""
    seconds = f"600.{secrets.randbelow(10**9):09}"
    yield seconds
    for pid in sleepers(seconds):
        os.kill(pid, signal.SIGKILL)


def notices(tmp_path: Path, *, reap: bool = False) -> list[str]:
    """Launch once more, and give what is said."""
    observer = Notices()
    prepared = prepare(resolved(tmp_path, request(benchmark={"tasks": 1})))
    asyncio.run(launch(prepared, observer=observer, reap=reap))
    return observer.said


def test_what_a_killed_launch_left_is_named_with_what_ends_it_and_not_ended(
    tmp_path: Path, naps: str
) -> None:
    dead = killed(tmp_path, naps)
    (pid,) = sleepers(naps)
    (said,) = [text for text in notices(tmp_path) if "left" in text]
    assert said.startswith(f"{dead.name} died and left 2 behind: process {pid}")
    assert sleepers(naps) == [pid]
    remedy = re.search(r"`(steelyard env close [^`]*)` ends it, and so does --reap", said)
    assert remedy is not None, said
    done = command(*shlex.split(remedy[1])[1:])
    assert f"process {pid}" in done.stdout
    assert gone(naps)
    assert not [text for text in notices(tmp_path) if "left" in text]


def test_reap_ends_what_a_dead_run_left_and_nothing_of_a_live_one_beside(
    tmp_path: Path, naps: str
) -> None:
    beside = f"1{naps}"
    dead = killed(tmp_path, naps)
    live = launched(tmp_path, beside)
    try:
        (pid,) = sleepers(beside)
        said = notices(tmp_path, reap=True)
        (ended,) = [text for text in said if "ended what" in text]
        assert ended.startswith(f"ended what {dead.name} left when it died: process ")
        assert gone(naps)
        assert not [text for text in said if "behind" in text]
        assert sleepers(beside) == [pid]
        assert live.poll() is None
        (one,) = [one for one in listed(tmp_path / "results") if one["of"] == "task"]
        assert one["state"] == "live"
        refused = command("env", "close", str(tmp_path / "results"), "--id", one["id"], status=2)
        assert "its run goes on" in refused.stderr
        assert one["run"] in refused.stderr
        left_alone = closed(tmp_path / "results")
        assert (left_alone["ended"], len(left_alone["in_use"])) == ([], 1)
        assert sleepers(beside) == [pid]
    finally:
        live.send_signal(signal.SIGINT)
        assert live.wait(60) is not None
    assert gone(beside)


def test_a_copy_of_a_live_runs_folder_is_not_taken_for_a_dead_run(
    tmp_path: Path, naps: str
) -> None:
    live = launched(tmp_path, naps)
    try:
        (original,) = (tmp_path / "results" / "r").iterdir()
        copy = original.with_name("20200101_000000")
        shutil.copytree(original, copy)
        assert not is_alive(copy / "lock")
        said = notices(tmp_path, reap=True)
        assert len(sleepers(naps)) == 1, said
        assert not [text for text in said if "ended what" in text]
        # Where both are seen, what they share is the live one's.
        states = {one["run"]: one["state"] for one in listed(tmp_path / "results")}
        assert states == {str(original): "live"}
        assert {one["state"] for one in listed(copy)} == {"unknown"}
        closed(tmp_path / "results")
        closed(copy)
        assert len(sleepers(naps)) == 1
    finally:
        live.send_signal(signal.SIGINT)
        live.wait(60)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hostname", "elsewhere", "another host (elsewhere)"),
        ("boot_id", "0000", "another boot of this machine (0000)"),
        ("pid_namespace", 1, "another process namespace (1)"),
        ("boot_id", None, "another boot of this machine"),
    ],
)
def test_what_cannot_be_proven_dead_from_here_is_told_and_not_ended(
    tmp_path: Path, naps: str, field: str, value: object, said: str
) -> None:
    dead = killed(tmp_path, naps)
    lock = dead / "lock"
    lock.write_text(json.dumps(json.loads(lock.read_text()) | {field: value}))
    heard = [text for text in notices(tmp_path, reap=True) if "left" in text]
    assert len(heard) == 1
    assert said in heard[0]
    assert "nothing of it is ended" in heard[0]
    assert len(sleepers(naps)) == 1
    (one,) = listed(dead)
    assert (one["state"], said in one["why"]) == ("unknown", True)
    closed(dead)
    assert len(sleepers(naps)) == 1


@pytest.mark.parametrize("damage", ["no lock", "empty lock", "lock is a folder"])
def test_a_run_whose_lock_cannot_be_read_is_not_taken_for_dead(
    tmp_path: Path, naps: str, damage: str
) -> None:
    dead = killed(tmp_path, naps)
    (dead / "lock").unlink()
    if damage == "empty lock":
        (dead / "lock").touch()
    if damage == "lock is a folder":
        (dead / "lock").mkdir()
    notices(tmp_path, reap=True)
    closed(dead)
    assert len(sleepers(naps)) == 1
    (one,) = listed(dead)
    assert one["state"] == "unknown"


def test_a_launch_that_is_stopped_while_it_reaps_closes_its_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare(resolved(tmp_path, request(benchmark={"tasks": 1})))
    environment = prepared.plan.requests[0].services.environment
    closings: list[str] = []

    async def stopped(*_: object) -> None:
        raise asyncio.CancelledError

    async def close() -> None:
        closings.append(environment.id)

    monkeypatch.setattr("steelyard.engine.launch.reap_leftovers", stopped)
    monkeypatch.setattr(environment, "close", close)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(launch(prepared, reap=True))
    assert closings == [environment.id]


def test_what_a_killed_run_was_doing_is_named_with_what_it_had_cost(tmp_path: Path) -> None:
    program = Path(__file__).with_name("kill_child.py")
    command = [sys.executable, str(program), str(tmp_path), "attempts_appended:1:before"]
    child = subprocess.run(command, check=False, capture_output=True)
    assert child.returncode == -signal.SIGKILL, child.stderr
    (dead,) = (tmp_path / "results" / "r").iterdir()
    (said,) = [text for text in notices(tmp_path) if "under way" in text]
    assert said.startswith(f"{dead.name} died with ")
    assert "t0 attempt 1 (1 model calls, $0.2500 so far)" in said
    shown = CliRunner().invoke(show, [str(dead)], catch_exceptions=False)
    assert "in flight when the run ended: t0 attempt 1 (1 model calls, $0.2500" in shown.stderr
    rebuild(dead)
    assert "1 model requests, cost $0.2500" in (dead / "summary.md").read_text()


def test_a_run_that_ended_leaves_nothing_to_look_for(tmp_path: Path) -> None:
    result = run_all(tmp_path, request())
    namespace = result.requests[0].run_dir.parent
    assert dead_remains(namespace, None) == []
    assert dead_remains(tmp_path / "absent", None) == []


def test_the_folder_into_which_a_dead_run_collected_is_found_and_ended(tmp_path: Path) -> None:
    root = a_dead_run(tmp_path)
    folder = new_folder(STEM + FILES_SUFFIX, base=temporary_base())
    folder.mkdir(0o700)
    (folder / "out").touch()
    (one,) = closed(root)["ended"]
    assert (one["of"], one["exists"]) == ("files", [f"folder {folder}"])
    assert not folder.exists()
