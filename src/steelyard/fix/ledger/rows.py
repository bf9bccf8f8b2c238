"""Rows as SQLite gives them -> values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.fix.control_state import Status
from steelyard.fix.evidence import Evidence
from steelyard.fix.ledger.database import Row
from steelyard.fix.ledger.documents import owner_from, read, read_back
from steelyard.fix.ledger.values import (
    CandidateEnd,
    CandidateRow,
    CandidateStage,
    OperationRow,
    Purpose,
    ReviewRow,
    RunRow,
    RunStage,
    Slot,
    TrialEnd,
    TrialRow,
)
from steelyard.fix.trial_plan import CheckResult, Outcome

NO_BLOCK = -1
"""In a unique index NULL differs from NULL."""


def run_from(row: Row) -> RunRow:
    """Read a row of `runs`."""
    found = dict(row)
    return RunRow(
        **{
            **found,
            "stage": RunStage(row["stage"]),
            "policy": read(row["policy"]),
            "detail": read(row["detail"]),
        }
    )


def candidate_from(row: Row) -> CandidateRow:
    """Read a row of `candidates`."""
    found: dict[str, Any] = dict(row)
    del found["request"]
    ended_as = row["ended_as"]
    return CandidateRow(
        **{
            **found,
            "stage": CandidateStage(row["stage"]),
            "ended_as": None if ended_as is None else CandidateEnd(ended_as),
            "is_released": bool(row["is_released"]),
            "detail": read(row["detail"]),
        }
    )


def trial_from(row: Row, checks: Sequence[CheckResult], evidence: Evidence) -> TrialRow:
    """Read a row of `trials`, with those of `checks`."""
    block = row["block"]
    end = None
    if row["outcome"] is not None:
        result = read_back(row["result"], row["result_at"], evidence)
        end = TrialEnd(
            outcome=Outcome(row["outcome"]),
            trust=row["trust"],
            reason=row["reason"],
            metrics=result["metrics"],
            tasks=result["tasks"],
            checks=tuple(checks),
            detail=result["detail"],
        )
    return TrialRow(
        trial=row["trial"],
        number=row["number"],
        run=row["run"],
        slot=Slot(
            row["candidate"],
            row["repetition"],
            int(row["seed"]),
            None if block == NO_BLOCK else block,
            Purpose(row["purpose"]),
        ),
        tried=row["try"],
        token=row["token"],
        owner=owner_from(row["owner"]),
        reserved_at=row["reserved_at"],
        launched_at=row["launched_at"],
        ended_at=row["ended_at"],
        end=end,
    )


def checks_from(rows: Sequence[Row]) -> Mapping[str, list[CheckResult]]:
    """Read rows of `checks`, in the order they ran, by trial."""
    found: dict[str, list[CheckResult]] = {}
    for row in rows:
        found.setdefault(row["trial"], []).append(
            CheckResult(row["name"], bool(row["passed"]), bool(row["as_expected"]), row["reason"])
        )
    return found


def operation_from(row: Row) -> OperationRow:
    """Read a row of `operations`."""
    found: dict[str, Any] = dict(row)
    del found["run"]
    return OperationRow(
        **{
            **found,
            "status": Status(row["status"]),
            "document": read(row["document"]),
            "answer": read(row["answer"]),
            "is_retryable": bool(row["is_retryable"]),
        }
    )


def review_from(row: Row, evidence: Evidence) -> ReviewRow:
    """Read a row of `reviews`."""
    return ReviewRow(
        row["number"],
        row["candidate"],
        row["reviewer"],
        row["verdict"],
        row["at"],
        read_back(row["document"], row["document_at"], evidence),
    )
