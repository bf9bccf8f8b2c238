"""A run is alive exactly while its owner holds the lock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from steelyard.results.lock import (
    OwnerIdentity,
    RunLock,
    is_alive,
    network_file_system,
    read_owner,
)

HOLDER = """
import sys
from pathlib import Path
from steelyard.results.lock import RunLock
lock = RunLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_held_lock_is_alive_until_it_is_released(tmp_path: Path) -> None:
    lock = RunLock.acquire(tmp_path / "lock")
    assert is_alive(tmp_path / "lock")
    lock.release()
    lock.release()
    assert not is_alive(tmp_path / "lock")


def test_no_lock_file_means_not_alive(tmp_path: Path) -> None:
    assert not is_alive(tmp_path / "lock")


@pytest.mark.integration
def test_the_death_of_the_owner_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_alive(path)
        owner = read_owner(path)
        assert owner is not None
        assert owner.pid == holder.pid
        holder.kill()
    assert not is_alive(path)


def test_a_program_that_the_owner_starts_does_not_keep_the_run_alive(tmp_path: Path) -> None:
    lock = RunLock.acquire(tmp_path / "lock")
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        lock.release()
        assert not is_alive(tmp_path / "lock")
        child.kill()


def test_the_owner_is_told_apart_from_every_other_process(tmp_path: Path) -> None:
    lock = RunLock.acquire(tmp_path / "lock")
    owner = read_owner(tmp_path / "lock")
    lock.release()
    assert owner == OwnerIdentity.of_this_process()
    assert owner is not None
    assert owner.pid == os.getpid()
    assert owner.boot_id
    assert owner.pid_namespace
    assert owner.start_ticks
    assert orjson.loads((tmp_path / "lock").read_bytes())["schema"] == "lock/1"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}'])
def test_a_damaged_lock_file_names_nobody(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(content)
    assert read_owner(tmp_path / "lock") is None


def test_a_local_folder_is_not_called_a_network_file_system(tmp_path: Path) -> None:
    assert network_file_system(tmp_path) is None
