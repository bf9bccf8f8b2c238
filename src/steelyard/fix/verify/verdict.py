"""Is head better than base: better, worse, equivalent or inconclusive, metric by metric. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Final

from steelyard.fix.verify.comparison import Comparison, compare, improvements_of, paired_test
from steelyard.fix.verify.confirmation import MIN_REPETITIONS, TooFewRepetitions
from steelyard.fix.verify.measured import Measured, Objective
from steelyard.stats.multiple import holm

if TYPE_CHECKING:
    from numpy.random import Generator

ALPHA: Final = 0.05


class Verdict(StrEnum):
    """What a comparison comes to."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    """The difference lies within the margin, one way and the other."""
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class MetricVerdict:
    """One metric's answer."""

    metric: str
    verdict: Verdict
    comparison: Comparison
    margin: float
    """In the metric's unit."""
    p_adjusted: float | None
    """Two-sided, Holm's over the metrics; None where nothing varied."""
    p_equivalent: float | None
    """The larger of the two one-sided tests against the margin (TOST, Schuirmann 1987); None
    without a margin, and where nothing varied."""


def margin_of(share: float, base: Measured) -> float:
    """Turn a margin that is a share of base's median into the metric's unit."""
    return share * abs(median(base.values)) if base.values else 0.0


def verdicts(
    head: Mapping[str, Measured],
    base: Mapping[str, Measured],
    objectives: Sequence[Objective],
    *,
    margins: Mapping[str, float],
    alpha: float = ALPHA,
    generator: Generator | None = None,
) -> tuple[MetricVerdict, ...]:
    """Judge every metric on the pairs that head and base share.

    `equivalent` where both one-sided exact tests against the margin reject; else `better` or
    `worse` where the two-sided exact test, Holm-adjusted over the metrics, rejects; else
    `inconclusive`. Where nothing varied the difference itself decides, without a p.

    Args:
        head: by metric.
        base: by metric.
        objectives: the frozen ones.
        margins: by metric, in its unit; 0 where none is named.
        alpha: of each answer.
        generator: where the intervals' chance comes from.

    Raises:
        TooFewRepetitions: fewer than six pairs in some metric.
    """
    rows = []
    for objective in objectives:
        mine, other = head.get(objective.metric), base.get(objective.metric)
        found = None
        if mine is not None and other is not None:
            found = compare(mine, other, objective, generator)
        if mine is None or other is None or found is None or found.pairs < MIN_REPETITIONS:
            raise TooFewRepetitions(0 if found is None else found.pairs)
        rows.append((objective, found, improvements_of(mine, other, objective)))
    adjusted = holm(
        [1.0 if found.test.two_sided is None else found.test.two_sided for _, found, _ in rows]
    )
    return tuple(
        _judged(found, values, margins.get(objective.metric, 0.0), p, alpha)
        for (objective, found, values), p in zip(rows, adjusted, strict=True)
    )


def _judged(
    found: Comparison, values: Sequence[float], margin: float, p: float, alpha: float
) -> MetricVerdict:
    if found.test.two_sided is None:
        answer = _of_constant(values[0], margin)
        return MetricVerdict(found.metric, answer, found, margin, None, None)
    tost = _equivalence(values, margin)
    if tost is not None and tost <= alpha:
        answer = Verdict.EQUIVALENT
    elif p <= alpha and found.mean != 0:
        answer = Verdict.BETTER if found.mean > 0 else Verdict.WORSE
    else:
        answer = Verdict.INCONCLUSIVE
    return MetricVerdict(found.metric, answer, found, margin, p, tost)


def _of_constant(difference: float, margin: float) -> Verdict:
    if abs(difference) <= margin:
        return Verdict.EQUIVALENT
    return Verdict.BETTER if difference > 0 else Verdict.WORSE


def _equivalence(values: Sequence[float], margin: float) -> float | None:
    if margin <= 0:
        return None
    above = paired_test([value + margin for value in values]).better
    below = paired_test([margin - value for value in values]).better
    return None if above is None or below is None else max(above, below)


def overall(found: Sequence[MetricVerdict]) -> Verdict:
    """Sum several metrics up: one that is worse decides, then one that is not known."""
    answers = {one.verdict for one in found}
    for verdict in (Verdict.WORSE, Verdict.INCONCLUSIVE, Verdict.BETTER):
        if verdict in answers:
            return verdict
    return Verdict.EQUIVALENT if answers else Verdict.INCONCLUSIVE
