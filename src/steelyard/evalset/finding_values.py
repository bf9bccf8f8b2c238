"""The lines of `findings.jsonl` and `scans.jsonl`: findings, what people say of them, scans."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import orjson

from steelyard.components.scanner import FindingSeverity
from steelyard.results.consumption import NO_SPENDING, Spending
from steelyard.results.json_values import count, items, mapping, optional_text, seconds, text
from steelyard.results.records import AttemptRecord

FINDING_SCHEMA: Final = "finding/1"
TRIAGE_SCHEMA: Final = "triage/1"
SCAN_SCHEMA: Final = "scan/1"
ID_DIGITS: Final = 16


class TriageState(StrEnum):
    """What people make of a finding."""

    OPEN = "open"
    TRIAGED = "triaged"
    """It is right, and somebody looks after it."""
    DISMISSED = "dismissed"
    """It is not right, or does not matter."""


@dataclass(frozen=True, slots=True)
class KeptFinding:
    """One finding, as it is kept."""

    id: str
    """Of its content, so that what is found again is the same finding."""
    scanner: str
    version: str
    severity: FindingSeverity
    category: str
    message: str
    evidence: str
    """The exact span, secrets redacted; cut where it was very long."""
    step: int | None
    """Its place in the trajectory, from 0."""
    confidence: float
    cell: int
    matrix_key: str
    case: str
    attempt: int
    run: str
    """The id of the run whose record was read."""
    digest: str
    """Of the work that was read: see `work_digest`."""
    at: str
    """When it was found, UTC."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of `findings.jsonl`."""
        return {
            "schema": FINDING_SCHEMA,
            "id": self.id,
            "scanner": self.scanner,
            "version": self.version,
            "severity": self.severity.value,
            "category": self.category,
            "message": self.message,
            "evidence": self.evidence,
            "step": self.step,
            "confidence": self.confidence,
            "cell": self.cell,
            "matrix_key": self.matrix_key,
            "case": self.case,
            "attempt": self.attempt,
            "run": self.run,
            "digest": self.digest,
            "at": self.at,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KeptFinding:
        """Read what `as_json` gave.

        Raises:
            KeyError, TypeError, ValueError: it is not that.
        """
        return cls(
            text(data["id"]),
            text(data["scanner"]),
            text(data["version"]),
            FindingSeverity(data["severity"]),
            text(data["category"]),
            text(data["message"]),
            text(data["evidence"]),
            None if data["step"] is None else count(data["step"]),
            seconds(data["confidence"]),
            count(data["cell"]),
            text(data["matrix_key"]),
            text(data["case"]),
            count(data["attempt"], 1),
            text(data["run"]),
            text(data["digest"]),
            text(data["at"]),
        )


@dataclass(frozen=True, slots=True)
class TriageEvent:
    """What somebody said of a finding."""

    finding: str
    state: TriageState
    by: str
    why: str
    at: str

    def as_json(self) -> dict[str, Any]:
        """Give the form of `findings.jsonl`."""
        return {
            "schema": TRIAGE_SCHEMA,
            "finding": self.finding,
            "state": self.state.value,
            "by": self.by,
            "why": self.why,
            "at": self.at,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TriageEvent:
        """Read what `as_json` gave; raises as `KeptFinding.from_json`."""
        return cls(
            text(data["finding"]),
            TriageState(data["state"]),
            text(data["by"]),
            text(data["why"]),
            text(data["at"]),
        )


@dataclass(frozen=True, slots=True)
class Scan:
    """That scanners have read an attempt, and what that cost."""

    cell: int
    case: str
    attempt: int
    digest: str
    """Of the work that was read."""
    read: Mapping[str, str]
    """The version of each scanner that has read it to the end."""
    found: tuple[str, ...] = ()
    """The ids of all that they found."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Scanners that could not read it, and why: they will try again."""
    spent: Spending = NO_SPENDING
    """By their judge models."""
    at: str = ""
    is_silent: bool = False
    """True where its whole trajectory was read, and no step has a call or text of the agent."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of `scans.jsonl`; `is_silent` only where it is true."""
        return {
            "schema": SCAN_SCHEMA,
            "cell": self.cell,
            "case": self.case,
            "attempt": self.attempt,
            "digest": self.digest,
            "read": dict(self.read),
            "found": list(self.found),
            "faults": dict(self.faults),
            "spent": None if self.spent == NO_SPENDING else self.spent.as_json(),
            "at": self.at,
            **({"is_silent": True} if self.is_silent else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scan:
        """Read what `as_json` gave; raises as `KeptFinding.from_json`."""
        spent = data["spent"]
        return cls(
            count(data["cell"]),
            text(data["case"]),
            count(data["attempt"], 1),
            text(data["digest"]),
            {str(name): text(version) for name, version in mapping(data["read"]).items()},
            tuple(text(one) for one in items(data["found"])),
            {str(name): text(why) for name, why in mapping(data["faults"]).items()},
            NO_SPENDING if spent is None else Spending.from_json(mapping(spent)),
            optional_text(data["at"]) or "",
            data.get("is_silent") is True,
        )


def work_digest(record: AttemptRecord) -> str:
    """Digest what an agent did in an attempt, as its record names it; 32 hex digits.

    The same where the record was taken over by another run, or only its score was made anew;
    another where the attempt was executed again.
    """
    trajectory = record.trajectory or {}
    parts = [
        record.task_id,
        record.attempt,
        record.generation,
        trajectory.get("sha256"),
        [[one.get("path"), one.get("sha256")] for one in record.artifacts],
        record.answer,
        record.answer_sha256,
        # To the microsecond: two executions that did nothing differ in it.
        record.timing.agent_s,
    ]
    data = orjson.dumps(parts, default=str)
    return hashlib.sha256(data).hexdigest()[:32]
