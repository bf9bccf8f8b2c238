"""Is B better than A, where both did the same tasks: differences, intervals, exact tests.

Pure. SciPy is imported where it is used: it is slow to start. What the data cannot say is None,
never a width or a p of 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import fsum, isfinite, log, prod, sqrt
from typing import TYPE_CHECKING, Any, Final

from steelyard.stats.clustered import clustered_error
from steelyard.stats.intervals import Interval, t_interval

if TYPE_CHECKING:
    from numpy.random import Generator

MAX_EXACT_OUTCOMES: Final = 1 << 20
"""Sign patterns that are counted one by one; 20 different differences have as many."""
MAX_STEPS: Final = 64
"""Differences that are whole multiples of the largest's n-th part, n up to this, have few sums."""
MAX_SUMS: Final = 2_000_000
_MAX_DIRECT: Final = 10_000_000
"""Products of a convolution, above which it is made by Fourier transforms."""
_MAX_COMB: Final = 1_000
"""Coins of which the number of ways is a number that floats can hold."""
RESAMPLES: Final = 99_999
MANY_SIZES: Final = 500
FEWER_RESAMPLES: Final = 9_999
"""Where there are more than `MANY_SIZES` different differences: each costs a draw."""
_DIGITS: Final = 12
"""Means of attempts that are equal may differ in their last bit."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """A mean of differences; a value without an interval says in `is_degenerate` why."""

    mean: float
    pairs: int
    clusters: int
    standard_error: float | None
    """Clustered (CR1; with one pair a cluster the ordinary one); None below two clusters and
    where all differences are the same."""
    interval: Interval | None
    """Student's t with clusters - 1 degrees of freedom."""
    is_degenerate: bool
    """True where all differences are the same: how much they vary is then not known."""


def paired_difference(
    differences: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> PairedDifference | None:
    """Give the mean of paired differences with its clustered error (Miller 2024, sec. 4.2).

    Args:
        differences: (pairs,), second less first.
        clusters: (pairs,), which cluster each pair belongs to; each its own by default.
        level: coverage of the interval, in (0, 1).

    Returns:
        None where there are no pairs.

    Raises:
        ValueError: the lengths differ, the level is out of range, or a value is not finite.
    """
    _check_finite(differences)
    found = clustered_error(differences, range(len(differences)) if clusters is None else clusters)
    if found is None:
        return None
    is_degenerate = min(differences) == max(differences)
    error = None if is_degenerate or not found.cr1 else found.cr1
    return PairedDifference(
        found.mean,
        found.values,
        found.clusters,
        error,
        t_interval(found.mean, error, found.clusters - 1, level),
        is_degenerate,
    )


@dataclass(frozen=True, slots=True)
class SignFlip:
    """How often chance alone, flipping signs, gives a sum as far from 0 as the one seen."""

    two_sided: float
    greater: float
    """One-sided: a sum as large or larger."""
    units: int
    """What is flipped: pairs, or whole clusters of them; those that are 0 are not counted."""
    resamples: int | None
    """None where every pattern of signs was counted."""
    standard_error: float | None
    """Of `two_sided` as a Monte Carlo estimate, sqrt(p (1 - p) / resamples); None where exact."""
    less: float
    """One-sided the other way: a sum as small or smaller."""

    @property
    def is_exact(self) -> bool:
        """True where no chance went into the p."""
        return self.resamples is None


def sign_flip(
    differences: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    generator: Generator | None = None,
    resamples: int = RESAMPLES,
) -> SignFlip | None:
    """Test whether differences are symmetric around 0, by flipping signs (Fisher 1935, sec. 21).

    p is the share of all 2^n patterns of signs whose sum is at least as extreme. Pairs of one
    cluster keep their signs together: what is flipped is the cluster's sum. Differences of one
    size are counted together (binomially), and multiples of one step, as means of k yes or no
    are, by their sums: so nearly all that is no plain number stays exact. Other differences are
    counted up to 2^20 outcomes; above, patterns are drawn, and p = (1 + extreme) / (1 + drawn).

    Args:
        differences: (pairs,), second less first.
        clusters: (pairs,); each pair its own by default.
        generator: where chance comes from; `default_rng(0)` by default.
        resamples: how many patterns are drawn where they are drawn, at most.

    Returns:
        None where every difference is 0, or there are none: nothing can be flipped.

    Raises:
        ValueError: the lengths differ, or a value is not finite.
    """
    _check_finite(differences)
    sums = _cluster_sums(differences, clusters)
    scale = max((abs(value) for value in sums), default=0.0)
    if scale == 0:
        return None
    # In units of the largest, so that rounding knows the numbers' size.
    units = [found for value in sums if (found := round(value / scale, _DIGITS))]
    sizes = Counter(abs(value) for value in units)
    seen = fsum(units)
    slack = 1e-9 * fsum(abs(value) for value in units)
    if prod(count + 1 for count in sizes.values()) <= MAX_EXACT_OUTCOMES:
        both, greater, less = _exact(sizes, seen, slack)
        return SignFlip(both, greater, len(units), None, None, less)
    counted = _on_steps(sizes, seen, slack)
    if counted is not None:
        both, greater, less = counted
        return SignFlip(both, greater, len(units), None, None, less)
    import numpy as np

    drawn = resamples if len(sizes) <= MANY_SIZES else min(resamples, FEWER_RESAMPLES)
    found = _drawn_sums(sizes, drawn, generator or np.random.default_rng(0))
    both = (1 + int((np.abs(found) >= abs(seen) - slack).sum())) / (1 + drawn)
    greater = (1 + int((found >= seen - slack).sum())) / (1 + drawn)
    less = (1 + int((found <= seen + slack).sum())) / (1 + drawn)
    return SignFlip(both, greater, len(units), drawn, sqrt(both * (1 - both) / drawn), less)


def student_greater(differences: Sequence[float]) -> float | None:
    """Test one-sided whether a mean is above 0, by Student's t (1908).

    It takes differences to be about normal, and in return finds large ones in few pairs, where no
    count of signs can: fit to give something up early, not to prove anything.

    Args:
        differences: (pairs,), second less first.

    Returns:
        p; None below two pairs and where all are the same.

    Raises:
        ValueError: a value is not finite.
    """
    found = paired_difference(differences)
    if found is None or found.standard_error is None:
        return None
    from scipy.special import stdtr  # type: ignore[import-untyped]

    return float(stdtr(found.pairs - 1, -found.mean / found.standard_error))


def mcnemar(only_first: int, only_second: int) -> float | None:
    """Exact two-sided p of McNemar's test: a binomial test of the pairs that differ.

    2 P(X <= min(b, c)), X ~ Binomial(b + c, 1/2), at most 1 (McNemar 1947).

    Args:
        only_first: b, pairs in which the first alone succeeded.
        only_second: c, pairs in which the second alone did.

    Returns:
        p; None where no pair differs.

    Raises:
        ValueError: a count is negative.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"counts of pairs are {only_first} and {only_second}")
    if only_first + only_second == 0:
        return None
    # Not SciPy's `binomtest`: its module takes half a second to import.
    from scipy.special import bdtr

    lesser = min(only_first, only_second)
    return min(1.0, 2 * float(bdtr(lesser, only_first + only_second, 0.5)))


@dataclass(frozen=True, slots=True)
class Tally:
    """In how many pairs the second is better, as good, worse."""

    wins: int
    ties: int
    losses: int


def wins_ties_losses(differences: Sequence[float], *, higher_is_better: bool = True) -> Tally:
    """Count the pairs in which the second is better, as good (to 12 digits), worse."""
    signs = [round(value, _DIGITS) * (1 if higher_is_better else -1) for value in differences]
    wins = sum(value > 0 for value in signs)
    losses = sum(value < 0 for value in signs)
    return Tally(wins, len(signs) - wins - losses, losses)


def _check_finite(values: Sequence[float]) -> None:
    if not all(map(isfinite, values)):
        raise ValueError("a difference is not a finite number")


def _cluster_sums(
    differences: Sequence[float], clusters: Sequence[Hashable] | None
) -> Sequence[float]:
    if clusters is None:
        return differences
    groups: dict[Hashable, list[float]] = {}
    for difference, cluster in zip(differences, clusters, strict=True):
        groups.setdefault(cluster, []).append(difference)
    return [fsum(group) for group in groups.values()]


_Ps = tuple[float, float, float]
"""Two-sided, greater, less."""


def _exact(sizes: Counter[float], seen: float, slack: float) -> _Ps:
    """Give the p-values from the whole distribution of the sum."""
    import numpy as np

    sums, weights = np.zeros(1), np.ones(1)
    for size, count in sizes.items():
        positive = np.arange(count + 1)
        sums = np.add.outer(sums, size * (2 * positive - count)).ravel()
        weights = np.multiply.outer(weights, _binomial(count)).ravel()
    both = float(weights[np.abs(sums) >= abs(seen) - slack].sum())
    greater = float(weights[sums >= seen - slack].sum())
    less = float(weights[sums <= seen + slack].sum())
    return min(both, 1.0), min(greater, 1.0), min(less, 1.0)


def _binomial(count: int) -> Any:
    """Give the chances of 0, 1, … heads in `count` throws of a coin."""
    import numpy as np

    if count == 1:  # nearly always: differences that are plain numbers are all of another size
        return np.array([0.5, 0.5])
    from scipy.special import comb, gammaln

    heads = np.arange(count + 1)
    if count <= _MAX_COMB:
        return comb(count, heads) * 0.5**count
    logs = gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1)
    return np.exp(logs - count * log(2))


def _convolved(first: Any, second: Any) -> Any:
    """Convolve by Fourier transforms."""
    import numpy as np

    size = len(first) + len(second) - 1
    padded = 1 << (size - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(first, padded) * np.fft.rfft(second, padded), padded)[:size]


def _on_steps(sizes: Counter[float], seen: float, slack: float) -> _Ps | None:
    """Give the p-values where all sizes are multiples of one step; None where they are not.

    The number of steps that are positive is a sum of independent binomials, each times its size.
    """
    steps = _steps(sizes)
    if steps is None:
        return None
    import numpy as np

    weights = np.ones(1)
    for count, multiple in zip(sizes.values(), steps, strict=True):
        each = np.zeros(multiple * count + 1)
        each[::multiple] = _binomial(count)
        is_small = len(each) * len(weights) <= _MAX_DIRECT
        weights = np.convolve(weights, each) if is_small else _convolved(weights, each)
    weights = np.clip(weights, 0.0, None)  # what transforms leave of 0
    step = max(sizes) / max(steps)
    sums = step * (2 * np.arange(len(weights)) - (len(weights) - 1))
    both = float(weights[np.abs(sums) >= abs(seen) - slack].sum())
    greater = float(weights[sums >= seen - slack].sum())
    less = float(weights[sums <= seen + slack].sum())
    least = 2.0 ** -min(sum(sizes.values()), 1000)  # of one pattern
    return (
        min(max(both, least), 1.0),
        min(max(greater, least), 1.0),
        min(max(less, least), 1.0),
    )


def _steps(sizes: Counter[float]) -> list[int] | None:
    """Give each size as a multiple of one step, the largest of them at most `MAX_STEPS`."""
    for most in range(1, MAX_STEPS + 1):
        multiples = [size * most for size in sizes]
        if all(abs(each - round(each)) < 1e-9 for each in multiples):
            found = [round(each) for each in multiples]
            total = sum(m * count for m, count in zip(found, sizes.values(), strict=True))
            return found if total <= MAX_SUMS else None
    return None


def _drawn_sums(sizes: Counter[float], drawn: int, generator: Generator) -> Any:
    import numpy as np

    sums = np.zeros(drawn)
    for size, count in sizes.items():
        if count == 1:  # nearly always, and there may be thousands: never as 64 bits
            signs = 2 * generator.integers(0, 2, size=drawn, dtype=np.int8) - 1
            sums += np.multiply(signs, size, dtype=np.float64)
        else:
            positive = generator.binomial(count, 0.5, size=drawn)
            sums += size * (2 * positive - count)
    return sums
