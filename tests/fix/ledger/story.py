"""A run from its start to its selection, step by step, for tests that interrupt it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard.fix.control_state import Status
from steelyard.fix.ids import Kind
from steelyard.fix.ledger import candidates, leases, operations, reviews, runs, trials
from steelyard.fix.ledger.database import Database
from steelyard.fix.ledger.run_writing import long_id
from steelyard.fix.ledger.values import (
    CandidateEnd,
    DecisionRecord,
    Lease,
    NewCandidate,
    NewReview,
    NewRun,
    RunStage,
    Sealed,
    Slot,
    TrialEnd,
)
from steelyard.fix.trial_plan import CheckResult, Outcome
from steelyard.results.lock import OwnerIdentity

RUN = "5" * 32
BASELINE = long_id(RUN, Kind.CANDIDATE, 0)
FIRST = long_id(RUN, Kind.CANDIDATE, 1)
SECOND = long_id(RUN, Kind.CANDIDATE, 2)
WORKER = OwnerIdentity("boot", 1, 4_000_001, 7, "here")
"""A process that is no more."""
LIMITS = {
    "max_candidates": 4.0,
    "max_trials": 20.0,
    "max_elapsed_seconds": 1000.0,
    "parallel_trials": 1.0,
    "max_scans": 1.0,
}


def new_run(**changes: Any) -> NewRun:
    values: dict[str, Any] = {
        "run": RUN,
        "goal": "faster",
        "digest": "d" * 64,
        "base_commit": "b" * 40,
        "frozen": "f" * 64,
        "tree_id": "tree-0",
        "manifest": "e" * 64,
        "limits": LIMITS,
        "policy": {"strategy": "pareto"},
    }
    return NewRun(**{**values, **changes})


def proposal(number: int, parent: str = BASELINE, **changes: Any) -> NewCandidate:
    values: dict[str, Any] = {
        "parent": parent,
        "hypothesis": f"idea {number}",
        "author": "ann",
        "decision": DecisionRecord(number, parent, {"number": number}),
    }
    return NewCandidate(**{**values, **changes})


def completed(value: float = 1.0, tasks: int = 0) -> TrialEnd:
    return TrialEnd(
        Outcome.COMPLETED,
        "contained",
        metrics={"latency_ms": value},
        tasks={f"task {number}": number / 7 for number in range(tasks)},
        checks=(CheckResult("regressions", True, True), CheckResult("after", False, True, "so")),
        detail={"whole_s": 0.25},
    )


def started(database: Database, **changes: Any) -> Lease:
    """An open run, held by this process."""
    runs.start(database, new_run(**changes), 1.0)
    lease = leases.acquire(database, RUN, OwnerIdentity.of_this_process(), 1.0)
    runs.open_run(database, lease, 2.0)
    return lease


def measured(database: Database, lease: Lease, slot: Slot, at: float, end: TrialEnd) -> str:
    trial = trials.reserve(database, lease, slot, at, owner=WORKER).trial.trial
    trials.end(database, lease, trial, end, at + 1)
    return trial


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder whose syncs cost nothing; a killed process loses nothing there either."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    try:
        yield place
    finally:
        shutil.rmtree(place)


def control(name: str, action: str, status: Status = Status.APPLIED) -> operations.NewOperation:
    return operations.NewOperation(name, name * 2, action, status, {"action": action})


def revision(database: Database) -> int:
    with database.reading() as reader:
        return reader.number("SELECT revision FROM runs WHERE run = ?", RUN)


def _controlled(
    name: str, action: str, *effects: operations.Effect, status: Status = Status.APPLIED
) -> Callable[[Database, Lease | None], object]:
    return lambda database, lease: operations.record(
        database,
        RUN,
        control(name, action, status),
        effects,
        60.0,
        expected_revision=revision(database),
    )


def _under(step: Callable[[Database, Lease], object]) -> Callable[[Database, Lease | None], object]:
    def under_lease(database: Database, lease: Lease | None) -> object:
        assert lease is not None
        return step(database, lease)

    return under_lease


def _trial(count: int, slot: Slot, end: TrialEnd) -> list[Callable[[Database, Lease | None], Any]]:
    trial = long_id(RUN, Kind.TRIAL, count)
    return [
        _under(lambda db, lease: trials.reserve(db, lease, slot, 20.0)),
        _under(lambda db, lease: trials.launch(db, lease, trial, WORKER, 21.0, never_started=True)),
        _under(lambda db, lease: trials.end(db, lease, trial, end, 22.0)),
    ]


STEPS: list[Callable[[Database, Lease | None], Any]] = [
    lambda db, lease: runs.start(db, new_run(), 1.0),
    _under(lambda db, lease: runs.open_run(db, lease, 2.0)),
    *_trial(0, Slot(BASELINE, 0, 11), completed()),
    *_trial(1, Slot(BASELINE, 1, 22), TrialEnd(Outcome.ERROR, "host", "the runner broke")),
    *_trial(2, Slot(BASELINE, 1, 22), completed(2.0, tasks=400)),
    _under(lambda db, lease: runs.set_clock(db, lease, 30.0, is_running=False)),
    _under(lambda db, lease: reviews.record(db, lease, NewReview(BASELINE, "bob", "pass", {}), 31)),
    _under(lambda db, lease: runs.set_clock(db, lease, 40.0, is_running=True)),
    _under(lambda db, lease: candidates.reserve(db, lease, proposal(0), 41.0)),
    _under(lambda db, lease: candidates.begin_editing(db, lease, FIRST, 42.0)),
    _under(lambda db, lease: candidates.seal(db, lease, FIRST, Sealed("tree-1", "1" * 64), 43.0)),
    *_trial(3, Slot(FIRST, 0, 11, block=2), completed(0.5)),
    lambda db, lease: db.evidence.put(b"output " * 4000),
    _controlled("p", "policy", operations.SetPolicy({"strategy": "argmax"})),
    _controlled("e", "expand", status=Status.QUEUED),
    _controlled(
        "a",
        "ack",
        operations.Expand(proposal(1, FIRST, origin="e")),
        operations.Settle("e", Status.APPLIED, host_id="host"),
        operations.SetHost("host"),
    ),
    _under(lambda db, lease: candidates.begin_editing(db, lease, SECOND, 61.0)),
    _under(lambda db, lease: candidates.seal(db, lease, SECOND, Sealed("tree-1", "1" * 64), 62.0)),
    _under(lambda db, lease: candidates.release(db, lease, SECOND, 63.0)),
    _under(lambda db, lease: candidates.end(db, lease, FIRST, CandidateEnd.ABANDONED, "so", 64.0)),
    _controlled("x", "exhaust", operations.Exhaust(FIRST, "dull")),
    _controlled("i", "invalidate", operations.Invalidate(SECOND, "wrong")),
    _controlled("s", "stop", operations.SetStage(RunStage.STOPPED, "asked")),
    _controlled(
        "c",
        "continue",
        operations.SetLimits({"max_trials": 30}),
        operations.SetStage(RunStage.OPEN, "asked"),
    ),
    _controlled("n", "scan", operations.SpendOne("max_scans")),
    _controlled("l", "select", status=Status.QUEUED),
    lambda db, lease: operations.settle(
        db, RUN, operations.Settle("l", Status.APPLIED), [operations.Select(FIRST)], 65.0
    ),
    _under(lambda db, lease: leases.renew(db, lease, 66.0)),
    _under(lambda db, lease: leases.release(db, lease, 67.0)),
    _under(lambda db, lease: runs.set_stage(db, lease, RunStage.STOPPED, "limits", 70.0)),
]
"""Each is one call, the same however often it is made; a lease comes in once there is a run."""


def play_step(database: Database, number: int, who: str) -> None:
    """Make one call, under a lease of its own where there is a run: whoever had it is gone."""
    lease = None
    if number > 0:
        holder = OwnerIdentity(f"{who} {number}", 1, 1, 1, "here")
        lease = leases.acquire(database, RUN, holder, 10.0)
    STEPS[number](database, lease)


def contents(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """All that is recorded but who did it: tokens, and a launch that is told twice."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with database.reading() as reader:
        names = reader.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        for (table,) in names:
            if table in ("leases", "sqlite_sequence"):
                continue
            columns = [row["name"] for row in reader.rows(f"PRAGMA table_info({table})")]
            unlike = ("token", "place", "at") if table == "events" else ("token",)
            shown = ", ".join(column for column in columns if column not in unlike)
            rows = {tuple(row) for row in reader.rows(f"SELECT {shown} FROM {table}")}
            found[table] = sorted(rows, key=repr)
    found["evidence"] = [(digest,) for digest in sorted(database.evidence.digests())]
    return found
