"""Folders that runs write to: real ones that refuse, and facts of those that are slow or full."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.doctor.disks import DiskFacts, disk_verdict, examine_folder
from steelyard.doctor.finding import State

GOOD = DiskFacts(Path("results"), None, 50_000, 1_000_000, 1.0, True)


def test_a_good_folder_works_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    assert examine_folder("results", tmp_path / "a" / "b").state is State.WORKS
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_broken(tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    found = examine_folder("results", tmp_path / "results")
    assert found.state is State.BROKEN
    assert "--results-dir" in (found.remedy or "")


@pytest.mark.integration
def test_a_folder_of_somebody_else_is_broken(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    code = (
        "import os, sys; os.geteuid() == 0 and (os.setgid(65534), os.setuid(65534));"
        "from pathlib import Path; from steelyard.doctor.disks import examine_folder;"
        "print(examine_folder('results', Path(sys.argv[1])).as_json())"
    )
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_uid == os.geteuid() and str(part).startswith("/tmp/"):
            part.chmod(part.stat().st_mode | 0o755)
    folder.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", "import steelyard.doctor.disks, steelyard.components.clock\n" + code,
         str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "'state': 'broken'" in done.stdout, done.stderr
    assert "cannot be written" in done.stdout


@pytest.mark.integration
def test_a_full_disk_is_broken(tmp_path: Path) -> None:
    """A file system of its own, of 64 KiB, filled up: the sync meets a real ENOSPC."""
    code = (
        "from pathlib import Path; from steelyard.doctor.disks import examine_folder;"
        "import sys; print(examine_folder('results', Path(sys.argv[1])).as_json())"
    )
    script = (
        'mount -t tmpfs -o size=64k none "$1" && '
        '{ head -c 100000 /dev/zero > "$1/fill" 2>/dev/null; exec "$2" -c "$3" "$1"; }'
    )
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, "-", str(tmp_path), sys.executable, code],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "'state': 'broken'" in done.stdout, done.stderr
    assert "No space left" in done.stdout


@pytest.mark.parametrize(
    ("facts", "state", "word"),
    [
        (GOOD, State.WORKS, "free"),
        (replace(GOOD, network="NFS"), State.WARNING, "NFS"),
        (replace(GOOD, holds_locks=False), State.BROKEN, "locks"),
        (replace(GOOD, free_mib=100), State.WARNING, "little room"),
        (replace(GOOD, free_files=12), State.WARNING, "12 more files"),
        (replace(GOOD, sync_ms=400.0), State.WARNING, "slow"),
    ],
)
def test_what_a_folder_showed_is_judged(facts: DiskFacts, state: State, word: str) -> None:
    found = disk_verdict("results", facts)
    assert found.state is state
    assert word in found.message
    assert (found.remedy is None) == (state is State.WORKS)


def test_a_file_system_that_holds_no_locks_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(file: object, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refusing)
    found = examine_folder("results", tmp_path)
    assert found.state is State.BROKEN
    assert "does not hold locks" in found.message
