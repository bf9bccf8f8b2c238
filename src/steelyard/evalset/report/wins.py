"""Which agent beats which, on the same cases: wins, intervals, exact tests, Holm's rule. Pure.

Pairs are made by (pack, model, repeat, case): repeats share a seed. A case is the unit: the
differences of its repeats are averaged first, over those in which both agents have a figure; so
five repeats are no five cases. One case under two models is two pairs in one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from steelyard.evalset.report.cell_tally import CellTally
from steelyard.evalset.report.grouping import Combination, Part, shared_metric, tally_of
from steelyard.results.comparison import (
    Difference,
    ExactTest,
    difference_over,
    exact_test,
)
from steelyard.results.task_figures import task_figures
from steelyard.stats.multiple import holm
from steelyard.stats.paired import FEWER_RESAMPLES, RESAMPLES, Tally, wins_ties_losses

_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Pairs:
    """Paired differences, in the direction that is better, and what each belongs to."""

    differences: tuple[float, ...]
    clusters: tuple[str, ...]
    is_one_binary_attempt: bool
    """Whether each is one yes or no less another."""
    bounds: tuple[float, float] | None
    """Of the metric; None where it has none, or packs differ in it."""
    has_scale: bool
    """False where the packs' metrics cannot be put together: then only who wins is known."""

    @property
    def tally(self) -> Tally:
        """In how many the second is better, as good, worse."""
        return wins_ties_losses(self.differences)

    def difference(self) -> Difference | None:
        """Give the mean; None where there are no pairs, or no scale in common."""
        if not self.differences or not self.has_scale:
            return None
        return difference_over(self.differences, self.clusters, self.bounds)

    def test(self, family: int = 1) -> ExactTest | None:
        """Test against chance, as one of so many tests; None where there are no pairs."""
        if not self.differences:
            return None
        values = self.differences
        if not self.has_scale:  # who wins can be tested still
            values = tuple(float((d > 0) - (d < 0)) for d in self.rounded)
        return exact_test(
            values,
            self.clusters,
            is_one_binary_attempt=self.is_one_binary_attempt,
            resamples=max(FEWER_RESAMPLES, RESAMPLES // family),
        )

    @property
    def rounded(self) -> list[float]:
        """Without the noise of sums."""
        return [round(value, _DIGITS) for value in self.differences]


@dataclass(frozen=True, slots=True)
class AgentPair:
    """One agent against another."""

    first: str
    second: str
    tally: Tally
    """Of the second."""
    difference: Difference | None
    """The second less the first, in the better direction."""
    test: ExactTest | None
    p_holm: float | None = None
    """Adjusted for all pairs of agents; None where there is one, or no p."""


def win_matrix(found: Sequence[Combination]) -> list[AgentPair]:
    """Compare every two agents, in the order of the manifest."""
    by_agent: dict[str, dict[tuple[str, str | None], Part]] = {}
    for one in found:
        by_agent.setdefault(one.agent, {})[one.pack_ref, one.model_ref] = one.part
    figures = {id(part): cell_figures(part) for each in by_agent.values() for part in each.values()}
    result = []
    family = max(1, len(by_agent) * (len(by_agent) - 1) // 2)
    for first, second in combinations(by_agent, 2):
        ours, theirs = by_agent[first], by_agent[second]
        shared = [(ours[key], theirs[key]) for key in ours if key in theirs]
        pairs = paired([(a, b, figures[id(a)], figures[id(b)]) for a, b in shared])
        result.append(AgentPair(first, second, pairs.tally, pairs.difference(), pairs.test(family)))
    return adjusted_pairs(result)


def adjusted_pairs(found: Sequence[AgentPair]) -> list[AgentPair]:
    """Adjust the p of several pairs by Holm's rule."""
    tests = [
        (n, each.test.p) for n, each in enumerate(found) if each.test and each.test.p is not None
    ]
    result = list(found)
    if len(found) > 1:
        for (number, _), p in zip(tests, holm([p for _, p in tests]), strict=True):
            result[number] = replace(found[number], p_holm=p)
    return result


Figures = Mapping[int, Sequence["float | None"]]
"""By repeat, then by the case's number in its pack: what a cell says of it."""


def cell_figures(part: Part) -> Figures:
    """Give what each cell of a combination says of each case, over what was counted."""
    return {cell.cell.cell.repeat: _figures(cell) for cell in part.cells if cell.run is not None}


def _figures(cell: CellTally) -> Sequence[float | None]:
    size = len(cell.columns.seen)
    if cell.k == 1 and not any(cell.columns.skipped):  # mostly: the sum of one is the figure
        columns = zip(cell.columns.counted, cell.columns.totals, strict=True)
        return [total if n == 1 else None for n, total in columns]
    tally = tally_of([Part.of([cell])])
    if tally is None:
        return [None] * size
    found: list[float | None] = [None] * size
    kept = [number for number, seen in enumerate(cell.columns.seen) if seen]
    for number, figure in zip(kept, task_figures(tally), strict=False):
        found[number] = figure
    return found


Side = tuple[Part, Part, Figures, Figures]
"""Two combinations of a pack, and what the cells of each say."""


def paired(shared: Sequence[Side]) -> Pairs:
    """Pair two sides, combination by combination; both sides number cases alike.

    Args:
        shared: the first and the second side of each, and the figures of both.
    """
    differences: list[float] = []
    clusters: list[str] = []
    for first, second, ours, theirs in shared:
        spec = second.spec
        if spec is None or first.spec is None:
            continue
        sign = 1.0 if spec.higher_is_better else -1.0
        repeats = [repeat for repeat in ours if repeat in theirs]
        names = second.cases.names
        for number, mean in _means(ours, theirs, repeats):
            differences.append(sign * mean)
            clusters.append(names[number])
    specs = [part.spec for each in shared for part in each[:2] if part.spec is not None]
    metric = shared_metric([part for each in shared for part in each[:2]])
    is_once = all(spec.kind == "binary" for spec in specs) and all(
        part.k == 1 for each in shared for part in each[:2]
    )
    return Pairs(
        tuple(differences),
        tuple(clusters),
        is_one_binary_attempt=is_once,
        bounds=None if metric is None else metric.bounds,
        has_scale=metric is not None,
    )


def joined(names: Sequence[str], most: int = 5) -> str:
    """Name some of many: `12 (a, b, c, d, e, …)`."""
    return f"{len(names)} ({', '.join(names[:most])}{', …' if len(names) > most else ''})"


def _means(ours: Figures, theirs: Figures, repeats: Sequence[int]) -> Iterator[tuple[int, float]]:
    """Give each case's mean difference over the repeats in which both have a figure."""
    import numpy as np

    if not repeats:
        return
    # None becomes not-a-number here, and so does what it is taken from.
    sides = [np.array([of[r] for r in repeats], dtype=float) for of in (ours, theirs)]
    less = sides[1] - sides[0]
    known = ~np.isnan(less)
    counts = known.sum(axis=0)
    sums = np.where(known, less, 0.0).sum(axis=0)
    for number in np.flatnonzero(counts).tolist():
        yield number, float(sums[number] / counts[number])
