"""When to stop proposing: rounds that brought no new nondominated vector of metrics. Pure.

Rounds are looked at in the order they were proposed, each with what came before it alone,
whatever order they ended in. An equal vector stays on the frontier and is nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.fix.verify.frontier import Vector, frontier
from steelyard.fix.verify.measured import Objective


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
    earlier = [] if baseline is None else [baseline]
    without, last_new = 0, None
    for current in sorted(rounds, key=lambda one: one.number):
        if not current.is_complete:
            continue
        known = {one.values for one in earlier}
        earlier += current.vectors
        front = set(frontier(earlier, objectives))
        is_new = any(one.candidate in front and one.values not in known for one in current.vectors)
        without = 0 if is_new else without + 1
        last_new = current.number if is_new else last_new
    return Stagnation(without, limit, last_new)
