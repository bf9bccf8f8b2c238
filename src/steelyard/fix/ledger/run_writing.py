"""One transaction on one run: the token is checked first, then budget, revision and events kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from steelyard.fix.ids import Kind
from steelyard.fix.ledger import documents
from steelyard.fix.ledger.database import Database, Reader, Writer
from steelyard.fix.ledger.errors import (
    BudgetExhausted,
    Fenced,
    NoSuchRow,
    NotNow,
    RevisionConflict,
)
from steelyard.fix.ledger.rows import run_from
from steelyard.fix.ledger.values import (
    MAX_ELAPSED,
    SPENT_LIMITS,
    BudgetLine,
    Lease,
    RunRow,
    RunStage,
)


class RunWriting:
    """What a transaction on a run may do besides its own rows."""

    def __init__(self, writer: Writer, run: RunRow, at: float) -> None:
        """Use `run_writing` or `control_writing`."""
        self.writer = writer
        self.run = run
        self.at = at

    def touch(self) -> None:
        """Count the run's revision up: what controls are judged against has changed."""
        self.writer.execute("UPDATE runs SET revision = revision + 1 WHERE run = ?", self.run.run)

    def event(self, kind: str, subject: str, detail: Mapping[str, Any] | None = None) -> None:
        """Say in a line what happened."""
        place = self.writer.number(
            "SELECT coalesce(max(place), 0) + 1 FROM events WHERE run = ?", self.run.run
        )
        self.writer.insert(
            "events",
            run=self.run.run,
            place=place,
            at=self.at,
            kind=kind,
            subject=subject,
            detail=documents.written(detail or {}, "the event"),
        )

    def require_revision(self, expected: int | None) -> None:
        """Refuse what was decided on an older state; None asks for nothing.

        Raises:
            RevisionConflict: the run changed.
        """
        if expected is not None and expected != self.run.revision:
            raise RevisionConflict(self.run.run, expected, self.run.revision)

    def require_open(self) -> None:
        """Refuse work on a run that is not going on.

        Raises:
            NotNow: it is not.
        """
        if self.run.stage is not RunStage.OPEN:
            raise NotNow(
                f"the run {self.run.short} is {self.run.stage.value}",
                remedy=_REMEDY[self.run.stage],
            )

    def count_elapsed(self) -> None:
        """Bring the spent time up to this moment; a clock that was set back takes nothing away."""
        since = self.run.clock_from
        if since is None:
            return
        self.writer.execute(
            "UPDATE budget SET spent = spent + ? WHERE run = ? AND name = ?",
            max(0.0, self.at - since),
            self.run.run,
            MAX_ELAPSED,
        )
        self.set_clock_from(self.at)

    def set_clock_from(self, moment: float | None) -> None:
        """Let elapsed time count from a moment on, or not at all."""
        self.writer.execute("UPDATE runs SET clock_from = ? WHERE run = ?", moment, self.run.run)

    def spend(self, name: str) -> None:
        """Take one of a limit, where there is one left and time is left, too.

        Raises:
            BudgetExhausted: there is not.
        """
        self.count_elapsed()
        lines = {line.name: line for line in budget_of(self.writer, self.run.run)}
        for limit in (name, MAX_ELAPSED):
            line = lines.get(limit, BudgetLine(limit, 0, 0))
            if line.is_exhausted:
                raise BudgetExhausted(limit, line.spent, line.ceiling)
        self.writer.execute(
            "UPDATE budget SET spent = spent + 1 WHERE run = ? AND name = ?", self.run.run, name
        )


_REMEDY: Mapping[RunStage, str] = {
    RunStage.STARTING: "run the same `fix start` again: it goes on where it was cut off",
    RunStage.OPEN: "nothing is to be done",
    RunStage.STOPPED: "`fix run RUN --continue` takes it up again",
    RunStage.OVER: "its baseline is invalid: start a new run",
}


@contextmanager
def run_writing(database: Database, lease: Lease, at: float) -> Iterator[RunWriting]:
    """Write to a run under a lease.

    Raises:
        Fenced: the lease is another's by now.
        NoSuchRow: there is no such run.
    """
    with database.writing() as writer:
        run = run_of(writer, lease.run)
        held = writer.row("SELECT token, is_released FROM leases WHERE run = ?", lease.run)
        if held is None or held["is_released"] or held["token"] != lease.token:
            taken = None if held is None or held["is_released"] else held["token"]
            raise Fenced(lease.run, lease.token, taken)
        yield RunWriting(writer, run, at)


@contextmanager
def control_writing(database: Database, run: str, at: float) -> Iterator[RunWriting]:
    """Write to a run without a lease: for controls, whose revision is compared instead.

    Raises:
        NoSuchRow: there is no such run.
    """
    with database.writing() as writer:
        yield RunWriting(writer, run_of(writer, run), at)


def run_of(reader: Reader, run: str) -> RunRow:
    """Read a run.

    Raises:
        NoSuchRow: there is none.
    """
    row = reader.row("SELECT * FROM runs WHERE run = ?", run)
    if row is None:
        raise NoSuchRow("run", run)
    return run_from(row)


def budget_of(reader: Reader, run: str) -> tuple[BudgetLine, ...]:
    """Read every limit of a run, the spent ones first."""
    rows = reader.rows("SELECT name, ceiling, spent FROM budget WHERE run = ?", run)
    lines = [BudgetLine(row["name"], row["ceiling"], row["spent"]) for row in rows]
    order = {name: place for place, name in enumerate(SPENT_LIMITS)}
    return tuple(sorted(lines, key=lambda line: order.get(line.name, len(order))))


def long_id(run: str, kind: Kind, count: int) -> str:
    """Make the long id of the n-th candidate or trial of a run: the same however often it is made.

    A digest, so that prefixes differ and a trial's id says nothing of its candidate.
    """
    named = f"{run}\x1f{kind.value}\x1f{count}"
    return hashlib.sha256(named.encode()).hexdigest()[:32]
