"""`compare`: two runs of the same tasks, task by task; `steelyard compare`, as a call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from steelyard.config.errors import Where
from steelyard.sdk.faults import UnusableArgument
from steelyard.sdk.results import RunResult

if TYPE_CHECKING:
    from steelyard.results.comparison import Compared
    from steelyard.results.comparison import Difference as PairedMean

RunLike = RunResult | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean of differences, second run less first, over tasks."""

    value: float
    standard_error: float | None
    """Clustered by task, or by the benchmark's clusters."""
    interval: tuple[float, float] | None
    """At 95%; None where `note` says why there is none."""
    tasks: int
    clusters: int
    note: str | None

    def __str__(self) -> str:
        sure = self.note or "no interval"
        if self.interval is not None:
            sure = f"[{self.interval[0]:+.3f}, {self.interval[1]:+.3f}]"
        return f"{self.value:+.3f} {sure}"


@dataclass(frozen=True, slots=True)
class TaskDifference:
    """One task in both runs."""

    task_id: str
    first: float
    second: float
    category: str | None

    @property
    def difference(self) -> float:
        """The second run's figure less the first's."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one run to another; see "compare runs" in the docs."""

    metric: str
    estimator: str
    """`avg@k` or `pass@k`; without k where the runs differ in it."""
    higher_is_better: bool
    first: Path
    """The run directories, as are the next."""
    second: Path
    difference: Difference
    p: float | None
    """Two-sided; None where no task differs."""
    test: str
    """`mcnemar` or `sign_flip`; both exact unless `p_standard_error` is given."""
    p_standard_error: float | None
    """Of a p from drawn patterns of signs; None where all were counted."""
    wins: int
    """Tasks at which the second run is better."""
    ties: int
    losses: int
    is_official: bool
    """False where planned attempts of either run are missing."""
    bounds: tuple[float, float] | None
    """What missing attempts could make of the difference; None: anything."""
    minimum_detectable: float | None
    """The smallest difference that so many tasks show in four of five cases."""
    only_first: tuple[str, ...]
    """Ids of tasks that the first run alone has."""
    only_second: tuple[str, ...]
    tasks: tuple[TaskDifference, ...]
    """Every paired task."""
    categories: Mapping[str, Difference]
    cost_usd: Difference | None
    """Per attempt; None where no task's costs are known in both."""
    agent_s: Difference | None
    """Per attempt."""
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        p = "no p" if self.p is None else f"p {self.p:.4f}"
        mark = "" if self.is_official else ", not official"
        return (
            f"{self.metric} {self.estimator}: {self.difference}, {p} ({self.test}); "
            f"{self.wins} wins, {self.ties} ties, {self.losses} losses{mark}"
        )


def compare(
    first: RunLike, second: RunLike, *, metric: str | None = None, common_only: bool = False
) -> Comparison:
    """Compare two runs of the same tasks: `steelyard compare`, as a call.

    Args:
        first: a result, a run directory, or the folder of a request's runs, whose newest is taken.
        second: the same; differences are its figures less the first's.
        metric: the primary one by default.
        common_only: where tasks differ, compare those that both have.

    Raises:
        BadInput: one is no run, or they answer different questions: says which.
    """
    from steelyard.results.comparison import compare_runs

    roots = [_root(first, "first"), _root(second, "second")]
    (found,) = compare_runs(roots, metric=metric, common_only=common_only)
    return _comparison(found)


def _root(run: object, name: str) -> Path:
    from steelyard.results.newest import newest_run

    if isinstance(run, RunResult):
        if run.run_dir is None:
            raise UnusableArgument(
                f"{run.name} never began", where=Where(field=name), remedy="give a run that did"
            )
        return run.run_dir
    if isinstance(run, str | os.PathLike):
        return newest_run(Path(os.fsdecode(run))).root
    raise UnusableArgument(
        f"a value of type {type(run).__name__} is no run",
        where=Where(field=name),
        remedy="give a RunResult, or the path of a run directory",
    )


def _comparison(found: Compared) -> Comparison:
    return Comparison(
        metric=found.asked.metric,
        estimator=found.asked.label,
        higher_is_better=found.asked.spec.higher_is_better,
        first=found.first.root,
        second=found.second.root,
        difference=_difference(found.difference),
        p=found.test.p,
        test=found.test.name,
        p_standard_error=found.test.standard_error,
        wins=found.tally.wins,
        ties=found.tally.ties,
        losses=found.tally.losses,
        is_official=found.is_official,
        bounds=found.bounds,
        minimum_detectable=found.detectable,
        only_first=found.only_first,
        only_second=found.only_second,
        tasks=tuple(
            TaskDifference(pair.task_id, pair.first, pair.second, pair.category)
            for pair in found.pairs
        ),
        categories=MappingProxyType(
            {name: _difference(each) for name, (each, _) in found.categories.items()}
        ),
        cost_usd=None if found.cost_usd is None else _difference(found.cost_usd),
        agent_s=None if found.agent_s is None else _difference(found.agent_s),
        warnings=found.warnings,
    )


def _difference(found: PairedMean) -> Difference:
    return Difference(
        found.value,
        found.standard_error,
        found.interval,
        found.tasks,
        found.clusters,
        found.note,
    )
