"""Fault plans: the n-th write fails, is cut short, or works again, and nothing else is touched."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.results.files import WritePoint
from steelyard.testing.faults import All, FailAt, KillAt, Side, SlowSync, kill_plans

POINT, OTHER = WritePoint.ATTEMPTS_APPENDED, WritePoint.EVENTS_APPENDED


def test_the_nth_write_fails_and_then_the_disk_works_again(tmp_path: Path) -> None:
    plan = FailAt(POINT, nth=2, times=1)
    failed = []
    for number in range(1, 5):
        plan.before(OTHER)
        try:
            plan.before(POINT)
        except OSError as error:
            failed.append((number, error.errno))
    assert failed == [(2, errno.ENOSPC)]
    assert plan.seen[POINT] == 4


def test_a_write_may_be_taken_in_part_before_the_disk_is_full(tmp_path: Path) -> None:
    plan = FailAt(POINT, bytes_taken=3)
    with (tmp_path / "file").open("wb") as file:
        plan.before(POINT)
        assert plan.write(POINT, file.fileno(), b"abcdef") == 3
        with pytest.raises(OSError, match="No space left"):
            plan.write(POINT, file.fileno(), b"def")
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_another_error_can_be_asked_for() -> None:
    with pytest.raises(OSError, match="Input/output") as caught:
        FailAt(POINT, error=errno.EIO).before(POINT)
    assert caught.value.errno == errno.EIO


def test_several_plans_are_all_asked(tmp_path: Path) -> None:
    first, second = FailAt(POINT, nth=9), FailAt(OTHER)
    plans = All(first, SlowSync(0.0), second)
    plans.before(POINT)
    with pytest.raises(OSError, match="No space left"):
        plans.before(OTHER)
    plans.after(POINT)
    assert first.seen == {POINT: 1, OTHER: 1}
    with (tmp_path / "file").open("wb") as file:
        assert plans.write(POINT, file.fileno(), b"whole") == 5


def test_every_side_of_a_write_has_a_plan_that_can_be_named() -> None:
    plans = list(kill_plans(POINT, 3))
    assert [plan.side for plan in plans] == list(Side)
    assert [str(KillAt.parse(str(plan))) for plan in plans] == [str(plan) for plan in plans]
    assert [plan.side for plan in kill_plans(WritePoint.ATTEMPTS_SYNCED)] == [
        Side.BEFORE,
        Side.AFTER,
    ]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("side", "written"), [("before", b""), ("during", b"ab"), ("after", b"abcd")]
)
def test_the_process_ends_there(tmp_path: Path, side: str, written: bytes) -> None:
    program = (
        "import os, sys\n"
        "from steelyard.results.files import WritePoint\n"
        "from steelyard.testing.faults import KillAt\n"
        "plan, point = KillAt.parse(sys.argv[1]), WritePoint.ATTEMPTS_APPENDED\n"
        "fd = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)\n"
        "plan.before(point); plan.write(point, fd, b'abcd'); plan.after(point)\n"
    )
    path = tmp_path / "file"
    path.touch()
    ended = subprocess.run(
        [sys.executable, "-c", program, f"{POINT}:1:{side}", str(path)], env=os.environ, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    assert path.read_bytes() == written
