"""The verified Pareto frontier: who is no better in everything. Pure.

No weighted score is ever made; which trade-off is delivered is the user's choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.fix.verify.measured import Measured, Objective, spread
from steelyard.stats.pareto import dominates, pareto_front


@dataclass(frozen=True, slots=True)
class Vector:
    """The medians of one verified candidate, in the order of the objectives."""

    candidate: str
    values: tuple[float, ...]


def vector(
    candidate: str, measured: Mapping[str, Measured], objectives: Sequence[Objective]
) -> Vector | None:
    """Give a candidate's medians; None where an objective was not measured.

    Args:
        candidate: whose.
        measured: by metric.
        objectives: the frozen ones, in order.
    """
    values = []
    for objective in objectives:
        found = measured.get(objective.metric)
        seen = None if found is None else spread(found)
        if seen is None:
            return None
        values.append(seen.median)
    return Vector(candidate, tuple(values))


def frontier(vectors: Sequence[Vector], objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Give the candidates that no other dominates, in the order given; equal vectors all stay.

    Args:
        vectors: of valid, verified, feasible candidates only.
        objectives: the frozen ones, in order.
    """
    front = pareto_front([costs_of(one, objectives) for one in vectors])
    return tuple(vectors[index].candidate for index in front)


def dominated_by(
    vectors: Sequence[Vector], objectives: Sequence[Objective]
) -> dict[str, tuple[str, ...]]:
    """Give, for each candidate that is dominated, those that dominate it."""
    costs = [(one.candidate, costs_of(one, objectives)) for one in vectors]
    found = {
        name: tuple(other for other, rival in costs if dominates(rival, mine))
        for name, mine in costs
    }
    return {name: others for name, others in found.items() if others}


def costs_of(one: Vector, objectives: Sequence[Objective]) -> tuple[float, ...]:
    """Turn a vector so that less is better in each coordinate."""
    return tuple(
        objective.cost(value) for objective, value in zip(objectives, one.values, strict=True)
    )
