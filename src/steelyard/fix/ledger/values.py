"""What goes into the ledger and what comes out: plain values. Moments are seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from steelyard.fix.control_state import Status
from steelyard.fix.ids import Kind, short_id
from steelyard.fix.trial_plan import CheckResult, Outcome
from steelyard.results.lock import OwnerIdentity

MAX_CANDIDATES: Final = "max_candidates"
MAX_TRIALS: Final = "max_trials"
MAX_ELAPSED: Final = "max_elapsed_seconds"
MAX_SCANS: Final = "max_scans"
SPENT_LIMITS: Final = (MAX_CANDIDATES, MAX_TRIALS, MAX_ELAPSED, MAX_SCANS)
"""Limits that are used up; the others only bound what happens at once."""


class RunStage(StrEnum):
    """Where a run is."""

    STARTING = "starting"
    """Recorded; what it needs on the disk is not made yet. `fix start` goes on with it."""
    OPEN = "open"
    STOPPED = "stopped"
    OVER = "over"
    """Its baseline is invalid: nothing more can come of it."""


class CandidateStage(StrEnum):
    """Where a candidate is."""

    RESERVED = "reserved"
    """Its slot is spent; its worktree is not made yet. `fix new` goes on with it."""
    EDITING = "editing"
    SEALED = "sealed"
    ENDED = "ended"
    """Nothing about it is still to come."""


class CandidateEnd(StrEnum):
    """How a candidate ended; whether it is verified is worked out, not recorded."""

    REVIEWED = "reviewed"
    FAILED = "failed"
    DUPLICATE = "duplicate"
    """Its tree is another candidate's: a slot is spent and no trial."""
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


class Purpose(StrEnum):
    """What a trial is measured for; each has repetitions of its own."""

    SEARCH = "search"
    CALIBRATION = "calibration"
    CONFIRMATION = "confirmation"
    """On held-out seeds, which no search decision sees."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a run; every write shows its token."""

    run: str
    token: int
    expires_at: float


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """Who holds a run."""

    token: int
    holder: OwnerIdentity
    expires_at: float
    is_released: bool


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run that is to be recorded, with its baseline."""

    run: str
    """A long id nobody has."""
    goal: str
    digest: str
    """Of the frozen spec."""
    base_commit: str
    frozen: str
    """The frozen spec's document, as evidence."""
    tree_id: str
    """Of the baseline."""
    manifest: str
    """Its manifest, as evidence."""
    limits: Mapping[str, float]
    """Every limit of the profile, and `max_scans`, by name."""
    policy: Mapping[str, Any]
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Small facts for people: profile name, warnings."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run, as it is recorded."""

    run: str
    number: int
    stage: RunStage
    goal: str
    digest: str
    base_commit: str
    frozen: str
    policy: Mapping[str, Any]
    policy_revision: int
    epoch_start: int
    """The first decision under the policy in force."""
    decisions: int
    """How many were made: the next one's number."""
    selected: str | None
    active_host: str | None
    revision: int
    created_at: float
    clock_from: float | None
    """Since when elapsed time counts; None while it is paused."""
    detail: Mapping[str, Any]

    @property
    def short(self) -> str:
        """What people call it."""
        return short_id(Kind.RUN, self.number)


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """Why a parent was chosen; the document is enough to make the decision again."""

    number: int
    parent: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewCandidate:
    """A proposal: it takes a slot."""

    parent: str
    hypothesis: str
    author: str
    decision: DecisionRecord
    is_explicit: bool = False
    """True where the parent was named, not chosen."""
    round: int | None = None
    """None begins the next one."""
    origin: str | None = None
    """An operation: however often it is repeated it has one candidate."""


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A candidate, as it is recorded."""

    candidate: str
    number: int
    run: str
    parent: str | None
    round: int
    stage: CandidateStage
    ended_as: CandidateEnd | None
    reason: str | None
    hypothesis: str
    author: str | None
    origin: str | None
    tree_id: str | None
    manifest: str | None
    duplicate_of: str | None
    is_released: bool
    """Its worktree is gone."""
    invalidated: str | None
    """Why, where a control of its own did it; descendants follow by themselves."""
    exhausted: str | None
    last_decision: int | None
    """The decision that last expanded it."""
    created_at: float
    detail: Mapping[str, Any]

    @property
    def short(self) -> str:
        """What people call it."""
        return short_id(Kind.CANDIDATE, self.number)

    @property
    def is_baseline(self) -> bool:
        """True for the original baseline."""
        return self.parent is None


@dataclass(frozen=True, slots=True)
class Sealed:
    """A candidate's tree, sealed."""

    tree_id: str
    manifest: str
    """As evidence."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Small facts: how many files were ignored."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What a trial measures."""

    candidate: str
    repetition: int
    seed: int
    block: int | None = None
    purpose: Purpose = Purpose.SEARCH


@dataclass(frozen=True, slots=True)
class RepeatRules:
    """When a repetition is tried again."""

    retries: int = 1
    """After an `error` or a loss."""
    may_repeat_cancelled: bool = False
    """True after `--continue`."""


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """How a trial ended."""

    outcome: Outcome
    trust: str
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    tasks: Mapping[str, float] = field(default_factory=dict)
    checks: tuple[CheckResult, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Times, exit codes, methods, digests of kept output."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial, as it is recorded."""

    trial: str
    number: int
    run: str
    slot: Slot
    tried: int
    """Counted from 1, within its slot."""
    token: int
    """Of the lease it was reserved under."""
    owner: OwnerIdentity | None
    """The process that runs it; None before it is launched."""
    reserved_at: float
    launched_at: float | None
    ended_at: float | None
    end: TrialEnd | None

    @property
    def short(self) -> str:
        """What people call it."""
        return short_id(Kind.TRIAL, self.number)

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it is open."""
        return None if self.end is None else self.end.outcome

    @property
    def is_open(self) -> bool:
        """True while it has not ended."""
        return self.end is None


@dataclass(frozen=True, slots=True)
class OperationRow:
    """A control, as it is recorded."""

    operation_id: str
    place: int
    """In the order they were taken, from 1 on."""
    digest: str
    action: str
    status: Status
    document: Mapping[str, Any]
    answer: Mapping[str, Any]
    host_id: str | None
    is_retryable: bool
    sent_at: float
    changed_at: float


@dataclass(frozen=True, slots=True)
class NewReview:
    """A review that counts, for or against."""

    candidate: str
    reviewer: str
    verdict: str
    document: Mapping[str, Any]
    """All of it: what it names is compared again whenever it is read."""


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A review, as it is recorded; the last one of a candidate counts."""

    number: int
    candidate: str
    reviewer: str
    verdict: str
    at: float
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One limit, and what of it is spent."""

    name: str
    ceiling: float
    spent: float

    @property
    def is_exhausted(self) -> bool:
        """True where a limit that is used up is so."""
        return self.name in SPENT_LIMITS and self.spent >= self.ceiling


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, in a line."""

    place: int
    at: float
    kind: str
    subject: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment."""

    run: RunRow
    budget: tuple[BudgetLine, ...]
    candidates: tuple[CandidateRow, ...]
    """The baseline first, then in the order of creation."""
    trials: tuple[TrialRow, ...]
    operations: tuple[OperationRow, ...]
    reviews: tuple[ReviewRow, ...]
    lease: LeaseRow | None

    @property
    def exhausted(self) -> tuple[str, ...]:
        """Names of limits that are used up."""
        return tuple(line.name for line in self.budget if line.is_exhausted)
