"""From tallies to scores, each with how sure it is and what it covers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import fsum
from typing import Any, Final

from steelyard.components.benchmark import MetricSpec
from steelyard.results.tallies import RunTally
from steelyard.stats.clustered import clustered_error
from steelyard.stats.estimators import avg_at_k, pass_at_k, pass_hat_k
from steelyard.stats.intervals import Interval, t_interval, wilson

LEVEL: Final = 0.95
_DIGITS: Final = 12
_NOISE: Final = 1e-14
"""Of a mean's size: what sums of equal values differ by, as they are rounded on the way."""

TOO_FEW: Final = "n too small for an interval"
SKIPPED: Final = "attempts were skipped after a success"
NO_VARIANCE: Final = "no interval: every task has the same value"
NO_CLUSTER_VARIANCE: Final = "no interval: every cluster has the same mean"
NOTHING: Final = "nothing was scored"


@dataclass(frozen=True, slots=True)
class _Values:
    """A figure for each of some tasks, (tasks,), and where each belongs."""

    values: Sequence[float]
    clusters: Sequence[str | int]
    """The benchmark's cluster, or the task's number."""
    categories: Sequence[str | None]

    def of_category(self, name: str) -> _Values:
        """Give those of one category."""
        kept = [i for i, category in enumerate(self.categories) if category == name]
        return _Values(
            [self.values[i] for i in kept], [self.clusters[i] for i in kept], [name] * len(kept)
        )


@dataclass(frozen=True, slots=True)
class _Estimator:
    """How the attempts at a task become one figure."""

    name: str
    of: Callable[[int, Any, int], float | None]
    """Of (attempts counted, sum or successes, k)."""
    takes_successes: bool
    partial: Callable[[int, Any, int], float | None]
    """The same where some attempts are missing; None where they could still change it."""
    skipped_value: float | None
    """Of the primary metric at a task whose later attempts were skipped; None: cannot be told."""

    def k(self, tally: RunTally, task: int) -> int:
        """Over how many attempts: a chance over as many at each task, a mean over all planned."""
        return tally.k if self.takes_successes else tally.planned_at(task)

    def label(self, tally: RunTally) -> str:
        """Give its name; a mean of tasks with other numbers of attempts names no k."""
        is_uneven = tally.attempts is not None and not self.takes_successes
        return "avg" if is_uneven else self.name.format(k=tally.k)


def _avg_partial(n: int, total: float, _k: int) -> float | None:
    return total / n if n else None


def _pass_partial(n: int, successes: int, k: int) -> float | None:
    """A task with a success is decided, whatever the missing attempts would bring."""
    return 1.0 if successes > 0 and n < k else pass_at_k(n, successes, k)


def _hat_partial(n: int, successes: int, k: int) -> float | None:
    """A task with a failure is decided likewise."""
    return 0.0 if successes < n < k else pass_hat_k(n, successes, k)


_AVG = _Estimator("avg@{k}", avg_at_k, False, _avg_partial, None)
_PASS = _Estimator("pass@{k}", pass_at_k, True, _pass_partial, 1.0)
_HAT = _Estimator("pass^{k}", pass_hat_k, True, _hat_partial, None)


def scores(tally: RunTally, *, is_brief: bool = False) -> list[dict[str, Any]]:
    """Give every score of a run, the primary metric's headline first, as `metrics/1` has it.

    Args:
        tally: the run.
        is_brief: whether a metric has its first estimator alone where k is 1: all are one figure.
    """
    found: list[dict[str, Any]] = []
    for index, spec in enumerate(tally.specs):
        headline = _PASS if tally.strategy == "pass" and spec.kind == "binary" else _AVG
        estimators = _estimators(tally, spec)
        if is_brief and tally.k == 1:
            estimators, headline = estimators[:1], estimators[0]
        for estimator in estimators:
            is_primary = spec.name == tally.primary
            found.append(
                {
                    "metric": spec.name,
                    "estimator": estimator.label(tally),
                    "kind": spec.kind,
                    "higher_is_better": spec.higher_is_better,
                    "is_primary": is_primary,
                    "is_headline": is_primary and estimator is headline,
                    **_score(tally, index, spec, estimator),
                }
            )
    return sorted(found, key=lambda score: (not score["is_headline"], not score["is_primary"]))


def task_figures(tally: RunTally) -> list[float | None]:
    """Give what each task comes to in the primary metric, over what was counted; None: nothing.

    It is the mean of its attempts, or whether one passed where tasks stop at their first success.
    """
    index = next(i for i, spec in enumerate(tally.specs) if spec.name == tally.primary)
    estimators = _estimators(tally, tally.specs[index])
    return _figures(_Work.of(tally, index, estimators[0]), is_official=False)


def estimate_over_tasks(
    values: Sequence[float],
    clusters: Sequence[str | int],
    *,
    is_one_binary_attempt: bool,
    bounds: Interval | None,
) -> dict[str, Any]:
    """Give the mean of a figure over some tasks as an estimate of `metrics/1`.

    Args:
        values: (tasks,).
        clusters: (tasks,), the benchmark's cluster, or the task's number.
        is_one_binary_attempt: whether each figure is one attempt's yes or no.
        bounds: of the metric.
    """
    tasks = _Values(values, clusters, [None] * len(values))
    return _mean_over_tasks(tasks, is_one_binary_attempt=is_one_binary_attempt, bounds=bounds)


def scores_by_retries(tally: RunTally) -> list[dict[str, Any]]:
    """Give the primary metric by how many retries an attempt needed, as `metrics/1` has it.

    So it is seen where a retry policy changes the sample. Each value is a mean over attempts, its
    error clustered by task, or by the benchmark's clusters. Empty where nothing was retried.
    """
    spec = next((one for one in tally.specs if one.name == tally.primary), None)
    found = []
    for retries, group in enumerate(tally.retried):
        named = [tally.clusters[task] for task in group.tasks]
        clusters = [
            task if name is None else name for task, name in zip(group.tasks, named, strict=True)
        ]
        estimate = estimate_over_tasks(
            group.values,
            clusters,
            is_one_binary_attempt=spec is not None and _is_yes_or_no(spec),
            bounds=None if spec is None else spec.bounds,
        )
        found.append(
            {
                "retries": retries,
                "is_or_more": retries == len(tally.retried) - 1,
                "attempts": group.attempts,
                "counted": len(group.values),
                "estimate": {**estimate, "tasks": len(set(group.tasks))},
            }
        )
    return found


def _mean_over_tasks(
    tasks: _Values, *, is_one_binary_attempt: bool, bounds: Interval | None
) -> dict[str, Any]:
    """Give a mean over tasks, its standard error and its 95% interval.

    The error is clustered by task, and by the benchmark's clusters where there are some (CR1). The
    interval is Wilson's for one binary attempt a task without clusters, also where all of such
    0/1 figures agree and a t interval would have no width; else t, cut at the metric's bounds. A
    metric from 0 to 1 that was 0 or 1 at every task is binary here, whatever it is called.
    """
    values = tasks.values
    found = clustered_error(values, tasks.clusters)
    if found is None:
        return _estimate(None, None, None, None, 0, 0, NOTHING)
    n, clusters = found.values, found.clusters
    noise = _NOISE * max(map(abs, (min(values), max(values))))
    error = found.cr1 if found.cr1 and found.cr1 > noise else None
    is_flat = max(values) - min(values) <= noise
    is_proportion = clusters == n and all(value in (0.0, 1.0) for value in values)
    if is_proportion and (is_one_binary_attempt or (is_flat and n > 1)):
        return _estimate(
            found.mean, error, wilson(round(fsum(values)), n, LEVEL), "wilson", n, clusters, None
        )
    if clusters < 2:
        return _estimate(found.mean, None, None, None, n, clusters, TOO_FEW)
    interval = t_interval(found.mean, error, clusters - 1, LEVEL)
    if interval is None:
        why = NO_VARIANCE if is_flat else NO_CLUSTER_VARIANCE
        return _estimate(found.mean, None, None, None, n, clusters, why)
    if bounds is not None:
        interval = max(interval[0], bounds[0]), min(interval[1], bounds[1])
    return _estimate(found.mean, error, interval, "t", n, clusters, None)


def _estimate(
    value: float | None,
    error: float | None,
    interval: Interval | None,
    method: str | None,
    tasks: int,
    clusters: int,
    note: str | None,
) -> dict[str, Any]:
    return {
        "value": _rounded(value),
        "standard_error": _rounded(error),
        "interval": None if interval is None else [round(end, _DIGITS) for end in interval],
        "interval_method": method,
        "level": LEVEL,
        "tasks": tasks,
        "clusters": clusters,
        "note": note,
    }


def _rounded(value: float | None) -> float | None:
    """Cut what differs between builds of SciPy, so that files are the same everywhere."""
    return None if value is None else round(value, _DIGITS)


def _estimators(tally: RunTally, spec: MetricSpec) -> list[_Estimator]:
    skips = tally.k > 1 and (tally.early_stop or any(tally.skipped))
    has_pass = spec.kind == "binary" and spec.higher_is_better
    found = [] if skips and has_pass else [_AVG]
    if has_pass:
        found.append(_PASS)
        if tally.k > 1 and not skips:
            found.append(_HAT)
    return found


def _score(tally: RunTally, index: int, spec: MetricSpec, estimator: _Estimator) -> dict[str, Any]:
    work = _Work.of(tally, index, estimator)
    missing = sum(work.of_odd(lambda task: _missing(tally, index, estimator, task)))
    missing += (tally.planned_tasks - tally.seen_tasks) * tally.k
    excluded = sum(tally.metrics[index].excluded)
    is_official = tally.is_official and missing == 0
    binary_once = _is_yes_or_no(spec) and tally.k == 1
    is_selected = any(
        tally.skipped[task] and not _is_decided(tally, index, estimator, task) for task in work.odd
    )
    if is_selected:
        # The tasks with all their attempts are those that failed: a mean over them says nothing
        # of the benchmark, not even as a reference.
        values = _Values((), (), ())
        found = _estimate(None, None, None, None, 0, 0, SKIPPED)
    else:
        values = _task_values(work, is_official=is_official)
        found = _mean_over_tasks(values, is_one_binary_attempt=binary_once, bounds=spec.bounds)
    counted = tally.planned_attempts - missing - excluded
    as_zero = (
        found["value"]
        if missing == excluded == 0 or is_selected
        else _rounded(_filled(work, 0.0, counts_excluded=True))
    )
    return {
        "official": found["value"] if is_official else None,
        "reference": None if is_official else found["value"],
        "estimate": found,
        "failures_as_zero": as_zero if spec.higher_is_better else None,
        "bounds": _bounds(work, spec, missing, found["value"]),
        "categories": _categories(values, binary_once, spec.bounds),
        "coverage": {
            "planned": tally.planned_attempts,
            "counted": counted,
            "excluded": excluded,
            "missing": missing,
            "fraction": counted / tally.planned_attempts if tally.planned_attempts else None,
        },
    }


def _is_yes_or_no(spec: MetricSpec) -> bool:
    """True where a metric's figures are a proportion as long as all of them are 0 or 1."""
    return spec.kind == "binary" or spec.bounds == (0.0, 1.0)


def _missing(tally: RunTally, index: int, estimator: _Estimator, task: int) -> int:
    """How many attempts at a task have no value and are not decided without one.

    What a task's first success made needless decides pass@k of the metric it was a success in,
    the primary one, and of any other metric only where that has a success of its own.
    """
    missing = tally.missing(index, task)
    skipped = tally.skipped[task]
    return missing if _is_decided(tally, index, estimator, task) else missing + skipped


def _is_decided(tally: RunTally, index: int, estimator: _Estimator, task: int) -> bool:
    if not tally.skipped[task] or estimator.skipped_value is None:
        return False
    return tally.specs[index].name == tally.primary or tally.metrics[index].successes[task] > 0


@dataclass(frozen=True, slots=True)
class _Work:
    """A metric under an estimator: mostly all attempts of a task count, and its figure is known."""

    tally: RunTally
    index: int
    estimator: _Estimator
    figures: Sequence[float | None]
    """By task; only of those that are not odd do they say anything."""
    odd: Sequence[int]
    """Tasks of which an attempt is missing, excluded or skipped."""

    @classmethod
    def of(cls, tally: RunTally, index: int, estimator: _Estimator) -> _Work:
        column = tally.metrics[index]
        planned = tally.attempts or repeat(tally.k)
        odd = [
            task
            for task, (n, skipped, k) in enumerate(
                zip(column.counted, tally.skipped, planned, strict=False)
            )
            if n != k or skipped
        ]
        sums = column.successes if estimator.takes_successes else column.totals
        known: dict[tuple[int, Any], float | None] = {}
        figures = []
        for task, key in enumerate(zip(column.counted, sums, strict=True)):
            if key not in known or tally.attempts is not None:
                k = estimator.k(tally, task)
                # What has too few attempts is odd, and has its figure by another rule.
                known[key] = estimator.of(*key, k) if key[0] == tally.planned_at(task) else None
            figures.append(known[key])
        return cls(tally, index, estimator, figures, odd)

    def of_odd(self, rule: Callable[[int], Any]) -> list[Any]:
        """Ask a rule about each odd task, once about those alike in all that it may look at."""
        tally, column = self.tally, self.tally.metrics[self.index]
        known: dict[tuple[int, float, int, int, int, int], Any] = {}
        found = []
        for task in self.odd:
            key = (
                column.counted[task], column.totals[task], column.successes[task],
                column.excluded[task], tally.skipped[task], tally.planned_at(task),
            )  # fmt: skip
            if key not in known:
                known[key] = rule(task)
            found.append(known[key])
        return found

    def replaced(self, figure: Callable[[int], float | None]) -> list[float | None]:
        """Give all figures, those of odd tasks by a rule of their own."""
        found = list(self.figures)
        for task, value in zip(self.odd, self.of_odd(figure), strict=True):
            found[task] = value
        return found


def _task_values(work: _Work, *, is_official: bool) -> _Values:
    tally = work.tally
    figures = _figures(work, is_official=is_official)
    kept = [task for task, value in enumerate(figures) if value is not None]
    return _Values(
        [value for value in figures if value is not None],
        [task if (name := tally.clusters[task]) is None else name for task in kept],
        [tally.categories[task] for task in kept],
    )


def _figures(work: _Work, *, is_official: bool) -> list[float | None]:
    tally, estimator = work.tally, work.estimator
    column = tally.metrics[work.index]
    sums = column.successes if estimator.takes_successes else column.totals

    def figure(task: int) -> float | None:
        if tally.skipped[task] and _is_decided(tally, work.index, estimator, task):
            return estimator.skipped_value
        # A task with an attempt that the benchmark leaves out has no figure however the rest ends,
        # so it has none here and none in the bounds: else the value could lie outside of them.
        rule = estimator.of if is_official or column.excluded[task] else estimator.partial
        return rule(column.counted[task], sums[task], estimator.k(tally, task))

    return work.replaced(figure)


def _bounds(work: _Work, spec: MetricSpec, missing: int, value: float | None) -> list[float] | None:
    """[worst, best] of what the score could be if every missing attempt had a value."""
    if missing == 0:
        return None if value is None else [value, value]
    if spec.bounds is None:
        return None
    worst, best = spec.bounds if spec.higher_is_better else spec.bounds[::-1]
    low, high = _filled(work, worst), _filled(work, best)
    if low is None or high is None:
        return None
    return [round(low, _DIGITS), round(high, _DIGITS)]


def _filled(work: _Work, value: float, *, counts_excluded: bool = False) -> float | None:
    """Mean over all planned tasks with a value put in for every missing attempt.

    Tasks that the benchmark's rule leaves out stay out, unless `counts_excluded`.
    """
    tally, index, estimator = work.tally, work.index, work.estimator
    column = tally.metrics[index]
    sums = column.successes if estimator.takes_successes else column.totals
    each = int(value != 0) if estimator.takes_successes else value

    def figure(task: int) -> float | None:
        if tally.skipped[task] and _is_decided(tally, index, estimator, task):
            return estimator.skipped_value
        put_in = _missing(tally, index, estimator, task)
        if counts_excluded:
            put_in += column.excluded[task]
        k = estimator.k(tally, task)
        return estimator.of(column.counted[task] + put_in, sums[task] + put_in * each, k)

    found = [figure for figure in work.replaced(figure) if figure is not None]
    unseen = estimator.of(tally.k, tally.k * each, tally.k)
    if unseen is not None:
        found.extend([unseen] * (tally.planned_tasks - tally.seen_tasks))
    return fsum(found) / len(found) if found else None


def _categories(values: _Values, binary_once: bool, bounds: Interval | None) -> Mapping[str, Any]:
    names = sorted({name for name in values.categories if name is not None})
    return {
        name: _mean_over_tasks(
            values.of_category(name), is_one_binary_attempt=binary_once, bounds=bounds
        )
        for name in names
    }
