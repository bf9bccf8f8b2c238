"""SIGKILL of a real launch at every named write: what is recorded is never paid again."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.results.checkpoints import Checkpoint, checkpoint_from_bytes
from steelyard.results.files import OF_SETS, WritePoint
from steelyard.results.reader import RunReader, RunState
from steelyard.testing.faults import KillAt, kill_plans
from tests.engine.paying import TASKS, K

CHILD = Path(__file__).with_name("kill_child.py")

NTH = {
    WritePoint.JOURNAL_CREATED: 2,
    WritePoint.ATTEMPTS_APPENDED: 3,
    WritePoint.EVENTS_APPENDED: 4,
    WritePoint.ATTEMPT_FILE_WRITTEN: 2,
    WritePoint.ATTEMPT_FILE_RENAMED: 2,
    # Two executions are in these at once: the second has come before the first is through.
    WritePoint.INPUTS_COLLECTED: 2,
    WritePoint.ARTIFACTS_COLLECTED: 2,
    WritePoint.CHECKPOINT_WRITTEN: 2,
    WritePoint.CHECKPOINT_SYNCED: 2,
    WritePoint.CHECKPOINT_RENAMED: 2,
}
POINTS = [point for point in WritePoint if point not in OF_SETS]  # tests/evalset has those
PLANS = [plan for point in POINTS for plan in kill_plans(point, NTH.get(point, 1))]


def lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1] if path.exists() else []


def checkpoints(folder: Path) -> list[Checkpoint]:
    """Those of the newest run, whole."""
    return [
        checkpoint_from_bytes(path.read_bytes())
        for path in (folder / "results" / "r").glob("*/tasks/*/attempt-*/checkpoint.json")
    ]


def child(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(CHILD), str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=120)


@pytest.mark.integration
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_killed_launch_pays_nothing_twice(plan: KillAt, tmp_path: Path) -> None:
    killed = child(tmp_path, str(plan))
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    paid = lines(tmp_path / "paid")
    recorded: set[str] = set()
    in_flight: set[str] = set()
    for root in sorted((tmp_path / "results" / "r").glob("*")):
        if not (root / "run.json").exists():
            continue
        reader = RunReader(root)
        recorded |= {
            f"{r.task_id} {r.attempt}" for r in reader.records() if r.outcome is Outcome.SCORED
        }
        in_flight |= {f"{f.task_id} {f.attempt}" for f in reader.in_flight}
        ledger = reader.ledger
        assert sum(ledger.outcomes.values()) == ledger.planned
        assert reader.state in (RunState.DEAD, RunState.FINISHED)
    # What was begun is in the journal: recorded, or named as in flight.
    assert set(paid) <= recorded | in_flight
    pending = {f"{c.task_id} {c.attempt}" for c in checkpoints(tmp_path)} - recorded
    again = child(tmp_path, "-", "reuse")
    assert again.returncode == 0, again.stderr.decode()
    paid_again = Counter(lines(tmp_path / "paid")[len(paid) :])
    assert not recorded & set(paid_again)
    everything = {f"t{task} {attempt}" for task in range(TASKS) for attempt in range(1, K + 1)}
    # What the disk holds of a finished agent is scored, not paid again.
    assert not pending & set(paid_again)
    assert recorded | pending | set(paid_again) == everything
    assert max(paid_again.values(), default=1) == 1


@pytest.mark.integration
def test_a_kill_before_a_record_does_not_pay_again_for_inputs_too_large_to_keep(
    tmp_path: Path,
) -> None:
    killed = child(tmp_path, str(KillAt(WritePoint.ATTEMPTS_APPENDED)), "large")
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    paid = lines(tmp_path / "paid")
    pending = {f"{c.task_id} {c.attempt}" for c in checkpoints(tmp_path)}
    assert pending
    again = child(tmp_path, "-", "reuse", "large")
    assert again.returncode == 0, again.stderr.decode()
    assert not pending & set(lines(tmp_path / "paid")[len(paid) :])


def test_the_matrix_has_a_row_for_every_write() -> None:
    assert {plan.point for plan in PLANS} == set(POINTS)
