"""Two or more runs of the same tasks, compared task by task. Pure but for reading them.

Every difference is the later run less the base, and stands beside its interval, or says why it has
none. Exact tests give the p; several comparisons are adjusted by Holm's rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any, Final

from steelyard.results.comparable import (
    Common,
    NotComparable,
    Question,
    check_distinct,
    common_tasks,
    question,
)
from steelyard.results.scores import LEVEL, estimate_over_tasks
from steelyard.results.task_table import ANY, Figure, RunTable, read_table
from steelyard.stats.effect import detectable_in_errors
from steelyard.stats.multiple import holm
from steelyard.stats.paired import (
    RESAMPLES,
    Tally,
    mcnemar,
    paired_difference,
    sign_flip,
    wins_ties_losses,
)

_DIGITS: Final = 12
_NOISE: Final = 1e-11
"""Of the largest difference's size: what rounding to so many digits leaves of an error of 0."""

ONE_TASK: Final = "n too small for an interval"
ALL_SAME: Final = "no interval: every task has the same difference"
NO_SPREAD: Final = "no interval: the clusters' differences cancel out"
NO_DIFFERENCE: Final = "no p: no task differs"


@dataclass(frozen=True, slots=True)
class Pair:
    """One task in both runs."""

    task_id: str
    first: float
    second: float
    category: str | None
    cluster: str | int
    """The benchmark's cluster, or the pair's number."""

    @property
    def difference(self) -> float:
        """The second run's figure less the first's."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean of paired differences and how sure it is."""

    value: float
    standard_error: float | None
    interval: tuple[float, float] | None
    """At 95%, Student's t."""
    tasks: int
    clusters: int
    note: str | None
    """Why there is no interval."""


@dataclass(frozen=True, slots=True)
class ExactTest:
    """How often chance alone gives a difference as large, in either direction."""

    name: str
    """`mcnemar` for one yes or no a task, else `sign_flip`."""
    p: float | None
    """Two-sided; None where no task differs."""
    resamples: int | None
    """Drawn patterns of signs; None where all were counted, and p is exact."""
    standard_error: float | None
    """Of a p that was drawn."""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """One run against the base."""

    first: RunTable
    second: RunTable
    asked: Question
    common: Common
    pairs: tuple[Pair, ...]
    difference: Difference
    test: ExactTest
    tally: Tally
    bounds: tuple[float, float] | None
    """Least and most that missing attempts could make of the difference; None where they could
    make anything of it."""
    only_first: tuple[str, ...]
    """Tasks that have a record in the base alone."""
    only_second: tuple[str, ...]
    unpaired: int
    """Tasks in both, of which one run has no figure."""
    detectable: float | None
    """The smallest difference that a test of so many tasks finds in four of five cases."""
    categories: Mapping[str, tuple[Difference, Tally]]
    cost_usd: Difference | None
    """Per attempt, over tasks whose costs are known in both."""
    agent_s: Difference | None
    """Per attempt."""
    warnings: tuple[str, ...]
    p_holm: float | None = None
    """Adjusted for all comparisons with the base; None where there is one, or no p."""

    @property
    def is_official(self) -> bool:
        """True where both runs have every planned attempt."""
        return self.first.tally.is_official and self.second.tally.is_official

    @property
    def gain(self) -> float:
        """The difference in the direction that is better."""
        sign = 1 if self.asked.spec.higher_is_better else -1
        return sign * self.difference.value

    @property
    def gain_interval(self) -> tuple[float, float] | None:
        """The difference's interval in the direction that is better."""
        interval = self.difference.interval
        if interval is None or self.asked.spec.higher_is_better:
            return interval
        return -interval[1], -interval[0]

    def largest(self, limit: int) -> list[Pair]:
        """Give the tasks that changed most, losses first among equals; 0 for all that changed."""
        sign = 1 if self.asked.spec.higher_is_better else -1
        changed = [pair for pair in self.pairs if round(pair.difference, _DIGITS)]
        changed.sort(
            key=lambda p: (-round(abs(p.difference), _DIGITS), sign * p.difference, p.task_id)
        )
        return changed[:limit] if limit else changed


def compare_runs(
    roots: Sequence[Path], *, metric: str | None = None, common_only: bool = False
) -> list[Compared]:
    """Compare every run with the first. Blocking.

    Args:
        roots: run directories, the base first; at least two.
        metric: the base's primary one by default.
        common_only: pair what both have where the tasks are not all the same.

    Raises:
        RunUnreadable: one is no run, or cannot be read.
        NotComparable: they answer different questions.
        UnknownMetric: one has no such metric.
    """
    check_distinct(list(roots))
    base, *others = [read_table(root) for root in roots]
    return adjusted([compare_tables(base, o, metric, common_only=common_only) for o in others])


def adjusted(found: Sequence[Compared]) -> list[Compared]:
    """Adjust the p-values of several comparisons with one base by Holm's rule."""
    with_p = [(n, each.test.p) for n, each in enumerate(found) if each.test.p is not None]
    result = list(found)
    if len(found) > 1:
        for (number, _), p in zip(with_p, holm([p for _, p in with_p]), strict=True):
            result[number] = replace(found[number], p_holm=p)
    return result


def compare_tables(
    first: RunTable, second: RunTable, metric: str | None = None, *, common_only: bool = False
) -> Compared:
    """Compare two runs; see `compare_runs`."""
    asked = question(first, second, metric)
    common = common_tasks(first, second, common_only=common_only)
    ours = dict(first.figures(asked.metric, asked.estimator))
    theirs = dict(second.figures(asked.metric, asked.estimator))
    pairs = tuple(_pairs(first, second, common.task_ids, ours, theirs))
    if not pairs:
        raise NotComparable(
            f"no task has a value of {asked.metric!r} in both {first.root} and {second.root}",
            remedy="`steelyard show RUN` says what became of the attempts",
        )
    differences = [pair.difference for pair in pairs]
    clusters = [pair.cluster for pair in pairs]
    edge = asked.spec.bounds
    whole = difference_over(differences, clusters, edge)
    categories: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.category is not None:
            categories.setdefault(pair.category, []).append(pair)
    higher = asked.spec.higher_is_better
    only_first = tuple(task_id for task_id in first.numbers if task_id not in second.numbers)
    only_second = tuple(task_id for task_id in second.numbers if task_id not in first.numbers)
    return Compared(
        first=first,
        second=second,
        asked=asked,
        common=common,
        pairs=pairs,
        difference=whole,
        test=_test(asked, pairs),
        tally=wins_ties_losses(differences, higher_is_better=higher),
        bounds=_bounds(first, second, common, (ours, theirs), asked, common_only=common_only),
        only_first=only_first,
        only_second=only_second,
        unpaired=len(common.task_ids) - len(pairs),
        detectable=_detectable(whole),
        categories={
            name: (
                difference_over([p.difference for p in of], [p.cluster for p in of], edge),
                wins_ties_losses([p.difference for p in of], higher_is_better=higher),
            )
            for name, of in sorted(categories.items())
        },
        cost_usd=_beside(first, second, pairs, "cost_usd"),
        agent_s=_beside(first, second, pairs, "agent_s"),
        warnings=tuple(_warnings(first, second, common, len(only_first), len(only_second))),
    )


def side_estimate(compared: Compared, side: int) -> dict[str, Any]:
    """Give one run's own mean over the paired tasks: 0 for the base, 1 for the other."""
    pairs = compared.pairs
    return estimate_over_tasks(
        [pair.second if side else pair.first for pair in pairs],
        [pair.cluster for pair in pairs],
        is_one_binary_attempt=compared.asked.is_one_binary_attempt,
        bounds=compared.asked.spec.bounds,
    )


# -- parts -------------------------------------------------------------------------------------


def _pairs(
    first: RunTable,
    second: RunTable,
    task_ids: Iterable[str],
    ours: Mapping[str, Figure],
    theirs: Mapping[str, Figure],
) -> Iterable[Pair]:
    for number, task_id in enumerate(task_ids):
        was, now = ours[task_id].value, theirs[task_id].value
        if was is not None and now is not None:
            cluster = second.cluster(task_id)
            yield Pair(
                task_id, was, now, second.category(task_id), number if cluster is None else cluster
            )


def difference_over(
    values: Sequence[float],
    clusters: Sequence[str | int],
    edge: tuple[float, float] | None = None,
) -> Difference:
    """Give the mean difference; its interval is cut at what the metric's bounds allow.

    Args:
        values: (pairs,), at least one.
        clusters: (pairs,), which cluster each belongs to.
        edge: the metric's bounds.
    """
    found = paired_difference([round(value, _DIGITS) for value in values], clusters, LEVEL)
    if found is None:
        raise AssertionError("there are no pairs")
    note = None
    error, interval = found.standard_error, found.interval
    if error is not None and error <= _NOISE * max(map(abs, values)):
        # Sums of clusters that are equal but for the rounding of their thirds and sevenths.
        error = interval = None
    if interval is None:
        few = found.clusters < 2
        note = ONE_TASK if few else ALL_SAME if found.is_degenerate else NO_SPREAD
    if interval is not None and edge is not None:
        width = edge[1] - edge[0]
        interval = max(interval[0], -width), min(interval[1], width)
    return Difference(found.mean, error, interval, found.pairs, found.clusters, note)


def _test(asked: Question, pairs: Sequence[Pair]) -> ExactTest:
    return exact_test(
        [pair.difference for pair in pairs],
        [pair.cluster for pair in pairs],
        is_one_binary_attempt=asked.is_one_binary_attempt or asked.estimator == ANY,
    )


def exact_test(
    differences: Sequence[float],
    clusters: Sequence[str | int],
    *,
    is_one_binary_attempt: bool,
    resamples: int = RESAMPLES,
) -> ExactTest:
    """Test whether chance alone gives differences as large, in either direction.

    Args:
        differences: (pairs,).
        clusters: (pairs,), which cluster each belongs to.
        is_one_binary_attempt: whether each is one yes or no less another: then it is McNemar's.
        resamples: how many patterns of signs are drawn where they cannot all be counted.
    """
    if is_one_binary_attempt and len(set(clusters)) == len(clusters):
        only_first = sum(value < 0 for value in differences)
        only_second = sum(value > 0 for value in differences)
        p = mcnemar(only_first, only_second)
        return ExactTest("mcnemar", p, None, None, NO_DIFFERENCE if p is None else None)
    found = sign_flip(differences, clusters, resamples=resamples)
    if found is None:
        return ExactTest("sign_flip", None, None, None, NO_DIFFERENCE)
    return ExactTest("sign_flip", found.two_sided, found.resamples, found.standard_error)


def _detectable(difference: Difference) -> float | None:
    error = difference.standard_error
    in_errors = None if error is None else detectable_in_errors(difference.clusters - 1)
    return None if error is None or in_errors is None else in_errors * error


def _bounds(
    first: RunTable,
    second: RunTable,
    common: Common,
    figures: tuple[Mapping[str, Figure], Mapping[str, Figure]],
    asked: Question,
    *,
    common_only: bool,
) -> tuple[float, float] | None:
    """Give the least and the most that missing attempts could make of the mean difference.

    A task that one run has no record of counts with its whole range where that run has planned
    tasks without a record: it may be one of them.
    """
    edge = asked.spec.bounds
    nothing = Figure(None, *(edge or (None, None)))
    tasks = list(common.task_ids)
    extra = 0
    if not common_only:
        if second.unseen_tasks:
            tasks += [task_id for task_id in first.numbers if task_id not in second.numbers]
        if first.unseen_tasks:
            tasks += [task_id for task_id in second.numbers if task_id not in first.numbers]
        seen = len({*first.numbers, *second.numbers})
        planned = max(first.tally.planned_tasks, second.tally.planned_tasks)
        extra = max(0, planned - seen)
    lows, highs = [], []
    for task_id in tasks:
        was, now = (of.get(task_id, nothing) for of in figures)
        if was.is_left_out or now.is_left_out:
            continue
        if was.low is None or was.high is None or now.low is None or now.high is None:
            return None
        lows.append(now.low - was.high)
        highs.append(now.high - was.low)
    if extra:
        if edge is None:
            return None
        lows += [edge[0] - edge[1]] * extra
        highs += [edge[1] - edge[0]] * extra
    if not lows:
        return None
    return fsum(lows) / len(lows), fsum(highs) / len(highs)


def _beside(
    first: RunTable, second: RunTable, pairs: Sequence[Pair], name: str
) -> Difference | None:
    """Compare what a task's attempts cost or took on average; None where no task says it."""
    values: list[float] = []
    clusters: list[str | int] = []
    for pair in pairs:
        was, now = first.facts[pair.task_id], second.facts[pair.task_id]
        a, b = getattr(was, name), getattr(now, name)
        if a is not None and b is not None and was.attempts and now.attempts:
            values.append(b / now.attempts - a / was.attempts)
            clusters.append(pair.cluster)
    return difference_over(values, clusters) if values else None


def _warnings(
    first: RunTable, second: RunTable, common: Common, only_first: int, only_second: int
) -> Iterable[str]:
    for table in (first, second):
        name = table.root
        if table.is_running:
            yield f"{name} is running: this is how it stands now"
        if not table.tally.is_official:
            counted, planned = table.tally.counted_attempts, table.tally.planned_attempts
            yield f"{name} is not official: {counted} of {planned} planned attempts count"
        if table.left_out:
            yield f"{name}: {counted_tasks(len(table.left_out))} left out by its calibration"
        yield from (f"{name}: {warning}" for warning in table.metrics["warnings"])
    if first.tally.k != second.tally.k:
        yield f"the attempts differ: k = {first.tally.k} and k = {second.tally.k}"
    if only_first or only_second:
        yield f"{counted_tasks(only_first)} in the first run alone, {only_second} in the second"
    elif _coverage(first) != _coverage(second):
        yield (
            f"the coverage differs: {_coverage(first):.1%} and {_coverage(second):.1%} of the "
            "planned attempts count"
        )
    if common.differing:
        yield f"{counted_tasks(len(common.differing))} with another content in each run, left out"
    for doubt in common.doubts:
        yield f"{doubt}: whether the tasks are the same cannot be told"
    taken = second.metrics["reused"]["runs"].get(first.run_id, 0)
    if taken:
        yield f"{taken} attempts of the second run were taken from the first: they cannot differ"


def counted_tasks(count: int) -> str:
    """Give `1 task`, `2 tasks`."""
    return f"{count} task{'' if count == 1 else 's'}"


def _coverage(table: RunTable) -> float:
    planned = table.tally.planned_attempts
    return table.tally.counted_attempts / planned if planned else 0.0
