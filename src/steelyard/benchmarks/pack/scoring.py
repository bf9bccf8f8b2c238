"""From what the validators found to one score. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from steelyard.components.often_made import often_made

Strategy = Literal["weighted", "all", "any"]


@often_made(frozen=True, slots=True)
class Weighed:
    """What one validator found, with what it counts for."""

    value: float
    """From 0 to 1."""
    weight: float
    is_gate: bool


def score_of(found: Sequence[Weighed], strategy: Strategy) -> float:
    """Give the score, from 0 to 1.

    `weighted` is sum(w * v) / sum(w); `all` is 1 where every validator gives 1, else 0; `any` is
    1 where one of them does. Weights of 0 are left out of all three. A gate that gives less than
    1 makes the score 0 whatever the strategy.

    Raises:
        ValueError: no validator has a weight.
    """
    if any(item.is_gate and item.value < 1 for item in found):
        return 0.0
    counted = [item for item in found if item.weight > 0]
    total = sum(item.weight for item in counted)
    if not total:
        raise ValueError("no validator has a weight")
    if strategy == "all":
        return float(all(item.value >= 1 for item in counted))
    if strategy == "any":
        return float(any(item.value >= 1 for item in counted))
    return min(1.0, sum(item.weight * item.value for item in counted) / total)
