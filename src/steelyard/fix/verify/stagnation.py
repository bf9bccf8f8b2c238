"""When to stop proposing: rounds that brought no new nondominated vector of metrics. Pure.

Rounds are looked at in the order they were proposed, each with what came before it alone,
whatever order they ended in. An equal vector stays on the frontier and is nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.fix.verify.frontier import Vector, costs_of
from steelyard.fix.verify.measured import Objective
from steelyard.stats.pareto import pareto_front


@dataclass(frozen=True, slots=True)
class Round:
    """The alternatives that were proposed together."""

    number: int
    """In the order of proposal."""
    vectors: tuple[Vector, ...]
    """Of its candidates that are valid, verified and feasible; often there are none."""
    is_complete: bool
    """Whether all its candidates have come to their end."""


@dataclass(frozen=True, slots=True)
class Stagnation:
    """How long nothing new has come."""

    rounds_without_new: int
    """Completed rounds since the last that brought something new."""
    limit: int
    last_new_round: int | None
    """None where none has."""

    @property
    def is_reached(self) -> bool:
        """True where the loop stops."""
        return self.rounds_without_new >= self.limit


def stagnation(
    baseline: Vector | None,
    rounds: Sequence[Round],
    objectives: Sequence[Objective],
    limit: int,
) -> Stagnation:
    """Count the completed rounds since the last new nondominated vector.

    Args:
        baseline: its vector, once it is verified and feasible.
        rounds: every round, in any order; those that are not complete are passed over.
        objectives: the frozen ones, in order.
        limit: `stagnation_rounds`.
    """
    # Only what is on the frontier so far can keep a vector off it: no round looks at all before.
    known = set() if baseline is None else {costs_of(baseline, objectives)}
    front = list(known)
    without, last_new = 0, None
    for current in sorted(rounds, key=lambda one: one.number):
        if not current.is_complete:
            continue
        costs = dict.fromkeys(costs_of(one, objectives) for one in current.vectors)
        fresh = [one for one in costs if one not in known]
        known.update(fresh)
        merged = [*front, *fresh]
        kept = pareto_front(merged)
        is_new = any(index >= len(front) for index in kept)
        front = [merged[index] for index in kept]
        without = 0 if is_new else without + 1
        last_new = current.number if is_new else last_new
    return Stagnation(without, limit, last_new)
