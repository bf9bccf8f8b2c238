"""A report in each of its formats, part by part."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from steelyard.components.issues import Outcome
from steelyard.config import printable
from steelyard.evalset.comparison_text import comparison_json
from steelyard.evalset.report.report import ReadSet, Row
from steelyard.evalset.report.report_text import report_sections
from steelyard.evalset.safe_csv import safe_cell
from steelyard.results.comparison_text import markdown_text, text_lines
from steelyard.results.consumption import without_noise
from steelyard.results.junit import launch_junit
from steelyard.results.lines import json_bytes

if TYPE_CHECKING:
    from steelyard.evalset.gates import Held

_SCOPES: Final = ("whole", "agent", "pack", "model", "combination", "cell")
CSV_COLUMNS: Final = (
    "scope", "pack", "agent", "model", "repeat", "matrix_key", "metric", "estimator", "value",
    "low", "high", "interval_method", "cases", "clusters", "note", "official_value",
    "failures_as_zero", "worst", "best", "planned", "counted", "excluded", "missing",
    "cost_usd", "known_cost_usd", "cost_usd_per_attempt", "p50_s", "p95_s",
    *(outcome.value for outcome in Outcome),
)  # fmt: skip


TableLines = Callable[[Sequence[str], Sequence[Sequence[object]]], list[str]]


def report_parts(
    read: ReadSet, held: Held, form: str, *, limit: int, table_lines: TableLines
) -> Iterator[str]:
    """Give a report in a format.

    Args:
        read: the set.
        held: what came of its gates and its baseline.
        form: `table`, `json`, `csv`, `markdown`, `junit` or `html`.
        limit: rows of tables that grow with the matrix; 0 for all.
        table_lines: how a terminal's table is laid out.
    """
    report = read.report
    if form == "json":
        yield json_text(report_json(read, held))
    elif form == "csv":
        yield from _csv(read)
    elif form == "junit":
        runs = [(one.cell.matrix_key, one.run) for one in read.cells]
        yield from launch_junit(runs, held.results)
    elif form == "html":
        from steelyard.evalset.report.page import page

        yield page(read, held)
    else:
        laid = report_sections(report, held.results, limit=limit)
        if form == "markdown":
            yield markdown_text(laid, (*report.warnings, *held.warnings))
        else:
            yield from (f"{line}\n" for line in text_lines(laid, table_lines))


def report_json(read: ReadSet, held: Held) -> dict[str, Any]:
    """Give the document `evalset-report/1`."""
    return {
        **read.report.as_json(),
        "gates": [result.as_json() for result in held.results],
        "baseline": None if held.comparison is None else comparison_json(held.comparison),
    }


def json_text(document: Mapping[str, Any]) -> str:
    """Write a JSON document so that it may be looked at."""
    text = json_bytes(document, orjson.OPT_INDENT_2).decode()
    return f"{printable.json_lines(text)}\n"


def _csv(read: ReadSet) -> Iterator[str]:
    """Give a line for every score of every row."""
    report = read.report
    yield _line(CSV_COLUMNS)
    of_scope: dict[str, Sequence[Row]] = {
        "whole": [report.whole],
        "agent": report.agents,
        "pack": report.packs,
        "model": report.models,
        "combination": report.combinations,
        "cell": report.cells,
    }
    for scope in _SCOPES:
        for row in of_scope[scope]:
            for score in row.scores or ({},):
                yield _line(_csv_row(scope, row, score))


def _csv_row(scope: str, row: Row, score: Mapping[str, Any]) -> tuple[object, ...]:
    names, estimate = row.names, score.get("estimate") or {}
    low, high = estimate.get("interval") or (None, None)
    worst, best = score.get("bounds") or (None, None)
    coverage, cost = score.get("coverage") or {}, row.cost_per_attempt or {}
    return (
        scope, names.pack, names.agent, names.model, names.repeat, names.matrix_key, row.metric,
        score.get("estimator"), estimate.get("value"), low, high,
        estimate.get("interval_method"), estimate.get("tasks"), estimate.get("clusters"),
        estimate.get("note") or row.note, score.get("official"), score.get("failures_as_zero"),
        worst, best, row.planned, coverage.get("counted"), coverage.get("excluded"),
        coverage.get("missing"), without_noise(row.cost_usd), without_noise(row.known_usd),
        cost.get("value"), row.p50_s, row.p95_s,
        *(row.outcomes.get(outcome, 0) for outcome in Outcome),
    )  # fmt: skip


def _line(cells: Sequence[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow([safe_cell(cell) for cell in cells])
    return buffer.getvalue()
