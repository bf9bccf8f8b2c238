"""The words for where a set and its cells stand, and the exit status that goes with each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class SetState(StrEnum):
    """Where a set stands."""

    RUNNING = "running"
    """Some process holds its lock."""
    COMPLETED = "completed"
    PARTIAL_FAILURE = "partial_failure"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    BUDGET_EXCEEDED = "budget_exceeded"
    INTERRUPTED = "interrupted"
    """Its process ended without saying how: `resume` goes on."""


class CellState(StrEnum):
    """Where a cell stands."""

    PENDING = "pending"
    """Nothing of it has begun."""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED_BUDGET = "skipped_budget"
    """The budget stopped it; `resume` with a new limit goes on."""
    INTERRUPTED = "interrupted"
    """Its process died."""


TERMINAL: Final = frozenset(SetState) - {SetState.RUNNING}
"""Followers of a set end on each of these."""

EXIT_STATUS: Final[Mapping[SetState, int]] = MappingProxyType(
    {
        SetState.COMPLETED: 0,
        SetState.PARTIAL_FAILURE: 1,
        SetState.FAILED: 1,
        SetState.TIMED_OUT: 5,
        SetState.CANCELLED: 130,
        SetState.BUDGET_EXCEEDED: 4,
        SetState.INTERRUPTED: 1,
    }
)
"""What a follower ends with, as `launch` does; a missed gate is 3."""
