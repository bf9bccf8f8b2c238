"""Clauses of the benchmark contract: scoring, of the right answer and of every other."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import copy
import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from steelyard.components.benchmark import Benchmark, Task
from steelyard.components.issues import Outcome
from steelyard.components.registry import Kind, find
from steelyard.engine.spec import ExecutionResult
from steelyard.harnesses.oracle import Oracle
from steelyard.testing.benchmark_suite import (
    CLAUSES,
    BenchmarkSubject,
    is_best,
    primary_metric,
)

HOSTILE_ANSWERS: Final = {
    "10 MB": "x" * 10_000_000,
    "a NUL byte": "4\0002",
    "half a surrogate pair": "\ud800",
    "a deep list": "[" * 100_000,
    "control characters": "\x1b[2J\u202e\u2028",
}


def _scored(what: str, result: ExecutionResult) -> ExecutionResult:
    said = [f"{issue.code}: {issue.message}" for issue in result.issues]
    assert result.outcome is Outcome.SCORED, f"{what} ended {result.outcome}: {said}"
    return result


async def _play(subject: BenchmarkSubject, benchmark: Benchmark, task: Task) -> ExecutionResult:
    component: type[Oracle] = find(Kind.HARNESS, "oracle").component
    result = await subject.attempt(benchmark, task, component(component.Params()))
    return _scored(f"the reference of {task.id}", result)


@CLAUSES.add
async def the_reference_passes(subject: BenchmarkSubject) -> None:
    """Played by `oracle`, a task's reference has the best primary metric there is."""
    benchmark = subject.make()
    metric = primary_metric(benchmark)
    played = [task for task in subject.tasks(benchmark) if benchmark.reference(task) is not None]
    assert played, "no task has a reference: leave out the_reference_passes where none can have"
    for task in played:
        value = (await _play(subject, benchmark, task)).metrics[metric.name]
        if metric.kind == "binary" or metric.bounds is not None:
            assert is_best(metric, value), f"{task.id}: the reference has {metric.name} = {value}"
            continue
        nothing = _scored("no answer", await subject.answered(benchmark, task, None))
        least = nothing.metrics[metric.name]
        better = value > least if metric.higher_is_better else value < least
        assert better, f"{task.id}: the reference has {value}, and no answer {least}"


@CLAUSES.add
async def doing_nothing_does_not_pass(subject: BenchmarkSubject) -> None:
    """An agent that answers nothing and touches nothing is scored, and not with the best."""
    benchmark = subject.make()
    metric = primary_metric(benchmark)
    for task in subject.tasks(benchmark):
        result = _scored("no answer", await subject.answered(benchmark, task, None))
        value = result.metrics[metric.name]
        assert not is_best(metric, value), f"{task.id}: doing nothing has {metric.name} = {value}"


@CLAUSES.add
async def a_wrong_answer_is_a_low_score(subject: BenchmarkSubject) -> None:
    """A wrong answer is scored, and not with the best; it is no fault of anybody's."""
    benchmark = subject.make()
    metric = primary_metric(benchmark)
    for task in subject.tasks(benchmark):
        for answer in subject.wrong_answers:
            what = f"{task.id}, answered {answer[:40]!r}"
            result = _scored(what, await subject.answered(benchmark, task, answer))
            value = result.metrics[metric.name]
            assert not is_best(metric, value), f"{what}, has {metric.name} = {value}"


@CLAUSES.add
async def a_hostile_answer_is_scored(subject: BenchmarkSubject) -> None:
    """10 MB, NUL bytes, half characters, deep nesting: scored like any other wrong answer."""
    benchmark = subject.make()
    for task in subject.tasks(benchmark)[:1]:
        for what, answer in HOSTILE_ANSWERS.items():
            _scored(what, await subject.answered(benchmark, task, answer))


@CLAUSES.add
async def the_primary_metric_is_there(subject: BenchmarkSubject) -> None:
    """Every evaluation gives the primary metric."""
    benchmark = subject.make()
    primary = benchmark.info().primary
    async for what, metrics in _evaluations(subject, benchmark):
        assert primary in metrics, f"{what} has {sorted(metrics)}, not {primary}"


@CLAUSES.add
async def only_declared_metrics_are_given(subject: BenchmarkSubject) -> None:
    """An evaluation gives no metric that `info()` does not name."""
    benchmark = subject.make()
    declared = {metric.name for metric in benchmark.info().metrics}
    async for what, metrics in _evaluations(subject, benchmark):
        more = sorted(set(metrics) - declared)
        assert not more, f"{what} has {', '.join(more)}, which info() does not name"


@CLAUSES.add
async def values_are_finite_and_within_bounds(subject: BenchmarkSubject) -> None:
    """A binary metric is true or false (1 or 0), any other a finite number within its bounds."""
    benchmark = subject.make()
    specs = {metric.name: metric for metric in benchmark.info().metrics}
    async for what, metrics in _evaluations(subject, benchmark):
        for name, value in metrics.items():
            spec = specs.get(name)
            assert isinstance(value, bool | int | float), f"{what}: {name} = {value!r}"
            assert math.isfinite(value), f"{what}: {name} = {value!r}"
            if spec is not None and spec.kind == "binary":
                assert value in (0, 1), f"{what}: the binary {name} = {value!r}"
            elif spec is not None and spec.bounds is not None:
                low, high = spec.bounds
                assert low <= value <= high, f"{what}: {name} = {value!r}, bounds {spec.bounds}"


async def _evaluations(subject: BenchmarkSubject, benchmark: Benchmark) -> Any:
    """What scoring says of the first tasks, before the engine has looked at it."""
    for task in subject.tasks(benchmark):
        for what, answer in (("no answer", None), ("a wrong answer", subject.wrong_answers[0])):
            found, result = await _evaluation(subject, benchmark, task, answer)
            if found is None:
                _scored(what, result)
            yield f"{task.id}, {what}", found
        if benchmark.reference(task) is not None:
            yield f"{task.id}, its reference", (await _play(subject, benchmark, task)).metrics


async def _evaluation(
    subject: BenchmarkSubject, benchmark: Benchmark, task: Task, answer: str | None
) -> tuple[dict[str, Any] | None, ExecutionResult]:
    kept: dict[str, Any] = {}
    evaluate = benchmark.evaluate

    async def keeping(task: Task, context: Any) -> Any:
        found = await evaluate(task, context)
        kept["metrics"] = dict(found.metrics)
        return found

    benchmark.evaluate = keeping  # type: ignore[method-assign]
    try:
        result = await subject.answered(benchmark, task, answer)
    finally:
        del benchmark.evaluate
    return kept.get("metrics"), result


@CLAUSES.add
async def scoring_twice_gives_the_same(subject: BenchmarkSubject) -> None:
    """The same answer has the same score, from an instance that has loaded nothing as well."""
    benchmark, other = subject.make(), subject.make()
    for task in subject.tasks(benchmark):
        answer = subject.wrong_answers[0]
        first = _scored("a wrong answer", await subject.answered(benchmark, task, answer))
        second = _scored("a wrong answer", await subject.answered(other, task, answer))
        assert first.metrics == second.metrics, f"{first.metrics}, then {second.metrics}"


@CLAUSES.add
async def scoring_leaves_the_task_alone(subject: BenchmarkSubject) -> None:
    """`evaluate` changes no task: its content stands in the identity."""
    benchmark = subject.make()
    for task in subject.tasks(benchmark):
        before = copy.deepcopy(dict(task.data))
        await subject.answered(benchmark, task, subject.wrong_answers[0])
        assert dict(task.data) == before, f"{task.id} was changed"


@CLAUSES.add
async def scoring_needs_no_network(subject: BenchmarkSubject) -> None:
    """Scoring opens no connection of its own; a judge is asked through `context.model`."""
    benchmark = subject.make()
    for task in subject.tasks(benchmark)[:1]:
        with _no_network() as tried:
            result = await subject.answered(benchmark, task, subject.wrong_answers[0])
        assert not tried, f"scoring {task.id} reaches for {tried}"
        _scored("a wrong answer", result)


@contextmanager
def _no_network() -> Iterator[list[object]]:
    """Refuse what this process connects to or looks up, but for Unix sockets; note it."""
    tried: list[object] = []
    own: dict[str, Any] = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex")}
    lookup = socket.getaddrinfo

    def refused(place: object) -> OSError:
        tried.append(place)
        return OSError("the suite allows no network while an answer is scored")

    def guarded(name: str) -> Any:
        def call(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                raise refused(address)
            return own[name](self, address)

        return call

    def no_lookup(host: Any, port: Any, *_args: Any, **_kwargs: Any) -> Any:
        raise refused((host, port))

    for name in own:
        setattr(socket.socket, name, guarded(name))
    socket.getaddrinfo = no_lookup
    try:
        yield tried
    finally:
        for name in own:
            delattr(socket.socket, name)  # what it inherits is there again
        socket.getaddrinfo = lookup
