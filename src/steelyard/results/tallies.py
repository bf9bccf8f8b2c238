"""What scoring needs of a run, task by task: values, and why some are not there.

Numbers only; no record is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import COUNTED, Outcome
from steelyard.results.records import AttemptRecord

_FAILURES = frozenset({Outcome.FAILED_ERROR, Outcome.TIMED_OUT})


@dataclass(slots=True)
class MetricTally:
    """One metric over the attempts at one task."""

    values: list[float] = field(default_factory=list)
    """Of the attempts that count, failures by the benchmark's rule among them."""
    excluded: int = 0
    """Failures that the benchmark leaves out."""


@dataclass(slots=True)
class TaskTally:
    """The attempts at one task, so far as they were recorded."""

    category: str | None
    cluster: str | None
    metrics: tuple[MetricTally, ...]
    """In the order of the metric specs."""
    skipped: int = 0
    """Not run, because an attempt before them passed."""

    def missing(self, metric: int, k: int) -> int:
        """How many attempts have no value of a metric though one was planned."""
        tally = self.metrics[metric]
        return max(0, k - len(tally.values) - tally.excluded - self.skipped)


@dataclass(frozen=True, slots=True)
class RunTally:
    """A whole run, ready to be scored."""

    specs: tuple[MetricSpec, ...]
    primary: str
    k: int
    strategy: str
    early_stop: bool
    tasks: Mapping[str, TaskTally]
    planned_tasks: int
    """Those without any record included."""
    planned_attempts: int
    counted_attempts: int
    """With an outcome that counts: see `COUNTED`."""

    @property
    def is_official(self) -> bool:
        """True where every planned attempt counts."""
        return self.counted_attempts == self.planned_attempts > 0


class Tallier:
    """Takes records one by one."""

    def __init__(self, specs: Sequence[MetricSpec]) -> None:
        self._specs = tuple(specs)
        self._tasks: dict[str, TaskTally] = {}
        self._counted = 0

    def add(self, record: AttemptRecord) -> None:
        """Take one record into account."""
        task = self._tasks.get(record.task_id)
        if task is None:
            tallies = tuple(MetricTally() for _ in self._specs)
            task = TaskTally(record.category, record.cluster, tallies)
            self._tasks[record.task_id] = task
        self._counted += record.outcome in COUNTED
        if record.outcome is Outcome.SKIPPED_PASSED:
            task.skipped += 1
            return
        for spec, tally in zip(self._specs, task.metrics, strict=True):
            if record.outcome is Outcome.SCORED:
                value = record.metrics.get(spec.name)
                if value is not None:
                    tally.values.append(float(value))
            elif record.outcome in _FAILURES:
                if spec.on_failure is None:
                    tally.excluded += 1
                else:
                    tally.values.append(float(spec.on_failure))

    def result(self, *, primary: str, plan: Mapping[str, Any], planned_attempts: int) -> RunTally:
        """Close the tally against what was planned."""
        k = max(1, int(plan.get("k") or 1))
        strategy = str(plan.get("strategy") or "avg")
        early_stop = plan.get("early_stop")
        return RunTally(
            specs=self._specs,
            primary=primary,
            k=k,
            strategy=strategy,
            early_stop=strategy == "pass" if early_stop is None else bool(early_stop),
            tasks=self._tasks,
            planned_tasks=max(len(self._tasks), -(-planned_attempts // k)),
            planned_attempts=planned_attempts,
            counted_attempts=self._counted,
        )


def metric_specs(benchmark_info: Mapping[str, Any]) -> tuple[MetricSpec, ...]:
    """Read the metrics of `run.json`'s `benchmark_info`; what is malformed is left out."""
    found: list[MetricSpec] = []
    listed: Iterable[Any] = benchmark_info.get("metrics") or ()
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
