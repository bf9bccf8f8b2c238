"""SIGKILL of a set at every write beside its runs, and at some within: `resume` goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.evalset.find_set import find_set, sets_below
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.states import CellState, SetState
from steelyard.results.files import OF_SETS, WritePoint
from steelyard.results.reader import RunReader
from steelyard.testing.faults import KillAt, kill_plans
from tests.evalset.projects import agent, lines, write_project

pytestmark = pytest.mark.integration

CHILD = Path(__file__).with_name("kill_child.py")
SUBMISSIONS = (
    WritePoint.SUBMISSION_WRITTEN,
    WritePoint.SUBMISSION_SYNCED,
    WritePoint.SUBMISSION_RENAMED,
)
"""Written when a submission begins, and once more when it ends."""
OWN = [point for point in WritePoint if point in OF_SETS and not point.startswith("findings_")]
INSIDE = (
    (WritePoint.RUN_FOLDER_MADE, 4),  # of the set, of its submissions, of the first cells
    (WritePoint.RUN_DOCUMENT_RENAMED, 3),
    (WritePoint.EVENTS_APPENDED, 5),
    (WritePoint.ATTEMPTS_APPENDED, 4),
    (WritePoint.METRICS_RENAMED, 1),
    (WritePoint.PROGRESS_RENAMED, 2),
)
PLANS = [plan for point in OWN for plan in kill_plans(point, 1)]
PLANS += [plan for point in SUBMISSIONS for plan in kill_plans(point, 2)]
PLANS += [plan for point, nth in INSIDE for plan in kill_plans(point, nth)]


def child(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(CHILD), str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=120)


def recorded(opened: OpenedSet) -> Counter[str]:
    """Count what any run of any cell holds as scored, by seed and case."""
    found: Counter[str] = Counter()
    for cell in opened.cells:
        names = set()
        for root in opened.run_dirs(cell):
            names |= {
                f"{cell.cell.seed} {record.task_id}"
                for record in RunReader(root).records()
                if record.outcome is Outcome.SCORED
            }
        found.update(names)
    return found


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_killed_set_goes_on_and_pays_nothing_twice(plan: KillAt, tmp_path: Path) -> None:
    write_project(tmp_path, agent("paying", "Paying", {"ledger": str(tmp_path)}))
    killed = child(tmp_path, str(plan), "submit")
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    paid = lines(tmp_path / "paid")
    if not list(sets_below(tmp_path / "results")):
        assert paid == []  # nothing is begun before the set can be found
        again = child(tmp_path, "-", "submit")
        assert again.returncode == 0, again.stderr.decode()
        return
    opened = find_set("latest", tmp_path / "results")
    has_ended = len(lines(tmp_path / "done")) == 9 and opened.submissions()[-1].outcome is not None
    assert opened.state() is (SetState.COMPLETED if has_ended else SetState.INTERRUPTED)
    kept = recorded(opened)
    again = child(tmp_path, "-", "resume")
    assert again.returncode == 0, again.stderr.decode()
    paid_again = Counter(lines(tmp_path / "paid")[len(paid) :])
    assert not set(kept) & set(paid_again)
    assert max(paid_again.values(), default=1) == 1
    opened = OpenedSet(opened.root)
    assert {status.state for status in opened.statuses()} == {CellState.COMPLETED}
    assert len(recorded(opened)) == 9


def test_the_matrix_has_a_row_for_every_write_beside_runs() -> None:
    assert {plan.point for plan in PLANS} >= set(OWN)
