"""What scanning a set came to: values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from steelyard.evalset.finding_values import KeptFinding
from steelyard.results.consumption import NO_SPENDING, Spending

SCAN_RESULT_SCHEMA: Final = "evalset-scan/1"
MOST_FAULTS: Final = 1_000
"""That are kept; more are counted."""
BUDGET_STATUS: Final = 4


@dataclass(frozen=True, slots=True)
class ScanFault:
    """A scanner that could not read a record."""

    scanner: str
    matrix_key: str
    case: str
    attempt: int
    message: str

    def __str__(self) -> str:
        return f"{self.scanner}: {self.matrix_key} {self.case} #{self.attempt}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """Give the form of documents."""
        return {
            "scanner": self.scanner,
            "matrix_key": self.matrix_key,
            "case": self.case,
            "attempt": self.attempt,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """How far a scan has come."""

    attempts: int
    """Looked at so far, those read before among them."""
    read: int
    findings: int
    """That are new."""
    faults: int


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan came to."""

    scanners: Mapping[str, str]
    """The version of each."""
    attempts: int
    """That there are to read."""
    read: int
    """Read by at least one scanner now; the others had been read before."""
    new: tuple[KeptFinding, ...]
    faults: tuple[ScanFault, ...]
    fault_count: int
    spent: Spending = NO_SPENDING
    """By judge models, now."""
    unreadable: tuple[str, ...] = ()
    """Cells whose run could not be read, and why."""
    silent: int = 0
    """Of the attempts, read now or before: without a call or text of the agent to be read."""
    stopped: str | None = None
    """Why not all was read; None where all was."""

    @property
    def exit_status(self) -> int:
        """0 where all was read; 4 where the budget stopped it; else 1."""
        if self.stopped is not None:
            return BUDGET_STATUS
        return 1 if self.fault_count or self.unreadable else 0

    def as_json(self) -> dict[str, Any]:
        """Give the document `evalset-scan/1`."""
        return {
            "schema": SCAN_RESULT_SCHEMA,
            "scanners": dict(self.scanners),
            "attempts": self.attempts,
            "read": self.read,
            "new": [finding.as_json() for finding in self.new],
            "faults": [fault.as_json() for fault in self.faults],
            "fault_count": self.fault_count,
            "spent": self.spent.as_json(),
            "unreadable": list(self.unreadable),
            "silent": self.silent,
            "stopped": self.stopped,
            "exit_status": self.exit_status,
        }
