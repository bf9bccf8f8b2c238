"""May two runs be compared, and in what? Their tasks, and the metric that both have. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.components.benchmark import MetricSpec
from steelyard.config.errors import BadInput, Where
from steelyard.config.validation import nearest
from steelyard.results.documents import part
from steelyard.results.task_table import ANY, MEAN, RunTable

MAX_NAMED: Final = 5
"""Tasks that a message names."""


class NotComparable(BadInput):
    """Two runs that answer different questions."""


class DifferentTasks(NotComparable):
    """The tasks of two runs are not the same ones, and nobody said to take those that are."""


class UnknownMetric(BadInput):
    """A metric that a run does not have."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is compared: a metric, and how a task's attempts become one figure."""

    metric: str
    estimator: str
    """`avg` or `pass`."""
    spec: MetricSpec
    k: int | None
    """Attempts at a task in both runs; None where they differ."""

    @property
    def label(self) -> str:
        """`avg@3`; without k where the runs differ in it."""
        return self.estimator if self.k is None else f"{self.estimator}@{self.k}"

    @property
    def is_one_binary_attempt(self) -> bool:
        """True where each task has one yes or no."""
        return self.spec.kind == "binary" and self.k == 1


@dataclass(frozen=True, slots=True)
class Common:
    """Which tasks can be paired."""

    task_ids: tuple[str, ...]
    """In the order of the first run."""
    differing: tuple[str, ...]
    """In both by name, with another content in each; left out."""
    doubts: tuple[str, ...]
    """What differs between the benchmarks, so that equal content cannot be shown."""


def question(first: RunTable, second: RunTable, metric: str | None = None) -> Question:
    """Settle the metric and the estimator.

    Raises:
        UnknownMetric: a run has no such metric.
        NotComparable: the runs' metrics or plans are of different kinds.
    """
    for table in (first, second):
        if not table.metric_names:
            raise NotComparable(
                f"{table.root}: its run.json names no metrics",
                remedy="compare runs that say what they measured",
            )
    if metric is None:
        if first.primary != second.primary:
            raise NotComparable(
                f"the primary metrics differ: {first.primary!r} of {first.root}, "
                f"{second.primary!r} of {second.root}",
                remedy="choose one that both have with --metric",
            )
        metric = first.primary
    specs = []
    for table in (first, second):
        if metric not in table.metric_names:
            near = nearest(metric, table.metric_names)
            hint = f"did you mean {near!r}? " if near else ""
            raise UnknownMetric(
                f"{table.root} has no metric {metric!r}",
                where=Where(field="--metric"),
                remedy=f"{hint}it has: {', '.join(table.metric_names) or 'none'}",
            )
        specs.append(table.spec(metric))
    a, b = specs
    for what, was, now in (
        ("kind", a.kind, b.kind),
        ("direction", _direction(a), _direction(b)),
    ):
        if was != now:
            raise NotComparable(
                f"the {what} of {metric!r} differs: {was} in {first.root}, {now} in {second.root}",
                remedy="these are different metrics of one name; choose another with --metric",
            )
    return _estimated(first, second, metric, a)


def _estimated(first: RunTable, second: RunTable, metric: str, spec: MetricSpec) -> Question:
    k = first.tally.k if first.tally.k == second.tally.k else None
    if not (first.stops_early or second.stops_early):
        return Question(metric, MEAN, spec, k)
    if spec.kind != "binary" or not spec.higher_is_better:
        raise NotComparable(
            f"a run stopped tasks at their first success, so the mean of {metric!r} over attempts "
            "says nothing of the benchmark",
            remedy="compare runs with `early_stop: false`, or the primary metric",
        )
    if k is None:
        raise NotComparable(
            f"a run stopped tasks at their first success, and the runs have k = {first.tally.k} "
            f"and k = {second.tally.k}: pass@k of different k are different questions",
            remedy="compare runs of one k",
        )
    return Question(metric, ANY, spec, k)


def _direction(spec: MetricSpec) -> str:
    return "higher is better" if spec.higher_is_better else "lower is better"


def common_tasks(first: RunTable, second: RunTable, *, common_only: bool = False) -> Common:
    """Find the tasks that both runs have with the same content.

    The evaluation identity covers the benchmark, its version, what of its parameters can change a
    score, and the task's own content; the digest of its content what the agent was shown, whichever
    model and harness it was. Records of earlier versions have none: there the generation identity
    tells where harness and model are the same as well.

    Raises:
        DifferentTasks: contents differ, and `common_only` is not set.
        NotComparable: there is no task in common, or the benchmarks are different ones.
    """
    fields = list(_differing_fields(first.document, second.document))
    benchmarks = [part(dict(t.document), "benchmark_info").get("id") for t in (first, second)]
    if benchmarks[0] != benchmarks[1]:
        raise NotComparable(
            f"the benchmarks differ: {benchmarks[0]!r} in {first.root}, "
            f"{benchmarks[1]!r} in {second.root}",
            remedy="compare runs of one benchmark",
        )
    shared = [task_id for task_id in first.numbers if task_id in second.numbers]
    if not shared:
        raise NotComparable(
            f"no task has a record in both {first.root} and {second.root}",
            remedy="compare runs of the same tasks",
        )
    sees_prompts = _generation(first.document) == _generation(second.document) is not None
    differing = tuple(
        task_id
        for task_id in shared
        if (not fields and _differs(first, second, task_id, "evaluation"))
        or _differs(first, second, task_id, "content")
        or (sees_prompts and _differs(first, second, task_id, "generation"))
    )
    if (fields or differing) and not common_only:
        raise DifferentTasks(
            "the runs answer different questions: "
            + "; ".join(_said(fields, differing, len(shared))),
            where=Where(file=str(second.root)),
            remedy="compare runs of one version of the benchmark, or only the tasks that both have "
            "with --common-only",
        )
    kept = tuple(task_id for task_id in shared if task_id not in set(differing))
    if not kept:
        raise NotComparable(
            f"no task is the same in {first.root} and {second.root}",
            remedy="compare runs of one version of the benchmark",
        )
    doubts = tuple(f"{name} was {was!r}, is {now!r}" for name, was, now in fields)
    return Common(kept, differing, doubts)


def _said(
    fields: list[tuple[str, Any, Any]], differing: tuple[str, ...], shared: int
) -> Iterator[str]:
    for name, was, now in fields:
        yield f"{name} is {was!r} and {now!r}"
    if differing:
        named = ", ".join(map(repr, differing[:MAX_NAMED]))
        more = ", …" if len(differing) > MAX_NAMED else ""
        yield f"the content of {len(differing)} of {shared} tasks differs ({named}{more})"


def _differs(first: RunTable, second: RunTable, task_id: str, identity: str) -> bool:
    was = getattr(first.facts[task_id], identity)
    now = getattr(second.facts[task_id], identity)
    return None not in (was, now) and bool(was != now)


def _generation(document: Mapping[str, Any]) -> Any:
    return part(dict(document), "identities").get("generation")


def _differing_fields(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Compare what the evaluation identities of all tasks have in common."""
    was, now = _benchmark(first), _benchmark(second)
    for name in sorted({*was, *now}):
        if was.get(name) != now.get(name):
            yield f"benchmark.{name}", was.get(name), now.get(name)


def _benchmark(document: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten the benchmark's part of the evaluation identity; of `benchmark_info` without one."""
    parts = part(part(dict(document), "identities"), "evaluation").get("benchmark")
    if not isinstance(parts, dict):
        parts = {k: part(dict(document), "benchmark_info").get(k) for k in ("id", "version")}
    flat: dict[str, Any] = {}
    for name, value in parts.items():
        if name == "params" and isinstance(value, dict):
            flat |= {f"params.{key}": each for key, each in value.items()}
        else:
            flat[name] = value
    return flat


def check_distinct(roots: list[Path]) -> None:
    """Refuse to compare a run with itself.

    Raises:
        NotComparable: two paths lead to one run.
    """
    seen: dict[Path, Path] = {}
    for root in roots:
        if (twin := seen.get(root.resolve())) is not None:
            raise NotComparable(
                f"{root} is the same run as {twin}",
                where=Where(file=str(root)),
                remedy="name two runs; a folder of runs stands for its newest",
            )
        seen[root.resolve()] = root
