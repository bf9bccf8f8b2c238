"""Who need not be measured to the end. It only eliminates: nothing is ever confirmed here. Pure.

The idea is F-race's (Birattari et al. 2002). Looking after each block would find by chance what is
not there; so every look has its share of the error alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.fix.verify.comparison import improvements_of
from steelyard.fix.verify.constraints import Constraint, is_certain_to_fail
from steelyard.fix.verify.measured import Measured, Objective
from steelyard.stats.paired import student_greater
from steelyard.stats.ranks import friedman

ALPHA: Final = 0.05
MIN_LOOK: Final = 5
"""Pairs before the first look."""


@dataclass(frozen=True, slots=True)
class Eliminated:
    """A candidate that stops early, and why."""

    candidate: str
    rival: str | None
    """Who is clearly better on every objective; None where a constraint is certain to fail."""
    constraint: Constraint | None
    after: int
    """Repetitions it had had."""
    p: float | None
    """The largest of the objectives' one-sided p against the rival."""


def race(
    candidates: Sequence[str],
    baseline: str,
    measured: Mapping[str, Mapping[str, Measured]],
    objectives: Sequence[Objective],
    constraints: Sequence[Constraint],
    *,
    repetitions: int,
    anchor: Mapping[str, Measured] | None = None,
    alpha: float = ALPHA,
) -> tuple[Eliminated, ...]:
    """Give those who need no further repetition.

    A candidate goes where a constraint fails whatever is still to come, or where one rival is
    better than it on every objective by Student's paired test, at alpha divided by the looks that
    are planned and the rivals there are.

    Args:
        candidates: those still in the race.
        baseline: its name; it is never eliminated.
        measured: by candidate and metric, what there is so far, the baseline's too.
        objectives: the frozen ones.
        constraints: the frozen ones.
        repetitions: planned for each.
        anchor: the complete measurement of the original baseline, for relative constraints.
        alpha: how often a candidate that is no worse than any may be lost, over all looks.
    """
    found = []
    rivals = [baseline, *candidates]
    looks = max(1, repetitions - MIN_LOOK)
    threshold = alpha / looks / max(1, len(rivals) - 1)
    racing = objectives if _differ(rivals, measured, objectives, alpha) else ()
    for candidate in candidates:
        mine = measured.get(candidate, {})
        after = max((len(one.samples) for one in mine.values()), default=0)
        if after >= repetitions:
            continue
        broken = _broken(constraints, mine, anchor or {}, repetitions)
        if broken is not None:
            found.append(Eliminated(candidate, None, broken, after, None))
            continue
        beaten = _beaten(candidate, rivals, measured, racing, threshold)
        if beaten is not None:
            found.append(Eliminated(candidate, beaten[0], None, after, beaten[1]))
    return tuple(found)


def _broken(
    constraints: Sequence[Constraint],
    mine: Mapping[str, Measured],
    anchor: Mapping[str, Measured],
    repetitions: int,
) -> Constraint | None:
    for constraint in constraints:
        samples = mine.get(constraint.metric)
        if samples is not None and is_certain_to_fail(
            constraint, samples, anchor.get(constraint.metric), repetitions
        ):
            return constraint
    return None


def _differ(
    rivals: Sequence[str],
    measured: Mapping[str, Mapping[str, Measured]],
    objectives: Sequence[Objective],
    alpha: float,
) -> bool:
    """True unless ranks of three or more, on what all share, say that none differs."""
    for objective in objectives:
        rows = [measured.get(name, {}).get(objective.metric) for name in rivals]
        if any(row is None for row in rows):
            return True
        by_pair = [{s.pair: s.value for s in row.samples} for row in rows if row is not None]
        shared = set.intersection(*(set(one) for one in by_pair))
        found = friedman([[one[pair] for one in by_pair] for pair in sorted(shared, key=repr)])
        if found is None or found.p <= alpha:
            return True
    return False


def _beaten(
    candidate: str,
    rivals: Sequence[str],
    measured: Mapping[str, Mapping[str, Measured]],
    objectives: Sequence[Objective],
    threshold: float,
) -> tuple[str, float] | None:
    mine = measured.get(candidate, {})
    for rival in rivals:
        theirs = measured.get(rival, {})
        if rival == candidate or not objectives:
            continue
        worst = 0.0
        for objective in objectives:
            if objective.metric not in mine or objective.metric not in theirs:
                worst = 1.0
                break
            losses = improvements_of(theirs[objective.metric], mine[objective.metric], objective)
            worst = max(worst, _chance(losses))
        if worst <= threshold:
            return rival, worst
    return None


def _chance(losses: Sequence[float]) -> float:
    """Give the one-sided p of losses by Student's t: sign flips of few pairs find nothing."""
    if len(losses) < MIN_LOOK:
        return 1.0
    found = student_greater(losses)
    if found is not None:
        return found
    return 0.0 if losses[0] > 0 else 1.0  # nothing varied: it always loses
