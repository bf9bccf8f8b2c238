"""Whether finalists hold up on seeds that no decision of the search has seen. Pure.

Tested once, Holm-adjusted over everything that is tested; what a finalist scored during the
search is never its proof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean, median
from types import MappingProxyType
from typing import Final

from steelyard.fix.verify.comparison import PairedTest, improvements_of, paired_test
from steelyard.fix.verify.constraints import Constraint, ConstraintVerdict, judge_all
from steelyard.fix.verify.measured import Measured, Objective, spread
from steelyard.stats.multiple import holm

MIN_REPETITIONS: Final = 6
"""Below six pairs no exact test reaches 5% two-sided, and no 95% interval of a median exists."""
MOST_FINALISTS: Final = 3
MAX_SEED: Final = 2**31 - 1


class TooFewRepetitions(ValueError):
    """A confirmation that could confirm nothing."""

    def __init__(self, repetitions: int) -> None:
        super().__init__(
            f"{repetitions} repetitions cannot confirm anything: at least {MIN_REPETITIONS} are "
            "needed (10 by default)"
        )
        self.repetitions = repetitions


class TooManyTests(ValueError):
    """More tests than this many repetitions can confirm, even if every pair improved."""

    def __init__(self, tests: int, repetitions: int, alpha: float) -> None:
        most = most_tests(repetitions, alpha)
        super().__init__(
            f"{tests} tests at {alpha:g} with {repetitions} repetitions: none but {most} could be "
            "confirmed, however large the effect; name fewer finalists or raise the repetitions"
        )


class AlreadyTested(ValueError):
    """A finalist that was tested before: trying until it fits proves nothing."""

    def __init__(self, candidates: Sequence[str]) -> None:
        super().__init__(
            f"{', '.join(candidates)}: tested already; a candidate is tested once, and what it "
            "came to stands"
        )
        self.candidates = tuple(candidates)


@dataclass(frozen=True, slots=True)
class ConfirmationPlan:
    """How finalists are tested."""

    repetitions: int = 10
    alpha: float = 0.05
    min_effect: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """By metric, in its unit: what must be exceeded; 0 where none is named."""

    def __post_init__(self) -> None:
        if self.repetitions < MIN_REPETITIONS:
            raise TooFewRepetitions(self.repetitions)


def most_tests(repetitions: int, alpha: float) -> int:
    """Give how many tests can be adjusted for while a perfect score still confirms.

    The smallest p of n pairs is 2^-n, and Holm multiplies it by the number of tests.
    """
    return int(alpha * 2**repetitions)


def alpha_of(alpha: float, earlier: int) -> float:
    """Give what a run's next confirmation may err: half of what the one before it might.

    So a run that is confirmed again and again errs in less than twice alpha altogether, and one
    that is confirmed once in alpha.

    Args:
        alpha: the spec's.
        earlier: confirmations of this run before.
    """
    return alpha * 0.5**earlier


def check_untested(candidates: Sequence[str], tested: Collection[str]) -> None:
    """Refuse to test a finalist a second time.

    Raises:
        AlreadyTested: some were.
    """
    if again := [candidate for candidate in candidates if candidate in tested]:
        raise AlreadyTested(again)


def held_out_seeds(run: str, repetitions: int, used: Collection[int]) -> tuple[int, ...]:
    """Give seeds that no trial of the search has had, the same each time they are asked for.

    Args:
        run: the run's long id.
        repetitions: how many.
        used: every seed that trials before had, those of earlier confirmations too.
    """
    found: list[int] = []
    taken = set(used)
    number = 0
    while len(found) < repetitions:
        digest = hashlib.sha256(f"{run}\x1fheld-out\x1f{number}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big") & MAX_SEED
        number += 1
        if seed not in taken:
            taken.add(seed)
            found.append(seed)
    return tuple(found)


def claims(
    candidate: Mapping[str, Measured],
    baseline: Mapping[str, Measured],
    objectives: Sequence[Objective],
) -> tuple[str, ...]:
    """Give the metrics whose search median is better than the baseline's: what is to be tested.

    Args:
        candidate: its samples of the search, by metric.
        baseline: the baseline's, by metric.
        objectives: the frozen ones, in order.
    """
    found = []
    for objective in objectives:
        mine, other = candidate.get(objective.metric), baseline.get(objective.metric)
        ours = None if mine is None else spread(mine)
        theirs = None if other is None else spread(other)
        if ours is None or theirs is None:
            continue
        if objective.worth(ours.median) > objective.worth(theirs.median):
            found.append(objective.metric)
    return tuple(found)


def finalists(
    front: Sequence[str], claimed: Mapping[str, Sequence[str]], most: int = MOST_FINALISTS
) -> tuple[str, ...]:
    """Choose who is confirmed where nobody says: frontier members that claim something.

    Those that claim to improve more metrics go first, then the earlier ones.

    Args:
        front: the frontier in the order of creation, baseline or not.
        claimed: by candidate, the metrics it claims to improve (`claims`).
        most: how many at most.
    """
    able = [name for name in front if claimed.get(name)]
    return tuple(sorted(able, key=lambda name: -len(claimed[name]))[:most])


class Standing(StrEnum):
    """What the first line of `select` and `ship` says."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """One claimed improvement on held-out seeds."""

    metric: str
    pairs: int
    mean: float | None
    """Improvement, in the metric's unit; more is better. None where nothing was measured."""
    min_effect: float
    test: PairedTest
    p_adjusted: float | None
    """Holm's, over all claims of all finalists; None where nothing varied, or pairs are missing."""
    is_confirmed: bool
    search_improvement: float | None
    """Of medians, as it looked during the search: the gap to `mean` is what choosing added."""

    @property
    def is_deterministic(self) -> bool:
        """True where every pair gave the same: it holds, without a p."""
        return self.test.is_deterministic


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What came of one finalist."""

    candidate: str
    standing: Standing
    claims: tuple[ClaimResult, ...]
    constraints: tuple[ConstraintVerdict, ...]
    reason: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics whose improvement is confirmed."""
        return tuple(claim.metric for claim in self.claims if claim.is_confirmed)


@dataclass(frozen=True, slots=True)
class Finalist:
    """Who is tested, with what."""

    candidate: str
    claimed: tuple[str, ...]
    held_out: Mapping[str, Measured]
    """By metric, on held-out seeds."""
    searched: Mapping[str, Measured] = field(default_factory=lambda: MappingProxyType({}))
    """By metric, of the search: shown beside, never a proof."""


def confirm(
    tested: Sequence[Finalist],
    baseline: Mapping[str, Measured],
    objectives: Sequence[Objective],
    plan: ConfirmationPlan,
    *,
    constraints: Sequence[Constraint] = (),
    searched_baseline: Mapping[str, Measured] | None = None,
) -> tuple[Confirmed, ...]:
    """Test finalists once on held-out seeds, beside the baseline measured with them.

    Each claim is a one-sided exact sign-flip test of the paired improvements less `min_effect`,
    Holm-adjusted over all claims of all finalists. Where nothing varied there is no p; the claim
    then counts with 2^-pairs, the most that chance gives such a row, so that the error of the
    whole stays within alpha. A finalist is confirmed by one claim that holds, where its
    constraints hold on these seeds too. A claim with fewer pairs than planned does not hold.

    Args:
        tested: the finalists.
        baseline: the original baseline's, by metric, on the same held-out seeds.
        objectives: the frozen ones.
        plan: how often, how surely, how much.
        constraints: the frozen ones.
        searched_baseline: the baseline's, by metric, of the search: for the gap.

    Raises:
        TooManyTests: so many claims that nothing could be confirmed.
        KeyError: a claim's metric is no objective.
    """
    by_metric = {objective.metric: objective for objective in objectives}
    rows = [(one, by_metric[metric]) for one in tested for metric in one.claimed]
    if len(rows) > most_tests(plan.repetitions, plan.alpha):
        raise TooManyTests(len(rows), plan.repetitions, plan.alpha)
    improved = [
        improvements_of(one.held_out[o.metric], baseline[o.metric], o)
        if o.metric in one.held_out and o.metric in baseline
        else ()
        for one, o in rows
    ]
    tests = [
        paired_test(values, min_effect=plan.min_effect.get(o.metric, 0.0))
        for values, (_, o) in zip(improved, rows, strict=True)
    ]
    chances = [
        _chance(test, values, plan.min_effect.get(o.metric, 0.0))
        # Which pairs are missing is nobody's to choose: with some of them nothing is confirmed.
        if len(values) >= plan.repetitions
        else 1.0
        for test, values, (_, o) in zip(tests, improved, rows, strict=True)
    ]
    adjusted = holm(chances)
    least = plan.repetitions
    results: dict[str, list[ClaimResult]] = {one.candidate: [] for one in tested}
    for (one, objective), values, test, p in zip(rows, improved, tests, adjusted, strict=True):
        results[one.candidate].append(
            ClaimResult(
                metric=objective.metric,
                pairs=len(values),
                mean=fmean(values) if values else None,
                min_effect=plan.min_effect.get(objective.metric, 0.0),
                test=test,
                p_adjusted=p if test.better is not None and len(values) >= least else None,
                is_confirmed=p <= plan.alpha,
                search_improvement=_searched(one, objective, searched_baseline),
            )
        )
    return tuple(
        _standing(
            one.candidate,
            tuple(results[one.candidate]),
            judge_all(constraints, one.held_out, baseline) if one.claimed else (),
            plan.repetitions,
        )
        for one in tested
    )


def _chance(test: PairedTest, values: Sequence[float], min_effect: float) -> float:
    """Give what enters Holm's rule: the p, or its bound where nothing varied."""
    if test.better is not None:
        return test.better
    return 0.5 ** len(values) if values and values[0] > min_effect else 1.0


def _searched(
    one: Finalist, objective: Objective, baseline: Mapping[str, Measured] | None
) -> float | None:
    if baseline is None or objective.metric not in baseline:
        return None
    if objective.metric not in one.searched:
        return None
    ours, theirs = one.searched[objective.metric].values, baseline[objective.metric].values
    if not ours or not theirs:
        return None
    return objective.worth(median(ours)) - objective.worth(median(theirs))


def _standing(
    candidate: str,
    found: tuple[ClaimResult, ...],
    verdicts: tuple[ConstraintVerdict, ...],
    planned: int,
) -> Confirmed:
    failed = [str(verdict.constraint) for verdict in verdicts if not verdict.is_kept]
    held = [claim.metric for claim in found if claim.is_confirmed]
    if not found:
        standing, reason = Standing.NOT_TESTED, "it claims no improvement over the baseline"
    elif failed:
        standing = Standing.NOT_CONFIRMED
        reason = f"on held-out seeds it fails {', '.join(failed)}"
    elif held:
        standing = Standing.CONFIRMED
        same = [claim.metric for claim in found if claim.is_confirmed and claim.is_deterministic]
        note = f" (deterministic: {', '.join(same)})" if same else ""
        reason = f"held-out seeds confirm {', '.join(held)}{note}"
    elif (measured := min(claim.pairs for claim in found)) < planned:
        standing = Standing.NOT_CONFIRMED
        reason = f"only {measured} of {planned} held-out pairs were measured"
    else:
        standing = Standing.NOT_CONFIRMED
        reason = "chance alone gives as much on held-out seeds"
    return Confirmed(candidate, standing, found, verdicts, reason)
