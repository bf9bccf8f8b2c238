"""One run, task by task: what a comparison pairs. Numbers and ids only; no record is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any, Final

from steelyard.components.benchmark import MetricSpec
from steelyard.results.documents import part
from steelyard.results.reader import RunReader, RunState
from steelyard.results.records import AttemptRecord
from steelyard.results.summary import planned_without, summarise
from steelyard.results.tallies import RunTally, Tallier, metric_specs

MEAN: Final = "avg"
ANY: Final = "pass"


@dataclass(slots=True)
class TaskFacts:
    """What is known of one task besides its metrics."""

    evaluation: str | None = None
    """The evaluation identity; None where no attempt says one."""
    generation: str | None = None
    content: str | None = None
    """The digest of what an agent is shown; None where no attempt says one."""
    attempts: int = 0
    """That were executed."""
    cost_usd: float | None = 0.0
    """Of all of them; None where one has no known price."""
    agent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """What a run says of one task in one metric."""

    value: float | None
    """Over what was counted; None where nothing is known, or the benchmark leaves it out."""
    low: float | None
    """The least and the most that missing attempts could make of it; None where that is not
    bounded."""
    high: float | None
    is_left_out: bool = False
    """By the benchmark's own rule for failures."""


@dataclass(frozen=True, slots=True)
class RunTable:
    """A run, ready to be paired with another."""

    root: Path
    run_id: str
    request: str
    """The request's name."""
    document: Mapping[str, Any]
    metrics: Mapping[str, Any]
    """What `metrics.json` holds."""
    tally: RunTally
    numbers: Mapping[str, int]
    """A task's number in the tally, by its id; only tasks with a record."""
    facts: Mapping[str, TaskFacts]
    is_running: bool
    left_out: frozenset[str] = field(default=frozenset())
    """Tasks that a calibration leaves out of the score."""

    @property
    def primary(self) -> str:
        """The primary metric's name."""
        return self.tally.primary

    @property
    def unseen_tasks(self) -> int:
        """Planned ones without any record: their ids are not known."""
        return max(0, self.tally.planned_tasks - self.tally.seen_tasks)

    @property
    def stops_early(self) -> bool:
        """True where attempts were skipped, or could have been, after a success."""
        return self.tally.k > 1 and (self.tally.early_stop or any(self.tally.skipped))

    @property
    def metric_names(self) -> list[str]:
        """Every metric, in the benchmark's order."""
        return [spec.name for spec in self.tally.specs]

    def spec(self, metric: str) -> MetricSpec:
        """Give a metric's description; `KeyError` where there is none."""
        return {spec.name: spec for spec in self.tally.specs}[metric]

    def figures(self, metric: str, estimator: str) -> Iterator[tuple[str, Figure]]:
        """Iterate over tasks, with what each comes to by `avg` or `pass` over its k attempts."""
        index = self.metric_names.index(metric)
        for task_id, number in self.numbers.items():
            if estimator == MEAN:
                yield task_id, self._mean(index, number)
            else:
                yield task_id, self._passed(index, number)

    def category(self, task_id: str) -> str | None:
        """Give a task's category."""
        return self.tally.categories[self.numbers[task_id]]

    def cluster(self, task_id: str) -> str | None:
        """Give the benchmark's cluster of a task."""
        return self.tally.clusters[self.numbers[task_id]]

    def _mean(self, index: int, task: int) -> Figure:
        column, spec, k = self.tally.metrics[index], self.tally.specs[index], self.tally.k
        if column.excluded[task]:
            return Figure(None, None, None, is_left_out=True)
        counted, total = column.counted[task], column.totals[task]
        missing = max(0, k - counted)
        value = total / counted if counted else None
        if not missing:
            return Figure(value, value, value)
        if spec.bounds is None:
            return Figure(value, None, None)
        low, high = ((total + missing * bound) / k for bound in spec.bounds)
        return Figure(value, low, high)

    def _passed(self, index: int, task: int) -> Figure:
        column, spec = self.tally.metrics[index], self.tally.specs[index]
        is_stopped = spec.name == self.tally.primary and self.tally.skipped[task] > 0
        if column.successes[task] or is_stopped:
            return Figure(1.0, 1.0, 1.0)
        if column.excluded[task]:
            return Figure(None, None, None, is_left_out=True)
        if column.counted[task] >= self.tally.k:
            return Figure(0.0, 0.0, 0.0)
        return Figure(None, 0.0, 1.0)


def read_table(root: Path) -> RunTable:
    """Read a run.

    Raises:
        RunUnreadable: this is no run, or its files cannot be used.
        FutureSchema: a newer version wrote it.
    """
    metrics = summarise(root)
    reader = RunReader(root)
    info = part(reader.document, "benchmark_info")
    left_out = frozenset((metrics.get("calibration") or {}).get("left_out") or ())
    tallier = Tallier(metric_specs(info))
    facts: dict[str, TaskFacts] = {}
    for record in reader.records():
        if record.task_id not in left_out:
            tallier.add(record)
            _note(facts.setdefault(record.task_id, TaskFacts()), record)
    plan = reader.plan
    planned = planned_without(reader.settled_ledger.planned, plan, left_out)
    tally = tallier.result(primary=str(info.get("primary")), plan=plan, planned_attempts=planned)
    return RunTable(
        root=root,
        run_id=reader.run_id,
        request=str(metrics["request"] or root.parent.name),
        document=reader.document,
        metrics=metrics,
        tally=tally,
        numbers=tallier.numbers,
        facts=facts,
        is_running=reader.state is RunState.RUNNING,
        left_out=left_out,
    )


def _note(facts: TaskFacts, record: AttemptRecord) -> None:
    if record.evaluation is not None:
        facts.evaluation = intern(record.evaluation)
    if record.generation is not None:
        facts.generation = intern(record.generation)
    if record.content is not None:
        facts.content = record.content
    if not record.executions and record.reused_from is None:
        return
    facts.attempts += 1
    cost = record.usage.cost_usd
    facts.cost_usd = None if cost is None or facts.cost_usd is None else facts.cost_usd + cost
    facts.agent_s += record.timing.agent_s
