"""Interpreter, clock and limits: each verdict has a cause that makes it."""

from __future__ import annotations

import resource
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from steelyard.components.clock import SystemClock
from steelyard.doctor import machine
from steelyard.doctor.finding import State

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def test_this_python_works() -> None:
    assert machine.examine_python().state is State.WORKS


def test_an_old_python_is_broken_and_says_which_is_needed() -> None:
    found = machine.python_verdict((3, 10), "Linux", "x86_64")
    assert found.state is State.BROKEN
    assert "3.11" in (found.remedy or "")


def test_another_system_than_linux_is_a_warning_with_the_ways_out() -> None:
    found = machine.python_verdict((3, 12), "Darwin", "arm64")
    assert found.state is State.WARNING
    assert "container engine" in (found.remedy or "")


def test_a_clock_of_the_past_is_broken() -> None:
    found = machine.clock_verdict(datetime(1970, 1, 1, tzinfo=UTC), True)
    assert found.state is State.BROKEN


def test_a_clock_that_nothing_synchronises_is_a_warning() -> None:
    assert machine.clock_verdict(NOW, False).state is State.WARNING
    assert machine.clock_verdict(NOW, True).state is State.WORKS
    assert machine.clock_verdict(NOW, None).state is State.WORKS


def test_the_kernels_word_on_the_clock_is_read() -> None:
    found = machine.examine_clock(SystemClock())
    assert found.state in (State.WORKS, State.WARNING)
    assert "UTC" in found.message


def test_steady_clocks_that_differ_are_broken() -> None:
    assert machine.steps_verdict(0.02, 0.2).state is State.BROKEN
    assert machine.steps_verdict(-1.0, 0.02).state is State.BROKEN
    assert machine.examine_time_steps().state is State.WORKS


@pytest.mark.integration
def test_a_real_limit_of_open_files_is_told_with_both_remedies() -> None:
    code = (
        "import resource; from steelyard.doctor import machine;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096));"
        "print(next(iter(machine.examine_limits(32))).as_json())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'state': 'warning'" in shown.stdout
    assert "`ulimit -n 640`" in shown.stdout
    assert "`task_concurrency: 8`" in shown.stdout


def test_a_hard_limit_that_is_too_low_is_not_answered_with_ulimit() -> None:
    found = machine.files_verdict(256, 512, 32)
    assert "ulimit" not in (found.remedy or "")
    assert "512" in (found.remedy or "")


def test_no_limit_of_open_files_is_enough() -> None:
    assert machine.files_verdict(resource.RLIM_INFINITY, -1, 10_000).state is State.WORKS


def test_little_memory_for_the_concurrency_is_a_warning_with_a_number_that_fits() -> None:
    found = machine.memory_verdict(640, 2, 32)
    assert found.state is State.WARNING
    assert "`task_concurrency: 10`" in (found.remedy or "")
    assert machine.memory_verdict(64_000, 2, 32).state is State.WORKS


def test_every_finding_but_a_good_one_has_a_remedy(tmp_path: Path) -> None:
    from steelyard.doctor.checkup import examine

    for found in examine({"HOME": str(tmp_path)}, tmp_path, SystemClock()):
        assert (found.remedy is None) == (found.state is State.WORKS), found


def test_a_machine_whose_clock_stands_in_the_past_is_looked_at_and_found_broken() -> None:
    class Past(SystemClock):
        def now(self) -> datetime:
            return datetime(1970, 1, 1, tzinfo=UTC)

    assert machine.examine_clock(Past()).state is State.BROKEN


def test_an_interpreter_that_is_too_old_is_looked_at_and_found_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 2, "final", 0))
    assert machine.examine_python().state is State.BROKEN


def test_a_steady_clock_that_jumps_is_looked_at_and_found_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jumps = iter([100.0, 160.0])
    monkeypatch.setattr("time.monotonic", lambda: next(jumps))
    assert machine.examine_time_steps().state is State.BROKEN
