"""What scoring needs of a run, task by task: values, and why some are not there.

Numbers only; no record is kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any, Final

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import COUNTED, Outcome
from steelyard.results.records import AttemptRecord

_FAILURES: Final = frozenset({Outcome.FAILED_ERROR, Outcome.TIMED_OUT})


def counted_value(
    spec: MetricSpec, outcome: Outcome, metrics: Mapping[str, float | bool]
) -> float | None:
    """Give what an attempt counts as: its metric, or what the benchmark's rule makes of a failure.

    Args:
        spec: of the metric.
        outcome: of the attempt.
        metrics: as its record has them.

    Returns:
        None where it does not count.
    """
    if outcome is Outcome.SCORED:
        value = metrics.get(spec.name)
        return None if value is None else float(value)
    return spec.on_failure if outcome in _FAILURES else None


class MetricTally:
    """One metric over all tasks; each column is indexed by the task's number."""

    def __init__(self) -> None:
        self.counted = array("l")
        """Attempts that count, failures by the benchmark's rule among them."""
        self.totals = array("d")
        """The sums of their values."""
        self.successes = array("l")
        """How many of them are not 0."""
        self.excluded = array("l")
        """Failures that the benchmark leaves out."""

    def add_task(self) -> None:
        """Make room for one more task."""
        for column in (self.counted, self.successes, self.excluded):
            column.append(0)
        self.totals.append(0.0)

    def add(self, task: int, value: float) -> None:
        """Count one attempt."""
        self.counted[task] += 1
        self.totals[task] += value
        self.successes[task] += value != 0


@dataclass(frozen=True, slots=True)
class RunTally:
    """A whole run, ready to be scored. Columns, because there may be 100,000 tasks."""

    specs: tuple[MetricSpec, ...]
    metrics: tuple[MetricTally, ...]
    """In the order of the specs."""
    primary: str
    k: int
    strategy: str
    early_stop: bool
    categories: Sequence[str | None]
    """By task."""
    clusters: Sequence[str | None]
    """By task."""
    skipped: Sequence[int]
    """By task: attempts not run, because one before them passed."""
    planned_tasks: int
    """Those without any record included."""
    planned_attempts: int
    counted_attempts: int
    """With an outcome that counts: see `COUNTED`."""
    retried: Sequence[RetryTally] = ()
    """By number of retries: 0, 1, 2 and more; empty where nothing was retried."""
    attempts: Sequence[int] | None = None
    """By task: those planned, where tasks differ in it; `k` is then the fewest. None: k each."""

    @property
    def seen_tasks(self) -> int:
        """Those with a record."""
        return len(self.skipped)

    @property
    def is_official(self) -> bool:
        """True where every planned attempt counts."""
        return self.counted_attempts == self.planned_attempts > 0

    def missing(self, metric: int, task: int) -> int:
        """How many attempts at a task have no value of a metric though one was planned."""
        column = self.metrics[metric]
        known = column.counted[task] + column.excluded[task] + self.skipped[task]
        return max(0, self.planned_at(task) - known)

    def planned_at(self, task: int) -> int:
        """How many attempts at a task were planned."""
        return self.k if self.attempts is None else self.attempts[task]


MOST_RETRIES: Final = 2
"""So many and more are one group: with few attempts in a group its value says nothing."""


class RetryTally:
    """The attempts that needed a number of retries, and the primary metric's value of each."""

    def __init__(self) -> None:
        self.attempts = 0
        """Executed at least once."""
        self.values = array("d")
        """Of those that count."""
        self.tasks = array("l")
        """Their tasks' numbers."""


class Tallier:
    """Takes records one by one."""

    def __init__(self, specs: Sequence[MetricSpec], primary: str | None = None) -> None:
        self._specs = tuple(specs)
        self._primary = next((spec for spec in specs if spec.name == primary), None)
        self._retried = tuple(RetryTally() for _ in range(MOST_RETRIES + 1))
        self._metrics = tuple(MetricTally() for _ in self._specs)
        self._numbers: dict[str, int] = {}
        self._categories: list[str | None] = []
        self._clusters: list[str | None] = []
        self._skipped = array("l")
        self._counted = 0

    @property
    def numbers(self) -> Mapping[str, int]:
        """The number of each task seen so far, by its id."""
        return self._numbers

    def add(self, record: AttemptRecord) -> None:
        """Take one record into account."""
        task = self._numbers.get(record.task_id)
        if task is None:
            task = self._add_task(record)
        self._counted += record.outcome in COUNTED
        if record.executions:
            self._add_retries(task, record)
        if record.outcome is Outcome.SKIPPED_PASSED:
            self._skipped[task] += 1
            return
        for spec, tally in zip(self._specs, self._metrics, strict=True):
            value = counted_value(spec, record.outcome, record.metrics)
            if value is not None:
                tally.add(task, value)
            elif record.outcome in _FAILURES:
                tally.excluded[task] += 1

    def _add_retries(self, task: int, record: AttemptRecord) -> None:
        tally = self._retried[min(record.retries, MOST_RETRIES)]
        tally.attempts += 1
        if self._primary is None:
            return
        value = counted_value(self._primary, record.outcome, record.metrics)
        if value is not None:
            tally.values.append(value)
            tally.tasks.append(task)

    def result(self, *, primary: str, plan: Mapping[str, Any], planned_attempts: int) -> RunTally:
        """Close the tally against what was planned."""
        k = max(_whole(plan.get("k")), self._most_attempts())
        strategy = str(plan.get("strategy") or "avg")
        early_stop = plan.get("early_stop")
        return RunTally(
            specs=self._specs,
            metrics=self._metrics,
            primary=primary,
            k=k,
            strategy=strategy,
            early_stop=strategy == "pass" if early_stop is None else bool(early_stop),
            categories=self._categories,
            clusters=self._clusters,
            skipped=self._skipped,
            planned_tasks=max(len(self._numbers), -(-planned_attempts // k)),
            planned_attempts=planned_attempts,
            counted_attempts=self._counted,
            retried=self._retried if any(one.attempts for one in self._retried[1:]) else (),
        )

    def _most_attempts(self) -> int:
        """No more than the plan's k, unless `run.json` lost its plan."""
        return max(
            (
                tally.counted[task] + tally.excluded[task] + skipped
                for tally in self._metrics
                for task, skipped in enumerate(self._skipped)
            ),
            default=1,
        )

    def _add_task(self, record: AttemptRecord) -> int:
        number = self._numbers[record.task_id] = len(self._numbers)
        self._categories.append(None if record.category is None else intern(record.category))
        self._clusters.append(None if record.cluster is None else intern(record.cluster))
        self._skipped.append(0)
        for tally in self._metrics:
            tally.add_task()
        return number


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1


def metric_specs(benchmark_info: Mapping[str, Any]) -> tuple[MetricSpec, ...]:
    """Read the metrics of `run.json`'s `benchmark_info`; what is malformed is left out."""
    found: list[MetricSpec] = []
    given = benchmark_info.get("metrics")
    listed: Iterable[Any] = given if isinstance(given, list | tuple) else ()
    for data in listed:
        try:
            bounds = data["bounds"]
            found.append(
                MetricSpec(
                    name=str(data["name"]),
                    kind="binary" if data["kind"] == "binary" else "scalar",
                    higher_is_better=bool(data["higher_is_better"]),
                    bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
                    on_failure=None if data["on_failure"] is None else float(data["on_failure"]),
                )
            )
        except (KeyError, TypeError, ValueError, IndexError):
            continue
    return tuple(found)
