"""From tallies to scores, each with how sure it is and what it covers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Final

from steelyard.components.benchmark import MetricSpec
from steelyard.results.tallies import RunTally
from steelyard.results.task_figures import (
    AVG,
    PASS,
    Estimator,
    Work,
    estimators_of,
    figures_of,
    filled,
    is_decided,
    missing_at,
)
from steelyard.stats.clustered import clustered_error
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


def scores(
    tally: RunTally, *, is_brief: bool = False, takes_decided: bool = True
) -> list[dict[str, Any]]:
    """Give every score of a run, the primary metric's headline first, as `metrics/1` has it.

    Args:
        tally: the run.
        is_brief: whether a metric has its first estimator alone where k is 1: all are one figure.
        takes_decided: whether pass@k and pass^k count a task with a missing attempt where no
            result of that could change them. So a run's figure is as near as can be to what it
            will be; yet such tasks are those that passed, or failed, and where many attempts are
            missing that is no estimate: a set takes the tasks alone whose attempts all count.
    """
    found: list[dict[str, Any]] = []
    for index, spec in enumerate(tally.specs):
        headline = PASS if tally.strategy == "pass" and spec.kind == "binary" else AVG
        estimators = estimators_of(tally, spec)
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
                    **_score(tally, index, spec, estimator, takes_decided=takes_decided),
                }
            )
    return sorted(found, key=lambda score: (not score["is_headline"], not score["is_primary"]))


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
    is_share = bounds == (0.0, 1.0)  # dollars, too, may be 0 at every task
    if is_proportion and (is_one_binary_attempt or (is_flat and is_share and n > 1)):
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


def _score(
    tally: RunTally,
    index: int,
    spec: MetricSpec,
    estimator: Estimator,
    *,
    takes_decided: bool,
) -> dict[str, Any]:
    work = Work.of(tally, index, estimator)
    missing = sum(len(tasks) * missing_at(tally, index, estimator, tasks[0]) for tasks in work.odd)
    missing += (tally.planned_tasks - tally.seen_tasks) * tally.k
    excluded = sum(tally.metrics[index].excluded)
    is_official = tally.is_official and missing == 0
    binary_once = _is_yes_or_no(spec) and tally.k == 1
    is_selected = any(
        tally.skipped[tasks[0]] and not is_decided(tally, index, estimator, tasks[0])
        for tasks in work.odd
    )
    if is_selected:
        # The tasks with all their attempts are those that failed: a mean over them says nothing
        # of the benchmark, not even as a reference.
        values = _Values((), (), ())
        found = _estimate(None, None, None, None, 0, 0, SKIPPED)
    else:
        is_strict = estimator.takes_successes and not takes_decided
        values = _task_values(work, is_strict=is_official or is_strict)
        found = _mean_over_tasks(values, is_one_binary_attempt=binary_once, bounds=spec.bounds)
    counted = tally.planned_attempts - missing - excluded
    as_zero = (
        found["value"]
        if missing == excluded == 0 or is_selected
        else _rounded(filled(work, 0.0, counts_excluded=True))
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


def _task_values(work: Work, *, is_strict: bool) -> _Values:
    tally = work.tally
    figures = figures_of(work, is_strict=is_strict)
    kept = [task for task, value in enumerate(figures) if value is not None]
    return _Values(
        [value for value in figures if value is not None],
        [task if (name := tally.clusters[task]) is None else name for task in kept],
        [tally.categories[task] for task in kept],
    )


def _bounds(work: Work, spec: MetricSpec, missing: int, value: float | None) -> list[float] | None:
    """[worst, best] of what the score could be if every missing attempt had a value."""
    if missing == 0:
        return None if value is None else [value, value]
    if spec.bounds is None:
        return None
    worst, best = spec.bounds if spec.higher_is_better else spec.bounds[::-1]
    low, high = filled(work, worst), filled(work, best)
    if low is None or high is None:
        return None
    return [round(low, _DIGITS), round(high, _DIGITS)]


def _categories(values: _Values, binary_once: bool, bounds: Interval | None) -> Mapping[str, Any]:
    names = sorted({name for name in values.categories if name is not None})
    return {
        name: _mean_over_tasks(
            values.of_category(name), is_one_binary_attempt=binary_once, bounds=bounds
        )
        for name in names
    }
