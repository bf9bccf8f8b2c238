"""One candidate against the baseline, seed by seed: effect, interval, exact test. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Final, Literal

from steelyard.fix.verify.measured import Measured, Objective, paired
from steelyard.stats.intervals import MIN_BOOTSTRAP_VALUES, Interval, bca_bootstrap
from steelyard.stats.paired import Tally, paired_difference, sign_flip, wins_ties_losses

if TYPE_CHECKING:
    from numpy.random import Generator

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class PairedTest:
    """How often chance alone gives as much, flipping signs; no p where nothing varied."""

    better: float | None
    """One-sided: an improvement as large or larger."""
    worse: float | None
    """One-sided: a loss as large or larger."""
    two_sided: float | None
    is_deterministic: bool
    """True where every pair gave the same difference, of at least two."""


def paired_test(improvements: Sequence[float], *, min_effect: float = 0.0) -> PairedTest:
    """Test improvements by sign flips, exact up to 20 pairs (`stats.paired.sign_flip`).

    Args:
        improvements: (pairs,), more is better.
        min_effect: what must be exceeded, in the same unit; it is taken off each pair.
    """
    shifted = [value - min_effect for value in improvements]
    if len(shifted) > 1 and min(shifted) == max(shifted):
        return PairedTest(None, None, None, is_deterministic=True)
    found = sign_flip(shifted)
    if found is None:
        return PairedTest(None, None, None, is_deterministic=False)
    return PairedTest(found.greater, found.less, found.two_sided, is_deterministic=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the pairs of one metric say; improvements are positive whatever its direction."""

    candidate: str
    metric: str
    pairs: int
    unpaired: int
    """Samples without a counterpart, which say nothing here."""
    mean: float
    median: float
    interval: Interval | None
    """Of the mean, 95%; None below two pairs, and where nothing varied."""
    interval_method: Literal["bca", "t"] | None
    """BCa from 8 pairs; Student's t below, where a bootstrap promises too much."""
    tally: Tally
    test: PairedTest


def improvements_of(
    candidate: Measured, baseline: Measured, objective: Objective
) -> tuple[float, ...]:
    """Give the improvements over the baseline, seed by seed; more is better."""
    pairs = paired(candidate, baseline)
    return tuple(
        objective.worth(a) - objective.worth(b)
        for a, b in zip(pairs.ours, pairs.theirs, strict=True)
    )


def compare(
    candidate: Measured,
    baseline: Measured,
    objective: Objective,
    generator: Generator | None = None,
) -> Comparison | None:
    """Compare a candidate with the baseline on the seeds they share.

    Args:
        candidate: its samples.
        baseline: the baseline's.
        objective: which way is better.
        generator: where the bootstrap's chance comes from; `default_rng(0)` by default.

    Returns:
        None where they share no seed.
    """
    improvements = improvements_of(candidate, baseline, objective)
    if not improvements:
        return None
    interval, method = interval_of(improvements, generator)
    return Comparison(
        candidate=candidate.candidate,
        metric=objective.metric,
        pairs=len(improvements),
        unpaired=paired(candidate, baseline).unpaired,
        mean=fmean(improvements),
        median=median(improvements),
        interval=interval,
        interval_method=method,
        tally=wins_ties_losses(improvements),
        test=paired_test(improvements),
    )


def interval_of(
    improvements: Sequence[float], generator: Generator | None = None, level: float = LEVEL
) -> tuple[Interval | None, Literal["bca", "t"] | None]:
    """Give an interval of the mean improvement, and how it was made.

    Args:
        improvements: (pairs,).
        generator: where the bootstrap's chance comes from; `default_rng(0)` by default.
        level: coverage, in (0, 1).
    """
    if len(improvements) < 2 or min(improvements) == max(improvements):
        return None, None
    if len(improvements) < MIN_BOOTSTRAP_VALUES:
        found = paired_difference(improvements, level=level)
        return (None, None) if found is None else (found.interval, "t")
    import numpy as np

    chance = generator or np.random.default_rng(0)
    return bca_bootstrap(improvements, np.mean, chance, level=level), "bca"
