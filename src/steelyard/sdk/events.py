"""What a launch tells an `on_event` handler: frozen values, in the order in which things happened.

Their form is public and versioned: a field is never taken away within a version, more may come,
and so may further kinds. Texts are redacted. A retry is an `AttemptStarted` whose `execution`
is above 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from steelyard.components.issues import Issue, Outcome, Phase
from steelyard.components.values import Usage

if TYPE_CHECKING:
    from steelyard.engine.events import RunOutcome

EVENT_SCHEMA: Final = "sdk-event/1"


class _Said:
    """Gives an event as JSON."""

    __slots__ = ()
    kind: ClassVar[str]

    def as_json(self) -> dict[str, Any]:
        """Give the event as plain JSON data, with its `schema` and `kind`."""
        own = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]
        return {"schema": EVENT_SCHEMA, "kind": self.kind, **own}


@dataclass(frozen=True, slots=True)
class AttemptStarted(_Said):
    """An execution of an attempt begins."""

    kind: ClassVar[str] = "attempt_started"
    request: str
    task_id: str
    attempt: int
    """Counted from 1."""
    execution: int
    """Counted from 1; above 1 it is a retry."""


@dataclass(frozen=True, slots=True)
class PhaseStarted(_Said):
    """An execution has come to another phase of its life."""

    kind: ClassVar[str] = "phase_started"
    request: str
    task_id: str
    attempt: int
    execution: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class AttemptFinished(_Said):
    """An attempt has its outcome; it is in the journal, not yet synced."""

    kind: ClassVar[str] = "attempt_finished"
    request: str
    task_id: str
    attempt: int
    outcome: Outcome
    metrics: Mapping[str, float | bool]
    issues: tuple[Issue, ...]
    usage: Usage
    executions: int
    """0 where it never started."""
    agent_s: float
    """Seconds of the agent's own time."""
    is_reused: bool
    """True where it was taken from an earlier run."""


@dataclass(frozen=True, slots=True)
class RunProgress(_Said):
    """Where one request stands, about twice a second."""

    kind: ClassVar[str] = "run_progress"
    request: str
    planned: int | None
    """Attempts; None until the tasks are loaded."""
    running: int
    outcomes: Mapping[Outcome, int]
    reused: int
    cost_usd: float | None
    """None where a call had no known price."""
    elapsed_s: float

    @property
    def ended(self) -> int:
        """Attempts that have an outcome."""
        return sum(self.outcomes.values())


@dataclass(frozen=True, slots=True)
class Notice(_Said):
    """Something a person should read as it happens."""

    kind: ClassVar[str] = "notice"
    request: str | None
    """None where it concerns all."""
    message: str


@dataclass(frozen=True, slots=True)
class RunFinished(_Said):
    """A request has ended and has its summary; `load_run(run_dir)` reads it."""

    kind: ClassVar[str] = "run_finished"
    request: str
    outcome: RunOutcome
    reason: str | None
    """Why it did not complete."""
    run_dir: Path | None
    """None where it never began."""
    counts: Mapping[Outcome, int]
    """Adds up to all that was planned."""


@dataclass(frozen=True, slots=True)
class EventsLost(_Said):
    """The handler was too slow: so many events were left out here, none of them a `RunFinished`."""

    kind: ClassVar[str] = "events_lost"
    count: int


Event: TypeAlias = (
    AttemptStarted
    | PhaseStarted
    | AttemptFinished
    | RunProgress
    | Notice
    | RunFinished
    | EventsLost
)


def _plain(value: Any) -> Any:
    if isinstance(value, Issue | Usage):
        return value.as_json()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
