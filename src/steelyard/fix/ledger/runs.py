"""Runs: recorded with their baseline and their limits, opened, stopped, deleted."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.fix.ids import Kind
from steelyard.fix.ledger import documents
from steelyard.fix.ledger.database import Database, Writer
from steelyard.fix.ledger.errors import NotNow, OtherContent, Unresolved
from steelyard.fix.ledger.rows import run_from
from steelyard.fix.ledger.run_writing import (
    RunWriting,
    control_writing,
    long_id,
    run_of,
    run_writing,
)
from steelyard.fix.ledger.values import (
    MAX_SCANS,
    CandidateStage,
    Lease,
    NewRun,
    RunRow,
    RunStage,
)

BASELINE_HYPOTHESIS = "what there is"


def start(database: Database, new: NewRun, at: float) -> RunRow:
    """Record a run with its baseline, in stage `starting`.

    Where a run of the same spec and source is still starting (its process died) that one is given:
    look at its long id.

    Raises:
        OtherContent: the long id is another run's.
    """
    with database.writing() as writer:
        same = writer.row("SELECT * FROM runs WHERE run = ?", new.run)
        if same is not None:
            if (same["digest"], same["base_commit"]) != (new.digest, new.base_commit):
                raise OtherContent(f"the run {new.run}")
            return run_from(same)
        cut_off = writer.row(
            "SELECT * FROM runs WHERE stage = ? AND digest = ? AND base_commit = ? AND frozen = ?",
            RunStage.STARTING,
            new.digest,
            new.base_commit,
            new.frozen,
        )
        if cut_off is not None:
            return run_from(cut_off)
        _insert(writer, new, at)
        run = run_of(writer, new.run)
        RunWriting(writer, run, at).event("started", new.run)
        return run


def open_run(database: Database, lease: Lease, at: float) -> RunRow:
    """Say that all a run needs is on the disk; elapsed time counts from here on."""
    with run_writing(database, lease, at) as writing:
        if writing.run.stage is RunStage.STARTING:
            _set_stage(writing, RunStage.OPEN, "ready")
        return run_of(writing.writer, lease.run)


def set_stage(database: Database, lease: Lease, stage: RunStage, why: str, at: float) -> RunRow:
    """Stop a run, or end it, by a rule of ours; people do it by an operation.

    Raises:
        NotNow: it is over, or is to go back to its start.
    """
    with run_writing(database, lease, at) as writing:
        change_stage(writing, stage, why)
        return run_of(writing.writer, lease.run)


def change_stage(writing: RunWriting, stage: RunStage, why: str) -> None:
    """Change a run's stage within a transaction; the same stage again changes nothing."""
    was = writing.run.stage
    if was is stage:
        return
    if was is RunStage.OVER or stage is RunStage.STARTING:
        raise NotNow(f"a run that is {was.value} does not become {stage.value}", remedy="start one")
    _set_stage(writing, stage, why)


def set_clock(database: Database, lease: Lease, at: float, *, is_running: bool) -> RunRow:
    """Let elapsed time count, or pause it: the run waits for a review."""
    with run_writing(database, lease, at) as writing:
        if writing.run.stage is RunStage.OPEN:
            writing.count_elapsed()
            if is_running != (writing.run.clock_from is not None):
                writing.set_clock_from(at if is_running else None)
                writing.event("clock", lease.run, {"is_running": is_running})
        return run_of(writing.writer, lease.run)


def extend(writing: RunWriting, limits: Mapping[str, float]) -> None:
    """Set limits anew; what is spent stays."""
    writing.count_elapsed()
    for name, ceiling in limits.items():
        writing.writer.execute(
            "UPDATE budget SET ceiling = ? WHERE run = ? AND name = ?",
            float(ceiling),
            writing.run.run,
            name,
        )
    writing.event("limits", writing.run.run, dict(limits))


def delete(database: Database, lease: Lease, at: float) -> None:
    """Remove a run and all that is recorded of it; its evidence goes with the next `gc`.

    Raises:
        Unresolved: a trial of it may still run.
    """
    with run_writing(database, lease, at) as writing:
        row = writing.writer.row(
            "SELECT number FROM trials WHERE run = ? AND launched_at IS NOT NULL"
            " AND (outcome IS NULL OR outcome = 'inconclusive')",
            lease.run,
        )
        if row is not None:
            raise Unresolved(f"t{row['number']}")
        writing.writer.execute("DELETE FROM runs WHERE run = ?", lease.run)


def set_host(database: Database, run: str, host: str | None, at: float) -> None:
    """Say which host drives the run."""
    with control_writing(database, run, at) as writing:
        if writing.run.active_host != host:
            writing.writer.execute("UPDATE runs SET active_host = ? WHERE run = ?", host, run)
            writing.touch()
            writing.event("host", run, {"host": host})


def _set_stage(writing: RunWriting, stage: RunStage, why: str) -> None:
    writing.count_elapsed()
    writing.writer.execute("UPDATE runs SET stage = ? WHERE run = ?", stage, writing.run.run)
    writing.set_clock_from(writing.at if stage is RunStage.OPEN else None)
    writing.touch()
    writing.event("stage", writing.run.run, {"stage": stage.value, "why": why[:500]})


def _insert(writer: Writer, new: NewRun, at: float) -> None:
    writer.insert(
        "runs",
        run=new.run,
        stage=RunStage.STARTING,
        goal=documents.text(new.goal, "the goal"),
        digest=new.digest,
        base_commit=new.base_commit,
        frozen=new.frozen,
        policy=documents.written(new.policy, "the policy"),
        created_at=at,
        detail=documents.written(new.detail, "the run's detail", documents.MAX_DOCUMENT_BYTES),
    )
    for name, ceiling in {MAX_SCANS: 0.0, **new.limits}.items():
        writer.insert("budget", run=new.run, name=name, ceiling=float(ceiling))
    writer.insert(
        "candidates",
        candidate=long_id(new.run, Kind.CANDIDATE, 0),
        run=new.run,
        round=0,
        stage=CandidateStage.SEALED,
        hypothesis=BASELINE_HYPOTHESIS,
        request="",
        tree_id=new.tree_id,
        manifest=new.manifest,
        is_released=1,
        created_at=at,
        detail="{}",
    )
