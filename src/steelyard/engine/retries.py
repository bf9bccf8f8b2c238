"""Is another execution of an attempt worth it, of what, and after how long?

Pure: `engine/driver.py` asks and waits, `components/issue_patterns.py` searches.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from steelyard.components.artifacts import EvaluationMode
from steelyard.components.issue_patterns import NO_PATTERNS, IssuePatterns
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase, Severity
from steelyard.engine.spec import ExecutionResult
from steelyard.models.allowance import Charge
from steelyard.models.backoff import Backoff

ATTEMPT_BACKOFF: Final = Backoff(base_s=1.0, cap_s=60.0)
"""Slower than that of requests, whose own retries have failed by then."""

NEVER: Final = frozenset(
    {IssueCode.CONFIGURATION, IssueCode.DEPENDENCY_MISSING, IssueCode.SECRET_UNAVAILABLE}
)
"""What the same execution would meet again until somebody mends the settings."""


class Scope(StrEnum):
    """What of an attempt runs again."""

    WHOLE = "whole"
    SCORING = "scoring"
    """The agent's work stands; it is scored again."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When an attempt of one request is executed again."""

    max_retries: int = 0
    """Executions after the first; 0 for none."""
    patterns: IssuePatterns = NO_PATTERNS
    """An ERROR that one of them matches is worth a retry; FATAL always is, WARNING never."""

    def may_retry(self, result: ExecutionResult, execution: int, *, stops_request: bool) -> bool:
        """True where it is left to `cause` alone.

        Args:
            result: how the execution ended.
            execution: which one it was, counted from 1.
            stops_request: whether its fault is one that every attempt of the request would meet.
        """
        return (
            execution <= self.max_retries
            and result.outcome is not Outcome.CANCELLED
            and bool(result.issues)
            and not stops_request
            and not any(issue.code in NEVER for issue in result.issues)
        )

    def is_quick(self, result: ExecutionResult) -> bool:
        """True where `cause` answers at once; else it may take seconds and belongs in a thread."""
        return _fatal(result) is not None or self.patterns.is_quick(_errors(result))

    def cause(self, result: ExecutionResult) -> Issue | None:
        """Give the issue that makes a retry worth it; None where none does."""
        return _fatal(result) or self.patterns.first_match(_errors(result))


def can_rescore(result: ExecutionResult) -> bool:
    """True where all that went wrong is in scoring, and all that scoring takes is at hand.

    Never in evaluation mode `reuse`: the environment that was scored is gone.
    """
    grave = [issue for issue in result.issues if issue.severity is not Severity.WARNING]
    return (
        result.work is not None
        and result.mode is not EvaluationMode.REUSE
        and bool(grave)
        and all(issue.phase is Phase.EVALUATE for issue in grave)
    )


def has_allowance(spent: Charge, attempt_usd: float | None, attempt_tokens: int | None) -> bool:
    """True where an attempt that has spent so much may call a model once more."""
    if attempt_usd is not None and spent.usd >= attempt_usd:
        return False
    return attempt_tokens is None or spent.tokens < attempt_tokens


def wait_s(backoff: Backoff, result: ExecutionResult, execution: int, *, seed: str) -> float:
    """Give the seconds from the end of an execution to the earliest begin of the next.

    Exponential with full jitter, or the `Retry-After` of its last issue that carries one. The same
    seed gives the same wait.

    Args:
        backoff: base and caps.
        result: how the execution ended.
        execution: which one it was, counted from 1.
        seed: names the execution among all of all runs.
    """
    asked = [issue.retry_after_s for issue in result.issues if issue.retry_after_s is not None]
    chance = random.Random(seed)  # noqa: S311 — jitter, not a secret
    return backoff.wait_s(execution - 1, asked[-1] if asked else None, chance)


def _fatal(result: ExecutionResult) -> Issue | None:
    return next((one for one in result.issues if one.severity is Severity.FATAL), None)


def _errors(result: ExecutionResult) -> list[Issue]:
    return [issue for issue in result.issues if issue.severity is Severity.ERROR]
