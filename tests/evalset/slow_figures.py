"""A set's figures computed once more, slowly: exact fractions, plain loops, nothing of ours used.

What a cell holds is `Outcome | bool` by case; `None` is no record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb, sqrt

from scipy.stats import norm, t  # type: ignore[import-untyped]

Entry = bool | str | None
"""True and False as scored, `failed` counts as False, `fatal` and None do not count."""


@dataclass(frozen=True)
class Estimate:
    value: Fraction
    error: float | None
    interval: tuple[float, float] | None
    tasks: int
    clusters: int


def counted(entries: Sequence[Entry]) -> list[int]:
    return [
        1 if entry is True else 0 for entry in entries if entry is not None and entry != "fatal"
    ]


def mean_figure(entries: Sequence[Entry]) -> Fraction | None:
    values = counted(entries)
    return Fraction(sum(values), len(values)) if values else None


def pass_figure(entries: Sequence[Entry]) -> Fraction | None:
    values, k = counted(entries), len(entries)
    if len(values) == k:
        return 1 - Fraction(comb(k - sum(values), k), comb(k, k))
    return None


def always_figure(entries: Sequence[Entry]) -> Fraction | None:
    values, k = counted(entries), len(entries)
    if len(values) == k:
        return Fraction(comb(sum(values), k), comb(k, k))
    return None


def estimate(
    figures: Sequence[tuple[str, Fraction | None]], *, is_one_attempt: bool
) -> Estimate | None:
    """The mean over (cluster, figure), CR1, Wilson or Student's t cut at 0 and 1."""
    known = [(cluster, value) for cluster, value in figures if value is not None]
    if not known:
        return None
    n = len(known)
    mean = sum((value for _, value in known), Fraction(0)) / n
    clusters = sorted({cluster for cluster, _ in known})
    squares = Fraction(0)
    for name in clusters:
        inner = sum((value - mean for cluster, value in known if cluster == name), Fraction(0))
        squares += inner * inner
    g = len(clusters)
    error = sqrt(squares * g / (g - 1)) / n if g > 1 and squares else None
    is_flat = len({value for _, value in known}) == 1
    is_binary = g == n and all(value in (0, 1) for _, value in known)
    if is_binary and (is_one_attempt or (is_flat and n > 1)):
        return Estimate(mean, error, wilson_by_search(mean, n), n, g)
    if error is None:
        return Estimate(mean, None, None, n, g)
    half = float(t.ppf(0.975, g - 1)) * error
    interval = max(0.0, float(mean) - half), min(1.0, float(mean) + half)
    return Estimate(mean, error, interval, n, g)


def wilson_by_search(p: Fraction, n: int) -> tuple[float, float]:
    """The proportions that a score test does not refuse, by bisection."""
    z = float(norm.ppf(0.975))

    def refuses(at: float) -> bool:
        return abs(float(p) - at) > z * sqrt(at * (1 - at) / n)

    def edge(inside: float, outside: float) -> float:
        for _ in range(200):
            middle = (inside + outside) / 2
            if refuses(middle):
                outside = middle
            else:
                inside = middle
        return inside

    centre = (float(p) + z * z / (2 * n)) / (1 + z * z / n)
    low = 0.0 if p == 0 else edge(centre, 0.0)
    high = 1.0 if p == 1 else edge(centre, 1.0)
    return low, high


def filled(entries: Sequence[Entry], value: int) -> Fraction:
    """A case's mean with a value put in for every attempt that does not count."""
    values = counted(entries)
    return Fraction(sum(values) + value * (len(entries) - len(values)), len(entries))


def paired(
    first: Mapping[str, Sequence[Entry]], second: Mapping[str, Sequence[Entry]]
) -> dict[str, Fraction]:
    """A case's mean difference over the repeats that both have; repeats share a place."""
    found = {}
    for case, entries in second.items():
        both = [
            counted([now])[0] - counted([was])[0]
            for was, now in zip(first[case], entries, strict=True)
            if counted([was]) and counted([now])
        ]
        if both:
            found[case] = Fraction(sum(both), len(both))
    return found


def sign_flip_p(sums: Sequence[Fraction]) -> Fraction | None:
    """The share of all patterns of signs whose sum is as far from 0, two-sided."""
    units = [value for value in sums if value]
    if not units:
        return None
    seen = abs(sum(units, Fraction(0)))
    extreme = sum(
        abs(sum((s * v for s, v in zip(signs, units, strict=True)), Fraction(0))) >= seen
        for signs in product((1, -1), repeat=len(units))
    )
    return Fraction(extreme, 2 ** len(units))


def holm_of(p_values: Sequence[Fraction]) -> list[Fraction]:
    """Each p times how many are as large or larger in its place, never below a smaller one's."""
    ordered = sorted(range(len(p_values)), key=lambda index: p_values[index])
    found = [Fraction(0)] * len(p_values)
    for place, index in enumerate(ordered):
        candidates = [
            min(Fraction(1), (len(ordered) - j) * p_values[ordered[j]]) for j in range(place + 1)
        ]
        found[index] = max(candidates)
    return found


def quantile_of(values: Sequence[float], q: Fraction) -> float:
    """By linear interpolation between order statistics, type 7."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + float(at - below) * (ordered[above] - ordered[below])
