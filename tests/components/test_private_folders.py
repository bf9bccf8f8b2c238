"""Folders of live processes: private, locked, and removed by the next one once their owner died."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from steelyard.components.clock import SystemClock
from steelyard.components.private_folders import PrivateFolder, hold, remove_stale

PREFIX = "steelyard-test-"


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder of its own, with a path that is short enough."""
    folder = Path(tempfile.mkdtemp(prefix="rt-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


class At:
    """A clock that stands at a time after now."""

    def __init__(self, later_s: float) -> None:
        self.later_s = later_s

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.later_s)

    def monotonic(self) -> float:
        return 0.0


def test_only_its_user_can_enter_and_nothing_is_left_of_it(base: Path) -> None:
    folder = PrivateFolder.make(PREFIX, SystemClock(), content="a secret")
    assert folder.path.parent == base
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / "owner").stat().st_mode & 0o777 == 0o600
    assert (folder.path / "owner").read_text() == "a secret"
    folder.socket_path.touch()
    folder.remove()
    folder.remove()
    assert list(base.iterdir()) == []


def test_folders_of_dead_processes_are_removed_and_no_others(base: Path) -> None:
    dead, alive, strange = (base / f"{PREFIX}{name}" for name in ("dead", "alive", "strange"))
    for folder in (dead, alive, strange, base / "other"):
        folder.mkdir()
    (dead / "owner").touch()
    (dead / "s").touch()
    lock = hold(alive / "owner", "")
    (strange / "thesis.txt").touch()
    (base / f"{PREFIX}link").symlink_to(base / "other")

    remove_stale(base, PREFIX, At(5))
    assert dead.exists(), "too young: its owner may be about to lock it"
    remove_stale(base, PREFIX, At(3600))
    assert sorted(path.name for path in base.iterdir()) == [
        "other", f"{PREFIX}alive", f"{PREFIX}link", f"{PREFIX}strange",
    ]  # fmt: skip
    assert (strange / "thesis.txt").exists()
    os.close(lock)


def test_a_planted_owners_file_neither_blocks_nor_leads_elsewhere(base: Path) -> None:
    """Whoever may write there may not make the next start wait for ever."""
    pipe, link = base / f"{PREFIX}pipe", base / f"{PREFIX}link"
    for folder in (pipe, link):
        folder.mkdir()
    os.mkfifo(pipe / "owner")
    victim = base / "victim"
    victim.touch()
    (link / "owner").symlink_to(victim)
    remove_stale(base, PREFIX, At(3600))
    assert victim.exists()
    assert not pipe.exists()


CHILD = """
import asyncio, sys
from pathlib import Path
from tests.models.gateway.serving import gateway_before
async def main():
    async with gateway_before("http://127.0.0.1:1/v1") as attempt:
        print(attempt.gateway.socket_path, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.integration
def test_the_gateways_folder_of_a_killed_process_is_removed_by_the_next_gateway(
    base: Path,
) -> None:
    words = [sys.executable, "-c", CHILD]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed, alive = (subprocess.Popen(words, stdout=subprocess.PIPE, env=env) for _ in range(2))
    try:
        assert killed.stdout
        assert alive.stdout
        left = Path(killed.stdout.readline().decode().strip()).parent
        kept = Path(alive.stdout.readline().decode().strip()).parent
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "s").exists()
        for folder in (left, kept):
            an_hour_ago = time.time() - 3600
            os.utime(folder, (an_hour_ago, an_hour_ago))
        third = subprocess.Popen(words, stdout=subprocess.PIPE, env=env)
        assert third.stdout
        third.stdout.readline()
        third.kill()
        third.wait()
        third.stdout.close()
        assert not left.exists()
        assert (kept / "s").exists()
    finally:
        for child in (killed, alive):
            child.kill()
            child.wait()
            assert child.stdout
            child.stdout.close()
