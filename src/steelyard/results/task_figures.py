"""What each task of a run comes to under an estimator: known, decided early, or filled in. Pure.

Mostly all attempts of a task count; the rules for those of which one is missing, excluded or
skipped stand here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from steelyard.components.benchmark import MetricSpec
from steelyard.results.tallies import RunTally
from steelyard.stats.estimators import avg_at_k, pass_at_k, pass_hat_k


@dataclass(frozen=True, slots=True)
class Estimator:
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


AVG = Estimator("avg@{k}", avg_at_k, False, _avg_partial, None)
PASS = Estimator("pass@{k}", pass_at_k, True, _pass_partial, 1.0)
HAT = Estimator("pass^{k}", pass_hat_k, True, _hat_partial, None)


def estimators_of(tally: RunTally, spec: MetricSpec) -> list[Estimator]:
    """Give the estimators that a metric of a run has, the first of them the plain one."""
    skips = tally.k > 1 and (tally.early_stop or any(tally.skipped))
    has_pass = spec.kind == "binary" and spec.higher_is_better
    found = [] if skips and has_pass else [AVG]
    if has_pass:
        found.append(PASS)
        if tally.k > 1 and not skips:
            found.append(HAT)
    return found


def task_figures(tally: RunTally) -> list[float | None]:
    """Give what each task comes to in the primary metric, over what was counted; None: nothing.

    It is the mean of its attempts, or whether one passed where tasks stop at their first success.
    """
    index = next(i for i, spec in enumerate(tally.specs) if spec.name == tally.primary)
    estimators = estimators_of(tally, tally.specs[index])
    return figures_of(Work.of(tally, index, estimators[0]), is_strict=False)


@dataclass(frozen=True, slots=True)
class Work:
    """A metric under an estimator: mostly all attempts of a task count, and its figure is known."""

    tally: RunTally
    index: int
    estimator: Estimator
    figures: Sequence[float | None]
    """By task; only of those that are not odd do they say anything."""
    odd: Sequence[Sequence[int]]
    """Tasks of which an attempt is missing, excluded or skipped, together where they are alike in
    all that a rule may look at."""

    @classmethod
    def of(cls, tally: RunTally, index: int, estimator: Estimator) -> Work:
        """Look at every task once."""
        column = tally.metrics[index]
        planned = tally.attempts or [tally.k] * len(tally.skipped)
        alike: dict[tuple[float, ...], list[int]] = {}
        for task, (n, skipped, k) in enumerate(
            zip(column.counted, tally.skipped, planned, strict=True)
        ):
            if n != k or skipped:
                key = n, column.totals[task], column.successes[task], column.excluded[task]
                alike.setdefault((*key, skipped, k), []).append(task)
        sums: Sequence[Any] = column.successes if estimator.takes_successes else column.totals
        keys = list(zip(column.counted, sums, planned, strict=True))
        # What has too few attempts is odd, and has its figure by another rule.
        known = {
            (n, total, k): estimator.of(n, total, tally.k if estimator.takes_successes else k)
            if n == k
            else None
            for n, total, k in set(keys)
        }
        return cls(tally, index, estimator, [known[key] for key in keys], list(alike.values()))

    def replaced(self, figure: Callable[[int], float | None]) -> list[float | None]:
        """Give all figures, those of odd tasks by a rule of their own."""
        found = list(self.figures)
        for tasks in self.odd:
            value = figure(tasks[0])
            for task in tasks:
                found[task] = value
        return found


def figures_of(work: Work, *, is_strict: bool) -> list[float | None]:
    """Give each task's figure over what was counted; `is_strict`: only where all of it is known."""
    tally, estimator = work.tally, work.estimator
    column = tally.metrics[work.index]
    sums = column.successes if estimator.takes_successes else column.totals

    def figure(task: int) -> float | None:
        if tally.skipped[task] and is_decided(tally, work.index, estimator, task):
            return estimator.skipped_value
        # A task with an attempt that the benchmark leaves out has no figure however the rest ends,
        # so it has none here and none in the bounds: else the value could lie outside of them.
        rule = estimator.of if is_strict or column.excluded[task] else estimator.partial
        return rule(column.counted[task], sums[task], estimator.k(tally, task))

    return work.replaced(figure)


def filled(work: Work, value: float, *, counts_excluded: bool = False) -> float | None:
    """Mean over all planned tasks with a value put in for every missing attempt.

    Tasks that the benchmark's rule leaves out stay out, unless `counts_excluded`.
    """
    tally, index, estimator = work.tally, work.index, work.estimator
    column = tally.metrics[index]
    sums = column.successes if estimator.takes_successes else column.totals
    each = int(value != 0) if estimator.takes_successes else value

    def figure(task: int) -> float | None:
        if tally.skipped[task] and is_decided(tally, index, estimator, task):
            return estimator.skipped_value
        put_in = missing_at(tally, index, estimator, task)
        if counts_excluded:
            put_in += column.excluded[task]
        k = estimator.k(tally, task)
        return estimator.of(column.counted[task] + put_in, sums[task] + put_in * each, k)

    found = [figure for figure in work.replaced(figure) if figure is not None]
    unseen = estimator.of(tally.k, tally.k * each, tally.k)
    if unseen is not None:
        found.extend([unseen] * (tally.planned_tasks - tally.seen_tasks))
    return fsum(found) / len(found) if found else None


def missing_at(tally: RunTally, index: int, estimator: Estimator, task: int) -> int:
    """How many attempts at a task have no value and are not decided without one.

    What a task's first success made needless decides pass@k of the metric it was a success in,
    the primary one, and of any other metric only where that has a success of its own.
    """
    missing = tally.missing(index, task)
    skipped = tally.skipped[task]
    return missing if is_decided(tally, index, estimator, task) else missing + skipped


def is_decided(tally: RunTally, index: int, estimator: Estimator, task: int) -> bool:
    """True where attempts were skipped after a success that settles the task."""
    if not tally.skipped[task] or estimator.skipped_value is None:
        return False
    return tally.specs[index].name == tally.primary or tally.metrics[index].successes[task] > 0
