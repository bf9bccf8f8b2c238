"""Issues and outcomes: the closed words for what happened to an attempt.

Policy is data: one table says how severe each code is. Unknown is FATAL, because ERROR would
blame the agent for our fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final


class Severity(StrEnum):
    """How much an issue says about the agent."""

    FATAL = "FATAL"
    """The attempt says nothing about the agent."""
    ERROR = "ERROR"
    """The agent fell short."""
    WARNING = "WARNING"
    """Worth knowing; changes no score."""


class Phase(StrEnum):
    """Where in an attempt's life an issue arose."""

    SETUP = "setup"
    RUN = "run"
    COLLECT = "collect"
    EVALUATE = "evaluate"
    CLEANUP = "cleanup"


class IssueCode(StrEnum):
    """Every cause that is told apart."""

    CONFIGURATION = "configuration"
    DEPENDENCY_MISSING = "dependency_missing"
    SECRET_UNAVAILABLE = "secret_unavailable"  # noqa: S105 — a code, not a secret
    TASK_INVALID = "task_invalid"
    ENVIRONMENT_OPEN_FAILED = "environment_open_failed"
    ENVIRONMENT_OPEN_TIMED_OUT = "environment_open_timed_out"
    ENVIRONMENT_LOST = "environment_lost"
    HARNESS_CRASHED = "harness_crashed"
    MODEL_ENDPOINT_REJECTED = "model_endpoint_rejected"
    """401, 402, 403, 404: a fault of the request, not of one attempt."""
    MODEL_UNAVAILABLE = "model_unavailable"
    """429, 5xx or no connection, after the request's own retries."""
    MODEL_TIMED_OUT = "model_timed_out"
    MODEL_RESPONSE_INVALID = "model_response_invalid"
    MODEL_REQUEST_REFUSED = "model_request_refused"
    """400, 422: the agent sent what the endpoint refuses."""
    MODEL_OUTPUT_TOO_LARGE = "model_output_too_large"
    CONTEXT_OVERFLOW = "context_overflow"
    TURN_LIMIT = "turn_limit"
    ATTEMPT_BUDGET = "attempt_budget"
    AGENT_FAILED = "agent_failed"
    """The agent's program gave up: an exit code that is not among the allowed ones."""
    AGENT_TIMED_OUT = "agent_timed_out"
    COLLECT_FAILED = "collect_failed"
    SCORER_CRASHED = "scorer_crashed"
    SCORER_TIMED_OUT = "scorer_timed_out"
    STORAGE_FAILED = "storage_failed"
    CLEANUP_FAILED = "cleanup_failed"
    OUTPUT_TRUNCATED = "output_truncated"
    USAGE_UNKNOWN = "usage_unknown"
    ARTIFACT_FLAGGED = "artifact_flagged"
    """A secret stands in a kept file."""
    REUSE_REFUSED = "reuse_refused"
    UNKNOWN = "unknown"


SEVERITY: Final[Mapping[IssueCode, Severity]] = MappingProxyType(
    {
        IssueCode.CONFIGURATION: Severity.FATAL,
        IssueCode.DEPENDENCY_MISSING: Severity.FATAL,
        IssueCode.SECRET_UNAVAILABLE: Severity.FATAL,
        IssueCode.TASK_INVALID: Severity.FATAL,
        IssueCode.ENVIRONMENT_OPEN_FAILED: Severity.FATAL,
        IssueCode.ENVIRONMENT_OPEN_TIMED_OUT: Severity.FATAL,
        IssueCode.ENVIRONMENT_LOST: Severity.FATAL,
        IssueCode.HARNESS_CRASHED: Severity.FATAL,
        IssueCode.MODEL_ENDPOINT_REJECTED: Severity.FATAL,
        IssueCode.MODEL_UNAVAILABLE: Severity.FATAL,
        IssueCode.MODEL_TIMED_OUT: Severity.FATAL,
        IssueCode.MODEL_RESPONSE_INVALID: Severity.FATAL,
        IssueCode.MODEL_REQUEST_REFUSED: Severity.ERROR,
        IssueCode.MODEL_OUTPUT_TOO_LARGE: Severity.ERROR,
        IssueCode.CONTEXT_OVERFLOW: Severity.ERROR,
        IssueCode.TURN_LIMIT: Severity.ERROR,
        IssueCode.ATTEMPT_BUDGET: Severity.ERROR,
        IssueCode.AGENT_FAILED: Severity.ERROR,
        IssueCode.AGENT_TIMED_OUT: Severity.ERROR,
        IssueCode.COLLECT_FAILED: Severity.FATAL,
        IssueCode.SCORER_CRASHED: Severity.FATAL,
        IssueCode.SCORER_TIMED_OUT: Severity.FATAL,
        IssueCode.STORAGE_FAILED: Severity.FATAL,
        IssueCode.CLEANUP_FAILED: Severity.WARNING,
        IssueCode.OUTPUT_TRUNCATED: Severity.WARNING,
        IssueCode.USAGE_UNKNOWN: Severity.WARNING,
        IssueCode.ARTIFACT_FLAGGED: Severity.WARNING,
        IssueCode.REUSE_REFUSED: Severity.WARNING,
        IssueCode.UNKNOWN: Severity.FATAL,
    }
)


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that went wrong in an execution."""

    severity: Severity
    phase: Phase
    code: IssueCode
    message: str
    execution: int = 1
    """Which physical try of the attempt, counted from 1."""
    retry_after_s: float | None = None
    """How long an endpoint asked to be left alone; None where it did not say."""

    @classmethod
    def of(cls, code: IssueCode, phase: Phase, message: str) -> Issue:
        """Make an issue with the severity that the table gives its code."""
        return cls(SEVERITY[code], phase, code, message)

    def as_json(self) -> dict[str, Any]:
        """Give the record's form; `retry_after_s` only where there is one."""
        asked = {} if self.retry_after_s is None else {"retry_after_s": self.retry_after_s}
        return {
            "severity": self.severity.value,
            "phase": self.phase.value,
            "code": self.code.value,
            "message": self.message,
            "execution": self.execution,
            **asked,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Issue:
        """Read the record's form; raise `ValueError` or `KeyError` on another."""
        return cls(
            Severity(data["severity"]),
            Phase(data["phase"]),
            IssueCode(data["code"]),
            str(data["message"]),
            int(data["execution"]),
            None if data.get("retry_after_s") is None else float(data["retry_after_s"]),
        )


class Outcome(StrEnum):
    """The one word every planned attempt ends with."""

    SCORED = "scored"
    FAILED_FATAL = "failed_fatal"
    FAILED_ERROR = "failed_error"
    TIMED_OUT = "timed_out"
    """The agent's time ran out and the attempt was not scored."""
    CANCELLED = "cancelled"
    SKIPPED_BUDGET = "skipped_budget"
    SKIPPED_PASSED = "skipped_passed"
    """Strategy `pass` stopped the task at its first success."""
    NOT_STARTED = "not_started"


COUNTED: Final = frozenset(
    {Outcome.SCORED, Outcome.FAILED_ERROR, Outcome.TIMED_OUT, Outcome.SKIPPED_PASSED}
)
"""The outcomes with which a run's figures may be called official."""


class AttemptFault(Exception):
    """Raised by a component to end its phase with a known cause.

    Anything else that a component raises becomes `HARNESS_CRASHED`, `SCORER_CRASHED` or
    `UNKNOWN`, by phase: FATAL.
    """

    def __init__(
        self,
        code: IssueCode,
        message: str,
        *,
        request_fault: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s
        """How long an endpoint asked to be left alone."""
        self.request_fault = request_fault
        """True where the same fault would meet every attempt of the request."""
