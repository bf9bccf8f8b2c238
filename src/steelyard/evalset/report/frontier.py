"""Which agent and model to choose for the money: cost against quality, and who is beaten. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.stats.pareto import pareto_front

if TYPE_CHECKING:
    from steelyard.evalset.report.report import Row


@dataclass(frozen=True, slots=True)
class Choice:
    """An agent under a model, over all packs."""

    agent: str
    model: str
    quality: Mapping[str, Any]
    """An estimate of the headline."""
    cost_usd: Mapping[str, Any]
    """An estimate of what an attempt costs."""
    is_complete: bool
    """True where every planned attempt counts, and each has a known price."""
    is_on_frontier: bool
    """True where no other costs as little and is as good, and better in one of the two."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of `evalset-report/1`."""
        return {
            "agent": self.agent,
            "model": self.model,
            "quality": dict(self.quality),
            "cost_usd_per_attempt": dict(self.cost_usd),
            "is_complete": self.is_complete,
            "is_on_frontier": self.is_on_frontier,
        }


def frontier(rows: Sequence[Row]) -> list[Choice]:
    """Give the choices that have a score and a price, cheapest first.

    The frontier is of the estimates as they stand: where intervals overlap, another sample may
    have another.
    """
    found = []
    for row in rows:
        head, cost = row.headline, row.cost_per_attempt
        if head is not None and row.estimate is not None and cost is not None:
            found.append((row, head, row.estimate, cost))
    signs = {bool(head["higher_is_better"]) for _, head, _, _ in found}
    metrics = {row.metric for row, *_ in found}
    if len(signs) > 1 or len(metrics) > 1:
        return []  # agents that ran other packs: their scores are of other scales
    sign = -1.0 if signs == {True} else 1.0
    front = set(pareto_front([(c["value"], sign * e["value"]) for _, _, e, c in found]))
    choices = [
        Choice(
            str(row.names.agent),
            str(row.names.model),
            estimate,
            cost,
            is_complete=head["official"] is not None and row.cost_usd is not None,
            is_on_frontier=number in front,
        )
        for number, (row, head, estimate, cost) in enumerate(found)
    ]
    return sorted(choices, key=lambda one: (one.cost_usd["value"], -one.quality["value"]))
