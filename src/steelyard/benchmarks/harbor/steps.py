"""What the rewards of steps make of the whole task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from steelyard.benchmarks.harbor.schema import StepTable


def reaches(rewards: Mapping[str, float], thresholds: Mapping[str, float]) -> bool:
    """True where every threshold is met; a reward that is missing meets none."""
    return all(rewards.get(name, float("-inf")) >= least for name, least in thresholds.items())


def combined_rewards(
    scored: Sequence[Mapping[str, float]],
    steps: Sequence[StepTable],
    strategy: Literal["mean", "final"],
) -> dict[str, float]:
    """Combine the rewards of the steps that were worked on.

    The format's own rule: each reward's mean over the steps that were verified, a reward that a
    step does not give counting as 0; or the last verified step's. A task that a threshold ended
    early is judged by what was verified. Steps that the agent's time did not suffice for were
    never begun either, but by the agent's doing: they count as 0.

    Args:
        scored: each verified step's rewards, in order, at least one.
        steps: all steps.
        strategy: `mean` or `final`.
    """
    count = len(scored)
    if reaches(scored[-1], steps[count - 1].thresholds):
        count = len(steps)
    names = dict.fromkeys(name for rewards in scored for name in rewards)
    if strategy == "final":
        last = scored[-1] if count == len(scored) else dict.fromkeys(names, 0.0)
        return dict(last)
    return {name: sum(rewards.get(name, 0.0) for rewards in scored) / count for name in names}
