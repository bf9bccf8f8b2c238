"""Rows as columns: one table of names and types, for every format that has columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import orjson

from steelyard.evalset.rows import Row

_TYPES: Final[Mapping[str, str]] = {
    "cell": "int", "pack_version": "int", "repeat": "int", "seed": "int", "attempt": "int",
    "score": "float", "cost_usd": "float", "input_tokens": "int", "output_tokens": "int",
    "requests": "int", "queued_s": "float", "setup_s": "float", "agent_s": "float",
    "waited_s": "float", "collect_s": "float", "evaluate_s": "float", "duration_s": "float",
    "executions": "int", "is_reused": "bool", "is_flagged": "bool",
}  # fmt: skip
"""Of the columns that are no texts."""
METRIC: Final = "metric_"
"""Before a metric's name in its column."""


def column_types(metrics: Iterable[str]) -> dict[str, str]:
    """Give every column with its type: `text`, `int`, `float` or `bool`.

    A metric has a column of its own, true and false as 1 and 0; `metrics` holds all of them as
    JSON, those too that no pack declares.
    """
    found = {field.name: _TYPES.get(field.name, "text") for field in fields(Row)}
    return found | {f"{METRIC}{name}": "float" for name in metrics}


def cells_of(metrics: Sequence[str]) -> Callable[[Row], list[Any]]:
    """Give what makes a row a list, in the order of `column_types`."""
    names = [field.name for field in fields(Row)]

    def cells(row: Row) -> list[Any]:
        found = [_CELL.get(name, _same)(getattr(row, name)) for name in names]
        for name in metrics:
            value = row.metrics.get(name)
            found.append(None if value is None else float(value))
        return found

    return cells


def row_json(row: Row) -> dict[str, Any]:
    """Give a row as an object: metrics and issue codes stay what they are."""
    return {field.name: getattr(row, field.name) for field in fields(Row)} | {
        "outcome": row.outcome.value,
        "metrics": dict(row.metrics),
        "issue_codes": list(row.issue_codes),
    }


def _same(value: Any) -> Any:
    return value


_CELL: Final[Mapping[str, Callable[[Any], Any]]] = {
    "metrics": lambda value: orjson.dumps(dict(value)).decode(),
    "outcome": lambda value: value.value,
    "issue_codes": ",".join,
}
