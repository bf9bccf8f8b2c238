"""Where a set stands, for `status`, `watch` and servers: values, and how they add up. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from steelyard.components.issues import Outcome
from steelyard.engine.events import Underway
from steelyard.evalset.case_scores import Score
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.states import EXIT_STATUS, CellState, SetState
from steelyard.evalset.submissions import Submission
from steelyard.results.consumption import NO_SPENDING, Spending, without_noise

STANDING_SCHEMA: Final = "evalset-standing/1"
FAILED_OUTCOMES: Final = (Outcome.FAILED_FATAL, Outcome.FAILED_ERROR, Outcome.TIMED_OUT)
ENDED_OUTCOMES: Final = (Outcome.SCORED, *FAILED_OUTCOMES, Outcome.SKIPPED_PASSED)
"""Those with a result: nothing of such an attempt is missing."""
UNDONE_OUTCOMES: Final = (Outcome.CANCELLED, Outcome.SKIPPED_BUDGET)
"""Those without one, that are no longer to come unless somebody resumes the set."""


@dataclass(frozen=True, slots=True)
class CellStanding:
    """Where a cell stands, by its newest run."""

    cell: SetCell
    state: CellState
    run_dir: Path | None = None
    planned: int | None = None
    """Attempts; before its tasks are loaded as many as others of the same pack; else None."""
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    running: int = 0
    reused: int = 0
    issues: Mapping[str, int] = field(default_factory=dict)
    """FATAL and ERROR issues, by code."""
    slowest: tuple[Underway, ...] = ()
    spent: Spending = NO_SPENDING
    """What all its runs paid."""
    elapsed_s: float = 0.0
    """Of its newest run."""
    score: Score | None = None
    """The primary metric over what is recorded so far."""
    reason: str | None = None
    """Why it is not complete."""

    @property
    def ended(self) -> int:
        """Attempts that have a result: scored, failed, timed out, or needless after a success."""
        return sum(self.outcomes.get(outcome, 0) for outcome in ENDED_OUTCOMES)

    @property
    def undone(self) -> Mapping[Outcome, int]:
        """Attempts that were given up without a result; none where they are still to come."""
        if self.state in (CellState.PENDING, CellState.RUNNING):
            return {}
        return {o: self.outcomes[o] for o in UNDONE_OUTCOMES if self.outcomes.get(o)}

    @property
    def failed(self) -> int:
        """Attempts that ran and have no score."""
        return sum(self.outcomes.get(outcome, 0) for outcome in FAILED_OUTCOMES)

    def as_json(self) -> dict[str, Any]:
        """Give the form of documents."""
        cell = self.cell
        return {
            "index": cell.index,
            "matrix_key": cell.matrix_key,
            "pack": cell.pack.slug,
            "pack_version": cell.pack.version,
            "agent": cell.agent.shown,
            "model": cell.cell.model_ref,
            "repeat": cell.cell.repeat,
            "state": self.state.value,
            "run_dir": None if self.run_dir is None else str(self.run_dir),
            "planned": self.planned,
            "ended": self.ended,
            "running": self.running,
            "failed": self.failed,
            "outcomes": {outcome.value: n for outcome, n in self.outcomes.items()},
            "issues": dict(self.issues),
            "score": None if self.score is None else self.score.as_json(),
            "cost_usd": without_noise(self.spent.cost_usd),
            "elapsed_s": round(self.elapsed_s, 1),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """Several cells together: those of an agent, or a row of the matrix."""

    pack: str | None
    """None where it is all packs."""
    agent: str
    model: str | None
    cells: tuple[int, ...]
    """Their places in the standing's `cells`."""
    states: Mapping[CellState, int]
    planned: int | None
    ended: int
    failed: int
    spent: Spending
    score: Score | None
    undone: Mapping[Outcome, int] = field(default_factory=dict)
    """Attempts that were given up without a result."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of documents."""
        return {
            "pack": self.pack,
            "agent": self.agent,
            "model": self.model,
            "cells": {state.value: n for state, n in self.states.items()},
            "planned": self.planned,
            "ended": self.ended,
            "failed": self.failed,
            "undone": undone_json(self.undone),
            "cost_usd": without_noise(self.spent.cost_usd),
            "score": None if self.score is None else self.score.as_json(),
        }


@dataclass(frozen=True, slots=True)
class SlowAttempt:
    """An attempt that has run for long, and in which cell."""

    matrix_key: str
    attempt: Underway

    def as_json(self) -> dict[str, Any]:
        """Give the form of documents."""
        return {
            "matrix_key": self.matrix_key,
            "case": self.attempt.task_id,
            "attempt": self.attempt.attempt,
            "phase": self.attempt.phase,
            "phase_s": round(self.attempt.phase_s, 1),
            "age_s": round(self.attempt.age_s, 1),
        }


@dataclass(frozen=True, slots=True)
class SetStanding:
    """Where a set stands."""

    set_id: str
    name: str
    root: Path
    state: SetState
    submission: Submission | None
    """The latest; None where none can be read."""
    cells: tuple[CellStanding, ...]
    rows: tuple[GroupStanding, ...]
    """Pack x agent x model, in the order of the cells."""
    agents: tuple[GroupStanding, ...]
    """Agent x model, over all packs."""
    spent: Spending
    """By all submissions, scanners' judges included."""
    elapsed_s: float
    """Of the latest submission."""
    left_s: float | None = None
    """At the recent pace; None where nothing is known of it, or nothing is left."""
    is_rough: bool = False
    """So few attempts have ended that the pace is a guess."""
    warnings: tuple[str, ...] = ()

    @property
    def states(self) -> dict[CellState, int]:
        """How many cells are in each state, in the order of the states."""
        return counted_states(self.cells)

    @property
    def planned(self) -> int | None:
        """Attempts of all cells; None while those of some are not known."""
        return planned_of(self.cells)

    @property
    def ended(self) -> int:
        """Attempts that have a result."""
        return sum(cell.ended for cell in self.cells)

    @property
    def undone(self) -> Mapping[Outcome, int]:
        """Attempts that were given up without a result."""
        return undone_of(self.cells)

    @property
    def running(self) -> int:
        """Attempts that run now."""
        return sum(cell.running for cell in self.cells)

    @property
    def failed(self) -> int:
        """Attempts that ran and have no score."""
        return sum(cell.failed for cell in self.cells)

    @property
    def issues(self) -> dict[str, int]:
        """FATAL and ERROR issues by code, the most frequent first."""
        total: Counter[str] = Counter()
        for cell in self.cells:
            total.update(cell.issues)
        return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))

    @property
    def budget_usd(self) -> float | None:
        """The limit of the latest submission; None for none."""
        return None if self.submission is None else self.submission.budget_usd

    @property
    def exit_status(self) -> int | None:
        """What a follower ends with; None while the set runs."""
        return exit_status_of(self.state, self.submission)

    def slowest(self, most: int = 5) -> list[SlowAttempt]:
        """Give the attempts that have run longest."""
        found = [
            SlowAttempt(cell.cell.matrix_key, one) for cell in self.cells for one in cell.slowest
        ]
        return sorted(found, key=lambda one: -one.attempt.age_s)[:most]

    def as_json(self, changed: Collection[int] | None = None) -> dict[str, Any]:
        """Give the document `evalset-standing/1`.

        Args:
            changed: places of the cells that are listed; None for all.
        """
        submission = self.submission
        listed = self.cells if changed is None else [self.cells[place] for place in changed]
        return {
            "schema": STANDING_SCHEMA,
            "set_id": self.set_id,
            "name": self.name,
            "root": str(self.root),
            "state": self.state.value,
            "exit_status": self.exit_status,
            "submission": None
            if submission is None
            else {
                "number": submission.number,
                "kind": submission.kind,
                "began_at": submission.began_at,
                "ended_at": submission.ended_at,
                "reason": submission.reason,
            },
            "cell_states": {state.value: n for state, n in self.states.items()},
            "attempts": {
                "planned": self.planned,
                "ended": self.ended,
                "running": self.running,
                "failed": self.failed,
                "undone": undone_json(self.undone),
            },
            "agents": [group.as_json() for group in self.agents],
            "rows": [group.as_json() for group in self.rows],
            "budget": {
                "spent_usd": without_noise(self.spent.cost_usd),
                "known_spent_usd": without_noise(self.spent.known_usd),
                "limit_usd": self.budget_usd,
            },
            "elapsed_s": round(self.elapsed_s, 1),
            "left_s": None if self.left_s is None else round(self.left_s, 1),
            "is_left_rough": self.is_rough,
            "issues": self.issues,
            "slowest": [one.as_json() for one in self.slowest()],
            "warnings": list(self.warnings),
            "is_whole": changed is None,
            "cells": [cell.as_json() for cell in listed],
        }


def counted_states(cells: Iterable[CellStanding]) -> dict[CellState, int]:
    """Count cells by state, in the order of the states; those of none are left out."""
    found = Counter(cell.state for cell in cells)
    return {state: found[state] for state in CellState if found[state]}


def planned_of(cells: Iterable[CellStanding]) -> int | None:
    """Add up planned attempts; None where those of a cell are not known."""
    total = 0
    for cell in cells:
        if cell.planned is None:
            return None
        total += cell.planned
    return total


def undone_of(cells: Iterable[CellStanding]) -> dict[Outcome, int]:
    """Add up attempts that were given up without a result; outcomes of none are left out."""
    found: Counter[Outcome] = Counter()
    for cell in cells:
        found.update(cell.undone)
    return {outcome: found[outcome] for outcome in UNDONE_OUTCOMES if found[outcome]}


def undone_json(undone: Mapping[Outcome, int]) -> dict[str, int]:
    """Give each outcome without a result, those with 0 too."""
    return {outcome.value: undone.get(outcome, 0) for outcome in UNDONE_OUTCOMES}


def spent_of(cells: Iterable[CellStanding]) -> Spending:
    """Add up what cells paid."""
    total = NO_SPENDING
    for cell in cells:
        total += cell.spent
    return total


def shown_packs(cells: Sequence[SetCell]) -> dict[str, str]:
    """Give what packs are called, by ref: the slug, with its version where two share it."""
    versions: dict[str, set[int]] = {}
    for cell in cells:
        versions.setdefault(cell.pack.slug, set()).add(cell.pack.version)
    return {
        cell.pack.ref: cell.pack.slug
        if len(versions[cell.pack.slug]) == 1
        else f"{cell.pack.slug}@{cell.pack.version}"
        for cell in cells
    }


def exit_status_of(state: SetState, submission: Submission | None) -> int | None:
    """Give what a follower ends with; None while the set runs.

    What the submission itself ended with, where it says so: a missed gate is 3, a signal has its
    number.
    """
    if state is SetState.RUNNING:
        return None
    said = None if submission is None or submission.outcome is None else submission.exit_status
    is_said = isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= 255
    return said if is_said else EXIT_STATUS[state]
