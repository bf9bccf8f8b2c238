"""What the ledger holds, as values of one moment; nothing is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from steelyard.fix.ledger import documents
from steelyard.fix.ledger.database import Database, Reader
from steelyard.fix.ledger.leases import lease_of
from steelyard.fix.ledger.rows import (
    candidate_from,
    checks_from,
    operation_from,
    review_from,
    run_from,
    trial_from,
)
from steelyard.fix.ledger.run_writing import budget_of, run_of
from steelyard.fix.ledger.values import (
    MAX_ELAPSED,
    BudgetLine,
    CandidateRow,
    DecisionRecord,
    Event,
    RunRow,
    Snapshot,
    TrialRow,
)

_DIGEST: Final = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def runs(database: Database) -> tuple[RunRow, ...]:
    """Give every run, in the order they were started."""
    with database.reading() as reader:
        return tuple(run_from(row) for row in reader.rows("SELECT * FROM runs ORDER BY number"))


def candidates(database: Database) -> tuple[CandidateRow, ...]:
    """Give every candidate of every run, in the order they were proposed; for names."""
    with database.reading() as reader:
        rows = reader.rows("SELECT * FROM candidates ORDER BY number")
        return tuple(candidate_from(row) for row in rows)


def snapshot(database: Database, run: str, at: float) -> Snapshot:
    """Give all of a run at one moment; spent time counts up to `at`.

    Raises:
        NoSuchRow: there is no such run.
    """
    with database.reading() as reader:
        row = run_of(reader, run)
        return Snapshot(
            run=row,
            budget=_budget(reader, row, at),
            candidates=tuple(
                candidate_from(one)
                for one in reader.rows(
                    "SELECT * FROM candidates WHERE run = ? ORDER BY number", run
                )
            ),
            trials=_trials(reader, run),
            operations=tuple(
                operation_from(one)
                for one in reader.rows("SELECT * FROM operations WHERE run = ? ORDER BY place", run)
            ),
            reviews=tuple(
                review_from(one, reader.evidence)
                for one in reader.rows("SELECT * FROM reviews WHERE run = ? ORDER BY number", run)
            ),
            lease=lease_of(reader, run),
        )


def decisions(database: Database, run: str) -> tuple[DecisionRecord, ...]:
    """Give every decision of a run, in order: enough to make them again."""
    with database.reading() as reader:
        rows = reader.rows("SELECT * FROM decisions WHERE run = ? ORDER BY number", run)
        return tuple(
            DecisionRecord(
                row["number"],
                row["parent"],
                documents.read_back(row["document"], row["document_at"], reader.evidence),
            )
            for row in rows
        )


def events(database: Database, run: str, *, after: int = 0, most: int = 1000) -> tuple[Event, ...]:
    """Give what happened after a place, in order.

    Args:
        database: the ledger.
        run: its long id.
        after: the place of the last event that is known.
        most: how many are given at once.
    """
    with database.reading() as reader:
        rows = reader.rows(
            "SELECT * FROM events WHERE run = ? AND place > ? ORDER BY place LIMIT ?",
            run,
            after,
            most,
        )
        return tuple(
            Event(
                row["place"],
                row["at"],
                row["kind"],
                row["subject"],
                documents.read(row["detail"]),
            )
            for row in rows
        )


def open_trials(database: Database, run: str) -> tuple[TrialRow, ...]:
    """Give the trials that have not ended, or nobody knows how: what recovery looks at."""
    with database.reading() as reader:
        return _trials(reader, run, "AND (outcome IS NULL OR outcome = 'inconclusive')")


def named_evidence(database: Database) -> frozenset[str]:
    """Give every digest that a row names, or a document of a row: what `gc` keeps.

    Too many rather than too few: whatever looks like a digest counts as one.
    """
    found: set[bytes] = set()
    documents_at: set[bytes] = set()
    with database.reading() as reader:
        for sql, is_document in _NAMING:
            for row in reader.rows(sql):
                text = "\n".join(str(value) for value in row if value is not None).encode()
                digests = _DIGEST.findall(text)
                found.update(digests)
                if is_document:
                    documents_at.update(digests)
    kept = set(database.evidence.digests())
    for digest in documents_at:
        if digest.decode() in kept:
            found.update(_DIGEST.findall(database.evidence.get(digest.decode())))
    return frozenset(digest.decode() for digest in found)


_NAMING: Final = (
    ("SELECT frozen FROM runs", True),
    ("SELECT detail FROM runs", False),
    ("SELECT manifest, detail FROM candidates", False),
    ("SELECT result FROM trials", False),
    ("SELECT result_at FROM trials", True),
    ("SELECT document FROM decisions", False),
    ("SELECT document_at FROM decisions", True),
    ("SELECT document, answer FROM operations", False),
    ("SELECT document FROM reviews", False),
    ("SELECT document_at FROM reviews", True),
    ("SELECT detail FROM events", False),
)
"""What is asked for digests, and whether what they name may name others."""


def _budget(reader: Reader, run: RunRow, at: float) -> tuple[BudgetLine, ...]:
    running = 0.0 if run.clock_from is None else max(0.0, at - run.clock_from)
    return tuple(
        replace(line, spent=line.spent + running) if line.name == MAX_ELAPSED else line
        for line in budget_of(reader, run.run)
    )


def _trials(reader: Reader, run: str, more: str = "") -> tuple[TrialRow, ...]:
    rows: Sequence[Any] = reader.rows(
        f"SELECT * FROM trials WHERE run = ? {more} ORDER BY number",  # noqa: S608 - our own words
        run,
    )
    checks = checks_from(
        reader.rows(
            "SELECT checks.* FROM checks JOIN trials USING (trial) WHERE run = ?"
            " ORDER BY checks.trial, place",
            run,
        )
    )
    return tuple(trial_from(row, checks.get(row["trial"], ()), reader.evidence) for row in rows)
