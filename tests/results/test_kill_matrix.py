"""SIGKILL of a real process at every named write; nothing that was acknowledged may be lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.results.documents import RunUnreadable
from steelyard.results.files import OF_SETS, WritePoint
from steelyard.results.lock import is_alive
from steelyard.results.reader import RunReader, RunState
from steelyard.results.reuse import DecisionKind, PlanShape, ReuseSource, choose_source
from steelyard.results.step_log import usage_so_far
from steelyard.results.summary import rebuild
from steelyard.testing.faults import KillAt, kill_plans
from tests.results.workload import EVALUATION, STEPS, TASKS, K, a_run, generation, token_of

CHILD = Path(__file__).with_name("kill_child.py")
SHAPE = PlanShape("toy", K, "avg", False)

# In the middle of the run where a point is passed more than once, else at its only time.
NTH = {
    WritePoint.JOURNAL_CREATED: 2,
    WritePoint.ATTEMPTS_APPENDED: 4,
    WritePoint.ATTEMPTS_SYNCED: 4,
    WritePoint.EVENTS_APPENDED: 4,
    WritePoint.EVENTS_SYNCED: 4,
    WritePoint.PROGRESS_WRITTEN: 2,
    WritePoint.PROGRESS_RENAMED: 2,
    WritePoint.ATTEMPT_FOLDER_MADE: 2,
    WritePoint.ATTEMPT_FILE_WRITTEN: 2,
    WritePoint.ATTEMPT_FILE_RENAMED: 2,
    WritePoint.STEP_LOG_CREATED: 2,
    WritePoint.STEPS_APPENDED: 2 + STEPS,
    WritePoint.STEP_LOG_REMOVED: 2,
    WritePoint.INPUTS_COLLECTED: 2,
    WritePoint.ARTIFACTS_COLLECTED: 2,
    WritePoint.CHECKPOINT_WRITTEN: 2,
    WritePoint.CHECKPOINT_SYNCED: 2,
    WritePoint.CHECKPOINT_RENAMED: 2,
}
LAST_EVENT = KillAt(WritePoint.EVENTS_APPENDED, 2 * len(TASKS) + 1)
POINTS = [point for point in WritePoint if point not in OF_SETS]  # tests/evalset has those
PLANS = [plan for point in POINTS for plan in kill_plans(point, NTH.get(point, 1))]
PLANS += list(kill_plans(LAST_EVENT.point, LAST_EVENT.nth))


@pytest.mark.integration
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_kill_loses_nothing_that_was_acknowledged(plan: KillAt, tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, str(CHILD), str(tmp_path), str(plan)], capture_output=True, check=False
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    told = [line.split("\t") for line in child.stdout.decode().split("\n") if line]
    intents = {(task, int(attempt)) for kind, attempt, task in told if kind == "intent"}
    synced = {(task, int(attempt)) for kind, attempt, task in told if kind == "synced"}
    namespace = tmp_path / "toy"
    roots = list(namespace.iterdir()) if namespace.is_dir() else []
    for root in roots:
        assert not is_alive(root / "lock")
        if (root / "run.json").exists():
            _assert_nothing_is_lost(root, intents, synced)
            _assert_steps_are_named(root, [task for kind, _, task in told if kind == "step"])
        else:
            assert not synced
            with pytest.raises(RunUnreadable):
                RunReader(root)
    assert roots or plan.point is WritePoint.RUN_FOLDER_MADE
    _assert_a_new_run_goes_on(tmp_path, synced)


def _assert_nothing_is_lost(
    root: Path, intents: set[tuple[str, int]], synced: set[tuple[str, int]]
) -> None:
    reader = RunReader(root)
    recorded = {(record.task_id, record.attempt) for record in reader.records()}
    assert synced <= recorded
    flying = {(flight.task_id, flight.attempt): flight for flight in reader.in_flight}
    assert intents - recorded <= set(flying)
    assert all(flight.token == token_of(*key) for key, flight in flying.items())
    ledger = reader.ledger
    assert ledger.in_flight == 0
    assert sum(ledger.outcomes.values()) == ledger.planned
    assert ledger.planned in (0, len(TASKS) * K)
    assert ledger.outcomes.get(Outcome.CANCELLED, 0) == len(flying)
    assert reader.state in (RunState.DEAD, RunState.FINISHED)
    rebuild(root)
    first = (root / "metrics.json").read_bytes(), (root / "summary.md").read_bytes()
    rebuild(root)
    assert first == ((root / "metrics.json").read_bytes(), (root / "summary.md").read_bytes())


def _assert_steps_are_named(root: Path, steps: list[str]) -> None:
    """What an attempt in flight had cost when the process died is known, up to its last step."""
    for flight in RunReader(root).in_flight:
        usage = usage_so_far(root, flight.task_id, flight.attempt)
        told = steps.count(flight.task_id) if flight.attempt == 1 else 0
        if told:
            assert usage is not None
            # The step that was being written may be there, or be torn and left out.
            assert usage.requests in (told, told + 1)
            assert usage.cost_usd == usage.requests * 0.5
        else:
            assert usage is None or usage.requests <= 1


def _assert_a_new_run_goes_on(results_dir: Path, synced: set[tuple[str, int]]) -> None:
    new = a_run(results_dir)
    choice = choose_source(results_dir / "toy", SHAPE, exclude=new.run_id)
    assert choice.taken is not None or not synced
    if choice.taken is not None:
        source = ReuseSource(results_dir / "toy" / choice.taken)
        for task_id, attempt in synced:
            decision = source.decide(task_id, attempt, generation(task_id), EVALUATION)
            assert decision.kind is DecisionKind.REUSE, decision.reason
    new.lock.release()


def test_the_matrix_has_a_row_for_every_write() -> None:
    assert {plan.point for plan in PLANS} == set(POINTS)
