"""The conformance suite of benchmarks: what every benchmark must do, as checks anyone can run.

::

    @pytest.mark.parametrize("check", benchmark_suite(MyBenchmark, {"split": "test"}), ids=str)
    def test_it_keeps_the_contract(check: Check) -> None:
        check()

The clauses themselves stand in `benchmark_checks` and `benchmark_scoring_checks`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.components.benchmark import Benchmark, MetricSpec, Task
from steelyard.components.environment import Environment
from steelyard.components.harness import Harness
from steelyard.components.registry import Kind, find
from steelyard.engine.spec import ExecutionResult
from steelyard.testing.attempts import FixedAnswer, run_attempt
from steelyard.testing.checks import Check, Clauses
from steelyard.testing.fake_model import Answer

CLAUSES: Final[Clauses[BenchmarkSubject]] = Clauses()

WRONG_ANSWERS: Final = ("I do not know.", "", "0", "x" * 1000)


@dataclass(frozen=True, slots=True)
class BenchmarkSubject:
    """A benchmark under test, and a world for it to run in."""

    component: type[Benchmark]
    params: Mapping[str, Any]
    task_count: int
    make_environment: Callable[[], Environment] | None
    hidden: Callable[[Task], Sequence[str]] | None
    wrong_answers: tuple[str, ...]
    judge: tuple[Answer, ...]

    def make(self) -> Benchmark:
        """Make an instance, as the engine does."""
        return self.component(self.component.Params.model_validate(dict(self.params)))

    def tasks(self, benchmark: Benchmark) -> Sequence[Task]:
        """Load the tasks, and give those that are looked at: spread over all of them."""
        tasks = benchmark.load_tasks()
        step = max(1, len(tasks) // self.task_count)
        return tasks[::step][: self.task_count]

    def environment(self, benchmark: Benchmark) -> Environment:
        """Make an environment: a sandbox where scoring runs what a model wrote."""
        if self.make_environment is not None:
            return self.make_environment()
        name = "sandbox" if benchmark.info().runs_model_code else "host_process"
        component = find(Kind.ENVIRONMENT, name).component
        made: Environment = component(component.Params())
        return made

    async def attempt(self, benchmark: Benchmark, task: Task, harness: Harness) -> ExecutionResult:
        """Run one attempt through the engine."""
        environment = self.environment(benchmark)
        try:
            return await run_attempt(benchmark, task, harness, environment, judge=self.judge)
        finally:
            await environment.close()

    async def answered(
        self, benchmark: Benchmark, task: Task, answer: str | None
    ) -> ExecutionResult:
        """Run one attempt with a given answer."""
        return await self.attempt(benchmark, task, FixedAnswer(answer))


def primary_metric(benchmark: Benchmark) -> MetricSpec:
    """The metric that stands for the benchmark."""
    info = benchmark.info()
    return next(metric for metric in info.metrics if metric.name == info.primary)


def is_best(metric: MetricSpec, value: float | bool) -> bool:
    """True where a value is the best that the metric can have; for none without bounds."""
    if metric.kind == "binary":
        return bool(value) is metric.higher_is_better
    if metric.bounds is None:
        return False
    return float(value) == metric.bounds[1 if metric.higher_is_better else 0]


def benchmark_suite(
    component: type[Benchmark],
    params: Mapping[str, Any] | None = None,
    *,
    tasks: int = 3,
    environment: Callable[[], Environment] | None = None,
    hidden: Callable[[Task], Sequence[str]] | None = None,
    wrong_answers: Sequence[str] = WRONG_ANSWERS,
    judge: Sequence[Answer] = (),
    leave_out: Collection[str] = (),
) -> tuple[Check, ...]:
    """Give the conformance checks of a benchmark.

    Args:
        component: the class.
        params: its parameters, as people write them.
        tasks: how many tasks are run; what is checked of all of them is read, not run.
        environment: makes the environment; by default `sandbox` where the benchmark runs what a
            model wrote, else `host_process`.
        hidden: texts of a task that an agent must not be shown; by default the reference's answer,
            where it is too long to stand in a prompt by chance.
        wrong_answers: answers that no task accepts.
        judge: what the scorer's own model says, where it asks one.
        leave_out: clauses that it does not claim to keep: those about the reference, where its
            tasks have none.
    """
    # Imported here, since they import this module: each puts its clauses into the table.
    for module in ("benchmark_checks", "benchmark_scoring_checks"):
        importlib.import_module(f"steelyard.testing.{module}")
    subject = BenchmarkSubject(
        component,
        dict(params or {}),
        tasks,
        environment,
        hidden,
        tuple(wrong_answers),
        tuple(judge),
    )
    return CLAUSES.bind(subject, leave_out=leave_out)
