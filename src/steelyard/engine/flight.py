"""Values of a run: an execution under way, why a request stops, a task's identities."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from steelyard.components.issues import Phase
from steelyard.engine.admission import Start
from steelyard.engine.events import RunOutcome
from steelyard.engine.spec import SavedWork
from steelyard.results.records import AttemptRecord
from steelyard.results.step_log import StepLog


@dataclass(slots=True)
class Flight:
    """One execution under way."""

    start: Start
    token: str
    task: asyncio.Task[Any]
    began_s: float
    """Monotonic."""
    began_at: str
    phase: Phase = Phase.SETUP
    phase_since_s: float | None = None
    """Monotonic; None before the first phase was told."""
    saved: AttemptRecord | None = None
    """The record of an earlier run whose work is scored again."""
    work: SavedWork | None = None
    """Given, the agent does not run: this is scored again."""
    steps: StepLog | None = None
    """What its agent has done so far, where that is recorded as it happens."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a request ends before all its attempts have."""

    outcome: RunOutcome
    reason: str
    lets_run: bool = False
    """True where what runs goes on to its end: nothing more is started."""


@dataclass(slots=True)
class TaskIdentities:
    """The identities of a task whose attempts are under way."""

    generation: str
    evaluation: str
    content: str
    left: int
    """Attempts of the task without an outcome; at 0 the entry goes."""
