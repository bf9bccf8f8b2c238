"""Where a test may kill the process or fail the disk while the ledger is written."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol


class LedgerPoint(StrEnum):
    """Every kind of step on the way of something into the ledger."""

    DATABASE_CREATED = "database_created"
    BEGUN = "begun"
    STATEMENT_DONE = "statement_done"
    """One statement of a transaction that is not committed."""
    BEFORE_COMMIT = "before_commit"
    COMMITTED = "committed"
    """On the disk, and nobody has been told."""
    BACKUP_WRITTEN = "backup_written"
    BACKUP_RENAMED = "backup_renamed"
    EVIDENCE_WRITTEN = "evidence_written"
    EVIDENCE_SYNCED = "evidence_synced"
    EVIDENCE_RENAMED = "evidence_renamed"


class LedgerFaults(Protocol):
    """What a test may do at a point; the product uses `NO_FAULTS`."""

    def reached(self, point: LedgerPoint) -> None:
        """Told once the point is reached; may end the process, or raise `OSError`."""
        ...


class NoFaults:
    """Lets every step be."""

    def reached(self, point: LedgerPoint) -> None:
        """Do nothing."""


NO_FAULTS: Final[LedgerFaults] = NoFaults()
