"""What controls of a run are judged against, and what comes of them: values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from steelyard.fix.schema.profile import Limits, Profile


class Status(StrEnum):
    """How far a control has come. `applied` says nothing of a candidate's worth."""

    QUEUED = "queued"
    ACKNOWLEDGED = "acknowledged"
    APPLIED = "applied"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Reason(StrEnum):
    """Why a control is refused or waits."""

    ID_REUSED = "id_reused"
    REVISION_CONFLICT = "revision_conflict"
    RUN_OVER = "run_over"
    UNDECLARED = "undeclared"
    UNKNOWN_CANDIDATE = "unknown_candidate"
    CANDIDATE_OUT = "candidate_out"
    NOT_ON_FRONTIER = "not_on_frontier"
    NOT_VERIFIED_YET = "not_verified_yet"
    NOT_STOPPED = "not_stopped"
    LIMITS_EXHAUSTED = "limits_exhausted"
    LIMITS_REFUSED = "limits_refused"
    UNKNOWN_OPERATION = "unknown_operation"
    NOT_QUEUED = "not_queued"
    NOT_HOST_WORK = "not_host_work"
    OTHER_HOST = "other_host"
    WAITS_FOR_HOST = "waits_for_host"
    STOPPED = "stopped"
    NO_SCANS = "no_scans"
    SCAN_PENDING = "scan_pending"
    UNKNOWN_SCAN = "unknown_scan"
    SCAN_EXPIRED = "scan_expired"
    OTHER_PACKET = "other_packet"
    NOT_IN_PACKET = "not_in_packet"
    NOTHING_TO_SCAN = "nothing_to_scan"


@dataclass(frozen=True, slots=True)
class CandidateState:
    """What a control may ask of a candidate."""

    candidate: str
    is_baseline: bool = False
    is_eligible: bool = False
    """May be expanded now."""
    is_on_frontier: bool = False
    """Verified, feasible, and dominated by none."""
    is_settled: bool = False
    """Measured and reviewed, or at an end without: nothing about it is still to come."""
    is_verified: bool = False
    is_exhausted: bool = False
    is_invalidated: bool = False


@dataclass(frozen=True, slots=True)
class StoredOperation:
    """A control that was taken before."""

    operation_id: str
    digest: str
    action: str
    status: Status
    answer: Mapping[str, Any]
    """What was answered; given again to the same request."""
    host_id: str | None = None
    """Who acknowledged it."""
    is_retryable: bool = False
    """It failed for a passing reason: the same request may be sent again."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A scan that is prepared and not answered."""

    scan_id: str
    digest: str
    is_expired: bool
    candidate_ids: frozenset[str]
    evidence: frozenset[str]
    code_paths: frozenset[str]


@dataclass(frozen=True, slots=True)
class ScanState:
    """What is left of the run's scans."""

    left: int = 0
    """0 where the profile allows none."""
    pending: Packet | None = None
    has_new_rounds: bool = False
    """Whether a completed round has not been scanned."""
    ended: frozenset[str] = frozenset()
    """Ids of scans that were answered or failed."""


@dataclass(frozen=True, slots=True)
class RunState:
    """What controls are judged against."""

    revision: int
    is_stopped: bool
    is_over: bool
    """The baseline is invalidated: nothing more can come of the run."""
    exhausted: tuple[str, ...]
    """Names of limits that are used up."""
    limits: Limits
    profile: Profile
    metrics: tuple[str, ...]
    task_metrics: tuple[str, ...]
    candidates: Mapping[str, CandidateState]
    """By long id."""
    operations: Mapping[str, StoredOperation]
    """By operation id."""
    active_host: str | None = None
    scans: ScanState = field(default_factory=ScanState)
    spent: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """What is used up of a limit, by its name; it may be a little more than the limit."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The same request was answered before: the same answer."""

    stored: StoredOperation


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing is changed or kept."""

    reason: Reason
    message: str
    remedy: str
    is_passing: bool = False
    """True where the same request may succeed later."""


@dataclass(frozen=True, slots=True)
class Queued:
    """It is kept until somebody can do it."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Applied:
    """It takes effect at once."""


Judgement = Answered | Refused | Queued | Applied
