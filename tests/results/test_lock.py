"""A run is alive exactly while its owner holds the lock."""

from __future__ import annotations

import ctypes
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
from tests.results.workload import a_run

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


class _FakeLibc:
    """A `statfs` that says what it is told, of every folder."""

    def __init__(self, magic: int, status: int = 0) -> None:
        self._magic = magic
        self._status = status

    def statfs(self, _folder: bytes, buffer: ctypes.Array[ctypes.c_char]) -> int:
        # As the kernel does: a signed long, the high half of which is not of the number.
        buffer[:8] = self._magic.to_bytes(8, "little")
        return self._status


def _statfs_says(monkeypatch: pytest.MonkeyPatch, magic: int, status: int = 0) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: _FakeLibc(magic, status))


@pytest.mark.parametrize(
    ("magic", "name"),
    [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFE534D42, "SMB2"),
        (0xFFFFFFFFFE534D42, "SMB2"),  # the same, sign-extended
        (0xFF534D42, "CIFS"),
        (0x01021997, "9P"),
        (0x00C36400, "Ceph"),
        (0x0BD00BD0, "Lustre"),
        (0x47504653, "GPFS"),
        (0x5346414F, "AFS"),
        (0x73757245, "Coda"),
        (0xEF53, None),  # ext4
        (0x01021994, None),  # tmpfs
        (0x794C7630, None),  # overlayfs
    ],
)
def test_network_file_systems_are_known_by_the_kernels_numbers(
    magic: int, name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _statfs_says(monkeypatch, magic)
    assert network_file_system(tmp_path) == name


def test_a_folder_that_cannot_be_asked_is_called_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _statfs_says(monkeypatch, 0x6969, status=-1)
    assert network_file_system(tmp_path) is None


def test_a_new_run_on_a_network_file_system_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _statfs_says(monkeypatch, 0x6969)
    folder = a_run(tmp_path, "far")
    folder.lock.release()
    assert folder.warnings == (f"{folder.root} lies on NFS: locks and syncs may not hold there",)
    monkeypatch.undo()
    near = a_run(tmp_path, "near")
    near.lock.release()
    assert near.warnings == ()
