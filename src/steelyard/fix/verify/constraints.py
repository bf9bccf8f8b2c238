"""Whether a candidate keeps to the hard constraints: met, certified, or failed. Pure.

Bounds that are relative are so to the original baseline, whatever the candidate's parent is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final, Literal

from steelyard.fix.verify.measured import Measured, paired, spread
from steelyard.stats.bounds import mean_bound, ratio_bound

Reference = Literal["absolute", "baseline_delta", "baseline_ratio"]
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Constraint:
    """What every candidate must keep to."""

    metric: str
    op: Literal["gte", "lte"]
    bound: float
    reference: Reference = "absolute"

    def is_kept_by(self, value: float) -> bool:
        """True where a value, in the reference's terms, is on the right side of the bound."""
        return value >= self.bound if self.op == "gte" else value <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.op == "gte" else "≤"
        against = {
            "absolute": f"{self.bound:g}",
            "baseline_delta": f"baseline {self.bound:+g}",
            "baseline_ratio": f"{self.bound:g} × baseline",
        }
        return f"{self.metric} {sign} {against[self.reference]}"


class Answer(StrEnum):
    """What is known of a constraint."""

    MET = "met"
    """The median keeps to it."""
    CERTIFIED = "certified"
    """So does the one-sided 95% bound."""
    FAILED = "failed"
    """The median does not, or it was not measured."""


@dataclass(frozen=True, slots=True)
class ConstraintVerdict:
    """One constraint's answer for one candidate."""

    constraint: Constraint
    answer: Answer
    value: float | None
    """The median, its difference from the baseline's, or its ratio to it."""
    sure_bound: float | None
    """The one-sided 95% bound on the side that matters; None where the data give none."""
    is_deterministic: bool
    """True where nothing varied: there is no bound, and none is made up."""
    reason: str | None = None
    """Why it failed, where the value alone does not say."""

    @property
    def is_kept(self) -> bool:
        """True where the seed's rule is satisfied: `met` suffices."""
        return self.answer is not Answer.FAILED


class RatioOfNothing(ValueError):
    """A ratio constraint on a baseline that is not above 0 means nothing."""

    def __init__(self, constraint: Constraint, baseline_median: float) -> None:
        super().__init__(
            f"{constraint}: the baseline's median is {baseline_median:g}, so a ratio to it "
            "means nothing; use baseline_delta or absolute in a new run"
        )
        self.constraint = constraint
        self.baseline_median = baseline_median


def check_ratios(
    constraints: Sequence[Constraint], baseline: Mapping[str, Measured]
) -> list[RatioOfNothing]:
    """Give the ratio constraints that the baseline, once measured, makes meaningless.

    Args:
        constraints: the frozen ones.
        baseline: by metric.
    """
    found = []
    for constraint in constraints:
        if constraint.reference != "baseline_ratio" or constraint.metric not in baseline:
            continue
        seen = spread(baseline[constraint.metric])
        if seen is not None and seen.median <= 0:
            found.append(RatioOfNothing(constraint, seen.median))
    return found


def judge(
    constraint: Constraint, candidate: Measured | None, baseline: Measured | None
) -> ConstraintVerdict:
    """Judge one constraint.

    `met` compares medians. `certified` besides needs Student's one-sided 95% bound: of the values;
    of the differences from the baseline, seed by seed; or of the geometric mean of the ratios.

    Args:
        constraint: the frozen one.
        candidate: its samples of the constraint's metric.
        baseline: the original baseline's; not needed for `absolute`.

    Raises:
        RatioOfNothing: a ratio to a baseline that is not above 0.
    """
    seen = None if candidate is None else spread(candidate)
    if candidate is None or seen is None:
        return _failed(constraint, "it was not measured")
    if constraint.reference == "absolute":
        value, terms = seen.median, candidate.values
    else:
        anchor = None if baseline is None else spread(baseline)
        if baseline is None or anchor is None:
            return _failed(constraint, "the baseline was not measured")
        pairs = paired(candidate, baseline)
        if constraint.reference == "baseline_delta":
            value = seen.median - anchor.median
            terms = tuple(a - b for a, b in zip(pairs.ours, pairs.theirs, strict=True))
        else:
            if anchor.median <= 0:
                raise RatioOfNothing(constraint, anchor.median)
            value = seen.median / anchor.median
            terms = _ratios(pairs.ours, pairs.theirs)
    bound = _sure_bound(constraint, terms)
    kept = constraint.is_kept_by(value)
    certain = kept and bound is not None and constraint.is_kept_by(bound)
    return ConstraintVerdict(
        constraint,
        Answer.CERTIFIED if certain else Answer.MET if kept else Answer.FAILED,
        value,
        bound,
        is_deterministic=len(terms) > 1 and min(terms) == max(terms),
    )


def _ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Give ratios seed by seed; none where one of them means nothing."""
    if any(value <= 0 for value in theirs):
        return ()
    return tuple(a / b for a, b in zip(ours, theirs, strict=True))


def _sure_bound(constraint: Constraint, terms: Sequence[float]) -> float | None:
    upper = constraint.op == "lte"
    if constraint.reference == "baseline_ratio":
        return ratio_bound(terms, upper=upper, level=LEVEL)
    return mean_bound(terms, upper=upper, level=LEVEL)


def _failed(constraint: Constraint, reason: str) -> ConstraintVerdict:
    return ConstraintVerdict(constraint, Answer.FAILED, None, None, False, reason)


def judge_all(
    constraints: Sequence[Constraint],
    candidate: Mapping[str, Measured],
    baseline: Mapping[str, Measured],
) -> tuple[ConstraintVerdict, ...]:
    """Judge every constraint of one candidate, in their order.

    Args:
        constraints: the frozen ones.
        candidate: by metric.
        baseline: the original baseline's, by metric.

    Raises:
        RatioOfNothing: a ratio to a baseline that is not above 0.
    """
    return tuple(
        judge(constraint, candidate.get(constraint.metric), baseline.get(constraint.metric))
        for constraint in constraints
    )


def is_certain_to_fail(
    constraint: Constraint,
    candidate: Measured,
    baseline: Measured | None,
    repetitions: int,
) -> bool:
    """True where the final median fails, whatever the repetitions to come will give.

    No statistics: more than half of all planned values are on the wrong side already.

    Args:
        constraint: the frozen one.
        candidate: what was measured so far.
        baseline: the original baseline's, complete; not needed for `absolute`.
        repetitions: planned in all.
    """
    if constraint.reference == "absolute":
        terms = candidate.values
    elif baseline is None or not baseline.samples:
        return False
    else:
        anchor = median(baseline.values)
        if constraint.reference == "baseline_delta":
            terms = tuple(value - anchor for value in candidate.values)
        elif anchor > 0:
            terms = tuple(value / anchor for value in candidate.values)
        else:
            return False
    return 2 * sum(not constraint.is_kept_by(term) for term in terms) > repetitions
