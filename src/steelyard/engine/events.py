"""What observers of a launch are told: progress renderers, the SDK's callbacks, tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from steelyard.components.issues import Outcome, Phase
from steelyard.results.consumption import without_noise

if TYPE_CHECKING:
    from steelyard.results.records import AttemptRecord


class RunOutcome(StrEnum):
    """How a request, or the whole orchestration, ended."""

    COMPLETED = "completed"
    PARTIAL_FAILURE = "partial_failure"
    """Of an orchestration only: some requests failed."""
    FAILED = "failed"
    BUDGET_EXCEEDED = "budget_exceeded"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Underway:
    """One execution that runs now."""

    task_id: str
    attempt: int
    phase: str
    phase_s: float
    """How long it has been in this phase."""
    age_s: float
    """How long ago it started."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where one request stands."""

    name: str
    state: str
    """`waiting` for its turn to begin, `loading`, `running` or `ended`."""
    planned: int | None
    """None until its tasks are loaded."""
    running: int
    outcomes: Mapping[Outcome, int]
    phases: Mapping[str, int]
    """How many executions are in each phase."""
    issues: Mapping[str, int]
    """FATAL and ERROR issues so far, by code."""
    reused: int
    cost_usd: float | None
    elapsed_s: float
    slowest: tuple[Underway, ...] = ()
    """The few that have run longest, the longest first."""
    budget_usd: float | None = None
    """The request's own limit; None where it has none."""
    retries: int = 0
    """Executions so far that another one replaces."""
    waiting: int = 0
    """Attempts among the queued that wait for a retry."""
    tokens: int = 0
    """Of model calls, input and output, of attempts that have ended."""

    @property
    def queued(self) -> int:
        """Attempts that neither run nor have an outcome; 0 until the tasks are loaded."""
        return max(0, (self.planned or 0) - self.ended - self.running)

    @property
    def ended(self) -> int:
        """Attempts that have an outcome."""
        return sum(self.outcomes.values())

    def as_json(self) -> dict[str, Any]:
        """Give the form of `progress.json`."""
        return {
            "name": self.name,
            "state": self.state,
            "planned": self.planned,
            "running": self.running,
            "ended": self.ended,
            "outcomes": {outcome.value: count for outcome, count in self.outcomes.items()},
            "phases": dict(self.phases),
            "issues": dict(self.issues),
            "reused": self.reused,
            "retries": self.retries,
            "waiting_for_retry": self.waiting,
            "cost_usd": without_noise(self.cost_usd),
            "tokens": self.tokens,
            "budget_usd": self.budget_usd,
            "elapsed_s": round(self.elapsed_s, 1),
            "slowest": [
                {
                    "task_id": one.task_id,
                    "attempt": one.attempt,
                    "phase": one.phase,
                    "phase_s": round(one.phase_s, 1),
                    "age_s": round(one.age_s, 1),
                }
                for one in self.slowest
            ],
        }


@dataclass(frozen=True, slots=True)
class RequestResult:
    """How one request ended, and where its run lies."""

    name: str
    outcome: RunOutcome
    reason: str | None
    """Why it did not complete; None where it did."""
    run_dir: Path | None
    """None where it never began, and so has no folder."""
    planned: int
    counts: Mapping[Outcome, int]
    """Adds up to `planned`."""
    metrics: Mapping[str, Any] | None
    """The contents of `metrics.json`; None where it could not be made."""
    reuse: str | None = None
    """Which run was taken from, which were passed over, and why."""


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """How an orchestration ended."""

    outcome: RunOutcome
    exit_status: int
    requests: tuple[RequestResult, ...]
    elapsed_s: float
    loop_lag_p99_ms: float | None = field(default=None)


class Observer(Protocol):
    """Follows a launch. Called on the event loop: must return at once and never raise."""

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """A snapshot, about twice a second."""
        ...

    def notice(self, request: str | None, message: str) -> None:
        """Something a person should read as it happens."""
        ...

    def request_ended(self, result: RequestResult) -> None:
        """A request has its summary."""
        ...


class Unobserved:
    """Follows nothing. An `Observer`."""

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """Ignore it."""

    def notice(self, request: str | None, message: str) -> None:
        """Ignore it."""

    def request_ended(self, result: RequestResult) -> None:
        """Ignore it."""


class AttemptObserver(Unobserved):
    """An observer whose subclass is told of single attempts as well; costs nothing to others.

    Called on the event loop, once or more for each attempt: must return at once and never raise.
    Texts are as they came: whoever shows them redacts them.
    """

    def attempt_started(self, request: str, task_id: str, attempt: int, execution: int) -> None:
        """An execution begins; its intent is in the journal."""

    def phase_started(
        self, request: str, task_id: str, attempt: int, execution: int, phase: Phase
    ) -> None:
        """An execution has come to another phase."""

    def attempt_recorded(self, request: str, record: AttemptRecord) -> None:
        """An attempt has its record; it is in the journal, not yet synced."""
