"""Runs as tables: one row an attempt, flat columns of fixed types. Nothing is imported unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from steelyard.components.issues import Severity
from steelyard.results.documents import part
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.results.tallies import metric_specs
from steelyard.sdk.faults import PackageMissing

if TYPE_CHECKING:
    import pandas
    import polars

    from steelyard.sdk.results import RunResult

METRIC_PREFIX: Final = "metrics."
"""Before the name of a metric, so that none can be taken for another column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, and where it stands in a record."""

    name: str
    kind: str
    """`text`, `count`, `number`, `truth` or `time`."""
    of: Callable[[AttemptRecord], Any]


def _when(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None  # a damaged record


_RANK: Final = {Severity.FATAL: 0, Severity.ERROR: 1, Severity.WARNING: 2}


def _worst(record: AttemptRecord, field: str) -> Any:
    issue = min(record.last_issues, key=lambda one: _RANK[one.severity], default=None)
    found = None if issue is None else getattr(issue, field)
    return getattr(found, "value", found)


COLUMNS: Final = (
    Column("task_id", "text", lambda r: r.task_id),
    Column("attempt", "count", lambda r: r.attempt),
    Column("outcome", "text", lambda r: r.outcome.value),
    Column("category", "text", lambda r: r.category),
    Column("cluster", "text", lambda r: r.cluster),
    Column("answer", "text", lambda r: r.answer),
    Column("answer_file", "text", lambda r: r.answer_file),
    Column("issue_severity", "text", lambda r: _worst(r, "severity")),
    Column("issue_phase", "text", lambda r: _worst(r, "phase")),
    Column("issue_code", "text", lambda r: _worst(r, "code")),
    Column("issue_message", "text", lambda r: _worst(r, "message")),
    Column("executions", "count", lambda r: r.executions),
    Column("trust", "text", lambda r: None if r.trust is None else r.trust.value),
    Column("reused_from", "text", lambda r: (r.reused_from or {}).get("run_id")),
    Column("input_tokens", "count", lambda r: r.usage.input_tokens),
    Column("output_tokens", "count", lambda r: r.usage.output_tokens),
    Column("cached_tokens", "count", lambda r: r.usage.cached_tokens),
    Column("reasoning_tokens", "count", lambda r: r.usage.reasoning_tokens),
    Column("model_calls", "count", lambda r: r.usage.requests),
    Column("cost_usd", "number", lambda r: r.usage.cost_usd),
    Column("queued_s", "number", lambda r: r.timing.queued_s),
    Column("setup_s", "number", lambda r: r.timing.setup_s),
    Column("agent_s", "number", lambda r: r.timing.agent_s),
    Column("waited_s", "number", lambda r: r.timing.waited_s),
    Column("collect_s", "number", lambda r: r.timing.collect_s),
    Column("evaluate_s", "number", lambda r: r.timing.evaluate_s),
    Column("started_at", "time", lambda r: _when(r.timing.started_at)),
    Column("finished_at", "time", lambda r: _when(r.timing.finished_at)),
    Column("trajectory", "text", lambda r: (r.trajectory or {}).get("path")),
)
"""What every frame has, after `request` and `run_id`; then a column for each metric."""


@dataclass(slots=True)
class _Table:
    """Columns being filled: kind and values by name, all of one length."""

    kinds: dict[str, str]
    values: dict[str, list[Any]]


def _table(runs: Iterable[RunResult]) -> _Table:
    fixed = {"request": "text", "run_id": "text"} | {each.name: each.kind for each in COLUMNS}
    table = _Table(dict(fixed), {name: [] for name in fixed})
    rows = 0
    for run in runs:
        if run.run_dir is None:
            continue  # it never began
        reader = RunReader(run.run_dir)
        for spec in metric_specs(part(reader.document, "benchmark_info")):
            kind = "truth" if spec.kind == "binary" else "number"
            _metric_column(table, spec.name, kind, rows)
        for record in reader.records():
            table.values["request"].append(run.name)
            table.values["run_id"].append(run.run_id)
            for column in COLUMNS:
                table.values[column.name].append(column.of(record))
            for name in record.metrics:
                if METRIC_PREFIX + name not in table.kinds:  # one that the benchmark never named
                    _metric_column(table, name, "number", rows)
            for key in list(table.kinds)[len(fixed) :]:
                table.values[key].append(record.metrics.get(key.removeprefix(METRIC_PREFIX)))
            rows += 1
    for key in list(table.kinds)[len(fixed) :]:
        table.values[key] = [_as_kind(value, table.kinds[key]) for value in table.values[key]]
    return table


def _metric_column(table: _Table, metric: str, kind: str, rows: int) -> None:
    name = METRIC_PREFIX + metric
    if name not in table.kinds:
        table.kinds[name] = kind
        table.values[name] = [None] * rows
    elif kind != table.kinds[name]:
        table.kinds[name] = "number"  # truths of one run beside numbers of another


def _as_kind(value: float | bool | None, kind: str) -> float | bool | None:
    if value is None:
        return None
    return bool(value) if kind == "truth" else float(value)


def _imported(package: str) -> ModuleType:
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise PackageMissing(package, f"to_{package}") from error


def pandas_frame(runs: Sequence[RunResult]) -> pandas.DataFrame:
    """Give the attempts of some runs, in order, as a pandas frame.

    Text is `string`, counts are `Int64`, truths `boolean` (all with NA for what is missing),
    numbers `float64` (NaN), times `datetime64[us, UTC]` (NaT).

    Raises:
        PackageMissing: pandas is not installed.
        RunUnreadable: a run directory cannot be read.
    """
    pd = _imported("pandas")
    dtypes = {"text": "string", "count": "Int64", "truth": "boolean", "number": "float64",
              "time": "datetime64[us, UTC]"}  # fmt: skip
    table = _table(runs)
    frame: pandas.DataFrame = pd.DataFrame(
        {
            name: pd.Series(table.values[name], dtype=dtypes[kind])
            for name, kind in table.kinds.items()
        }
    )
    return frame


def polars_frame(runs: Sequence[RunResult]) -> polars.DataFrame:
    """Give the attempts of some runs, in order, as a polars frame.

    Text is `String`, counts are `Int64`, truths `Boolean`, numbers `Float64`, times
    `Datetime("us", "UTC")`, null for what is missing.

    Raises:
        PackageMissing: polars is not installed.
        RunUnreadable: a run directory cannot be read.
    """
    pl = _imported("polars")
    dtypes = {"text": pl.String, "count": pl.Int64, "truth": pl.Boolean, "number": pl.Float64,
              "time": pl.Datetime("us", "UTC")}  # fmt: skip
    table = _table(runs)
    frame: polars.DataFrame = pl.DataFrame(
        [
            pl.Series(name, table.values[name], dtype=dtypes[kind])
            for name, kind in table.kinds.items()
        ]
    )
    return frame
