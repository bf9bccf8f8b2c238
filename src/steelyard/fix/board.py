"""How a run stands: who qualifies, who is on the frontier, who may be expanded, has it stagnated.

Pure, and worked out anew each time from what was measured and reviewed: nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from steelyard.fix.policies import Eligible
from steelyard.fix.verify.constraints import (
    Answer,
    Constraint,
    ConstraintVerdict,
    RatioOfNothing,
    judge,
)
from steelyard.fix.verify.frontier import Vector, dominated_by, frontier, vector
from steelyard.fix.verify.measured import Measured, Objective, spread
from steelyard.fix.verify.qualification import Qualification, ReviewState, Shown, qualify
from steelyard.fix.verify.stagnation import Round, Stagnation, stagnation


@dataclass(frozen=True, slots=True)
class Entry:
    """What the ledger holds of one candidate."""

    candidate: str
    parent: str | None
    """None for the baseline."""
    round: int
    """In the order of proposal; the baseline's is 0 and counts as none."""
    measured: Mapping[str, Measured]
    """By metric: the samples that count."""
    completed: int
    """Repetitions with every declared metric and task."""
    tasks: Mapping[str, Measured] = field(default_factory=lambda: MappingProxyType({}))
    """By task."""
    failed_checks: tuple[str, ...] = ()
    review: ReviewState = ReviewState.MISSING
    is_at_end: bool = False
    """Nothing about it is still to come: reviewed, failed, cancelled or abandoned."""
    is_invalidated: bool = False
    """By a control of its own; descendants follow by themselves."""
    is_exhausted: bool = False
    last: int | None = None
    """The decision that last expanded it."""

    @property
    def is_baseline(self) -> bool:
        """True for the original baseline."""
        return self.parent is None


@dataclass(frozen=True, slots=True)
class Place:
    """How one candidate stands."""

    candidate: str
    qualification: Qualification
    shown: Shown
    vector: Vector | None
    """Its medians; None where an objective was not measured."""
    is_on_frontier: bool
    dominated_by: tuple[str, ...]
    """Verified candidates that are nowhere worse and somewhere better."""


@dataclass(frozen=True, slots=True)
class Board:
    """How a run stands."""

    places: tuple[Place, ...]
    """In the order of creation."""
    frontier: tuple[str, ...]
    eligible: tuple[Eligible, ...]
    """E, which policies choose from."""
    stagnation: Stagnation

    def place(self, candidate: str) -> Place:
        """Give one candidate's place.

        Raises:
            KeyError: the run has no such candidate.
        """
        for place in self.places:
            if place.candidate == candidate:
                return place
        raise KeyError(candidate)


def board(
    entries: Sequence[Entry],
    *,
    objectives: Sequence[Objective],
    constraints: Sequence[Constraint],
    repetitions: int,
    stagnation_rounds: int,
) -> Board:
    """Work out how a run stands.

    Args:
        entries: the baseline first, then candidates in the order of creation.
        objectives: the frozen ones, in order.
        constraints: the frozen ones; relative ones are anchored to the first entry.
        repetitions: of each candidate.
        stagnation_rounds: the run's limit.

    A ratio to a baseline that is not above 0 fails, with its reason: how a run stands can be asked
    also where that stopped it.
    """
    invalid = invalidated(entries)
    anchor: Mapping[str, Measured] = entries[0].measured if entries else {}
    shown = [
        Shown(
            candidate=entry.candidate,
            is_baseline=entry.is_baseline,
            repetitions=repetitions,
            completed=entry.completed,
            failed_checks=entry.failed_checks,
            constraints=tuple(_judged(one, entry.measured, anchor) for one in constraints),
            review=entry.review,
            is_invalidated=entry.candidate in invalid,
            is_exhausted=entry.is_exhausted,
        )
        for entry in entries
    ]
    qualified = [qualify(one) for one in shown]
    vectors = [vector(entry.candidate, entry.measured, objectives) for entry in entries]
    verified = {
        one.candidate: found
        for one, found in zip(qualified, vectors, strict=True)
        if one.is_verified and found is not None
    }
    front = frontier(list(verified.values()), objectives)
    beaten = dominated_by(list(verified.values()), objectives)
    return Board(
        places=tuple(
            Place(
                entry.candidate,
                qualification,
                one,
                found,
                entry.candidate in front,
                beaten.get(entry.candidate, ()),
            )
            for entry, qualification, one, found in zip(
                entries, qualified, shown, vectors, strict=True
            )
        ),
        frontier=front,
        eligible=tuple(
            _eligible(entry, found, objectives, entry.candidate in front)
            for entry, qualification, found in zip(entries, qualified, vectors, strict=True)
            if qualification.is_eligible and found is not None
        ),
        stagnation=_stagnation(entries, verified, invalid, objectives, stagnation_rounds),
    )


def _judged(
    constraint: Constraint, measured: Mapping[str, Measured], anchor: Mapping[str, Measured]
) -> ConstraintVerdict:
    metric = constraint.metric
    try:
        return judge(constraint, measured.get(metric), anchor.get(metric))
    except RatioOfNothing as error:
        return ConstraintVerdict(constraint, Answer.FAILED, None, None, False, str(error))


def invalidated(entries: Sequence[Entry]) -> frozenset[str]:
    """Give the candidates that are invalid: by a control, or through an ancestor.

    Args:
        entries: every parent before its children.
    """
    found: set[str] = set()
    for entry in entries:
        if entry.is_invalidated or entry.parent in found:
            found.add(entry.candidate)
    return frozenset(found)


def _eligible(
    entry: Entry, found: Vector, objectives: Sequence[Objective], is_on_frontier: bool
) -> Eligible:
    metrics = [objective.metric for objective in objectives]
    tasks = {name: seen.median for name, one in entry.tasks.items() if (seen := spread(one))}
    return Eligible(
        entry.candidate,
        dict(zip(metrics, found.values, strict=True)),
        tasks,
        is_on_frontier,
        entry.last,
    )


def _stagnation(
    entries: Sequence[Entry],
    verified: Mapping[str, Vector],
    invalid: frozenset[str],
    objectives: Sequence[Objective],
    limit: int,
) -> Stagnation:
    by_round: dict[int, list[Entry]] = {}
    for entry in entries:
        if not entry.is_baseline:
            by_round.setdefault(entry.round, []).append(entry)
    rounds = [
        Round(
            number,
            tuple(verified[one.candidate] for one in row if one.candidate in verified),
            all(one.is_at_end or one.candidate in invalid for one in row),
        )
        for number, row in by_round.items()
    ]
    baseline = next((entry.candidate for entry in entries if entry.is_baseline), None)
    return stagnation(verified.get(baseline or ""), rounds, objectives, limit)
