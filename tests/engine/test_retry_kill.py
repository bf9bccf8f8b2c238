"""SIGKILL of a launch around every write that a retry makes: nothing recorded is run again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.results.executions import earlier_executions
from steelyard.results.files import WritePoint
from steelyard.results.reader import RunReader, RunState
from steelyard.results.summary import rebuild
from steelyard.testing.faults import KillAt, Side
from tests.engine.flaky import agent_ran

CHILD = Path(__file__).with_name("retry_kill_child.py")

# With one slot: t0 fails twice and waits, t1 is answered meanwhile. An execution that is replaced
# has a trajectory and an `execution.json`, and its `retry` stands in the journal after both.
PLANS = [
    KillAt(WritePoint.ATTEMPT_FOLDER_MADE, 1, Side.AFTER),
    KillAt(WritePoint.ATTEMPT_FILE_WRITTEN, 1, Side.DURING),
    KillAt(WritePoint.ATTEMPT_FILE_RENAMED, 1, Side.AFTER),
    KillAt(WritePoint.ATTEMPT_FILE_WRITTEN, 2, Side.DURING),
    KillAt(WritePoint.ATTEMPT_FILE_RENAMED, 2, Side.BEFORE),
    KillAt(WritePoint.ATTEMPT_FILE_RENAMED, 2, Side.AFTER),
    *(KillAt(WritePoint.EVENTS_APPENDED, nth, Side.AFTER) for nth in range(3, 8)),
    KillAt(WritePoint.EVENTS_APPENDED, 3, Side.BEFORE),
    KillAt(WritePoint.EVENTS_APPENDED, 3, Side.DURING),
    KillAt(WritePoint.EVENTS_APPENDED, 5, Side.DURING),
    KillAt(WritePoint.ATTEMPTS_APPENDED, 1, Side.AFTER),
    KillAt(WritePoint.ATTEMPTS_APPENDED, 2, Side.BEFORE),
    KillAt(WritePoint.ATTEMPTS_APPENDED, 2, Side.DURING),
    KillAt(WritePoint.ATTEMPTS_APPENDED, 2, Side.AFTER),
]


def child(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(CHILD), str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=120)


@pytest.mark.integration
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_kill_around_a_retry_loses_nothing_and_is_gone_on_from(
    plan: KillAt, tmp_path: Path
) -> None:
    killed = child(tmp_path, str(plan))
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    before = agent_ran(tmp_path)
    (root,) = (tmp_path / "results" / "r").iterdir()
    recorded = _assert_it_says_what_was_begun(root, before)

    again = child(tmp_path, "-", "reuse")
    assert again.returncode == 0, again.stderr.decode()
    newest = max((tmp_path / "results" / "r").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    ends = {record.task_id: record for record in RunReader(newest).records()}
    assert {record.outcome for record in ends.values()} == {Outcome.SCORED}
    ran_again = {line.split()[0] for line in agent_ran(tmp_path)[len(before) :]}
    assert ran_again == {"t0", "t1"} - recorded


def _assert_it_says_what_was_begun(root: Path, ran: list[str]) -> set[str]:
    reader = RunReader(root)
    assert reader.state is RunState.DEAD or reader.finished is not None
    records = {record.task_id: record for record in reader.records()}
    flying = {flight.task_id: flight for flight in reader.in_flight}
    assert {line.split()[0] for line in ran} <= set(records) | set(flying)
    assert sum(reader.ledger.outcomes.values()) == reader.ledger.planned
    for flight in flying.values():
        # What ended before is named with what it used, though no record holds it.
        is_known = flight.execution > 1 or flight.is_waiting
        assert (flight.earlier_usage is not None) is is_known
    for record in records.values():
        assert len(earlier_executions(root, record)) == record.retries
    rebuild(root)
    return set(records)


@pytest.mark.integration
def test_after_a_kill_a_waiting_attempt_is_named_with_what_it_spent(tmp_path: Path) -> None:
    """The third append to the journal is the first `retry`."""
    child(tmp_path, str(KillAt(WritePoint.EVENTS_APPENDED, 3, Side.AFTER)))
    (root,) = (tmp_path / "results" / "r").iterdir()
    (flight,) = RunReader(root).in_flight
    assert (flight.task_id, flight.execution, flight.is_waiting) == ("t0", 1, True)
    assert flight.earlier_usage is not None
    assert RunReader(root).ledger.outcomes[Outcome.CANCELLED] == 1
