"""What a candidate has shown, and what it still lacks: verified, feasible, eligible. Pure.

Nothing here is stored: it is worked out from trials, checks, constraints and the review each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from steelyard.fix.verify.constraints import ConstraintVerdict


class ReviewState(StrEnum):
    """What the independent review of a candidate has come to."""

    MISSING = "missing"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    STALE = "stale"
    """It was accepted, and what it looked at is no longer what counts."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What there is of one candidate."""

    candidate: str
    is_baseline: bool
    repetitions: int
    """Planned."""
    completed: int
    """Repetitions with every declared metric and task measured."""
    failed_checks: tuple[str, ...]
    """Ids of checks whose result is not the one that counts; of the baseline, not the expected."""
    constraints: tuple[ConstraintVerdict, ...]
    review: ReviewState
    is_invalidated: bool = False
    is_exhausted: bool = False


@dataclass(frozen=True, slots=True)
class Qualification:
    """What follows from it."""

    candidate: str
    is_measured: bool
    """Every repetition is there."""
    is_feasible: bool
    """Measured, every check as it must be, every constraint kept."""
    is_verified: bool
    """Feasible, and accepted by an independent review; not invalidated."""
    is_eligible: bool
    """May be expanded: verified and not exhausted; the baseline once it is accepted."""
    lacking: tuple[str, ...]
    """What keeps it from being verified, in words."""


def qualify(shown: Shown) -> Qualification:
    """Work out what a candidate qualifies for.

    The baseline may break constraints and be expanded all the same: improving it is the point. On
    the frontier it stands only where it is feasible, like everybody.
    """
    is_measured = shown.completed >= shown.repetitions
    broken = [str(verdict.constraint) for verdict in shown.constraints if not verdict.is_kept]
    is_feasible = is_measured and not shown.failed_checks and not broken
    accepted = shown.review is ReviewState.ACCEPTED and not shown.is_invalidated
    may_be_expanded = is_measured and not shown.failed_checks if shown.is_baseline else is_feasible
    return Qualification(
        candidate=shown.candidate,
        is_measured=is_measured,
        is_feasible=is_feasible,
        is_verified=is_feasible and accepted,
        is_eligible=may_be_expanded and accepted and not shown.is_exhausted,
        lacking=tuple(_lacking(shown, broken)),
    )


def _lacking(shown: Shown, broken: Sequence[str]) -> list[str]:
    found = []
    if shown.is_invalidated:
        found.append("it is invalidated")
    if shown.completed < shown.repetitions:
        found.append(f"{shown.completed} of {shown.repetitions} repetitions are measured")
    if shown.failed_checks:
        found.append(f"checks failed: {', '.join(shown.failed_checks)}")
    if broken and shown.completed >= shown.repetitions:
        found.append(f"constraints failed: {', '.join(broken)}")
    if shown.review is not ReviewState.ACCEPTED:
        found.append(f"the review is {shown.review.value}")
    return found
