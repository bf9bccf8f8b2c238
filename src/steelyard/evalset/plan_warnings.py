"""What a submission does that nobody can have meant, and that is no error: said before it costs."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.config.errors import Problem
from steelyard.evalset.set_plan import SetPlan


def plan_warnings(plan: SetPlan) -> Iterator[Problem]:
    """Iterate over what a plan's manifest and project say in vain."""
    yield from plan.project.packs.empty
    yield from _packs_twice(plan)
    yield from _scores_out_of_reach(plan)


def _packs_twice(plan: SetPlan) -> Iterator[Problem]:
    """Find packs that two refs name."""
    first: dict[str, str] = {}
    for index, ref in enumerate(plan.read.manifest.packs):
        pinned = plan.references.packs.get(ref)
        if pinned is None or (other := first.setdefault(pinned.path, ref)) == ref:
            continue
        yield Problem(
            f"{other!r} and {ref!r} are the same pack: each of its cases is run and paid twice",
            plan.read.root.nearest(("packs", index)).origin.where,
            "name it once",
        )


def _scores_out_of_reach(plan: SetPlan) -> Iterator[Problem]:
    """Find a score that is asked for and lies above all that a pack can give."""
    least = plan.read.manifest.gates.min_score
    if least is None:
        return
    where = plan.read.root.nearest(("gates", "min_score")).origin.where
    for ref, pack in plan.references.opened.items():
        info = pack.benchmark.info()
        metric = next((one for one in info.metrics if one.name == info.primary), None)
        if metric is None or metric.bounds is None or least <= metric.bounds[1]:
            continue
        low, high = metric.bounds
        yield Problem(
            f"gates.min_score is {least:g}, and {metric.name} of {ref!r} lies from {low:g} to "
            f"{high:g}: it cannot be met",
            where,
            "write it on the metric's own scale",
        )
