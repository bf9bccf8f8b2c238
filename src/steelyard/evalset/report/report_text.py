"""A set's report as tables of text, for a terminal and for Markdown alike. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from steelyard.components.issues import Outcome
from steelyard.evalset.report.report import Names, Row, SetReport
from steelyard.evalset.report.wins import AgentPair
from steelyard.results.comparison_text import (
    Cell,
    Name,
    Section,
    difference_interval,
    p_text,
    test_note,
)
from steelyard.results.consumption import dollars
from steelyard.results.figures import figure, share, signed
from steelyard.results.gates import GateResult
from steelyard.results.summary_text import estimate_interval

NONE: Final = "–"
MAX_ROWS: Final = 40
"""Of the tables of combinations and cells; JSON and CSV have them all."""
_RIGHT: Final = frozenset({Outcome.SCORED, Outcome.SKIPPED_PASSED})


def report_sections(
    report: SetReport, gates: Sequence[GateResult] = (), *, limit: int = MAX_ROWS
) -> list[Section]:
    """Lay out a report; `limit` rows of what grows with the matrix, 0 for all."""
    laid = [_head(report)]
    laid.append(_group("by agent", ("agent",), report.agents))
    if len(report.packs) > 1:
        laid.append(_group("by pack", ("pack",), report.packs))
    if len(report.models) > 1:
        laid.append(_group("by model", ("model",), report.models))
    names = ("pack", "agent", "model")
    laid.append(_group("repeats taken together", names, report.combinations, limit))
    if len(report.cells) > len(report.combinations):
        laid.append(_group("by cell", ("matrix key",), report.cells, limit))
    laid += [_wins(report.wins)] if report.wins else []
    laid += [_frontier(report)] if report.choices else []
    laid += _failures(report.agents)
    has_silent = report.scanned is not None and report.scanned.silent
    laid += [_findings(report)] if report.findings or has_silent else []
    laid += [gate_section(gates)] if gates else []
    return laid


def _head(report: SetReport) -> Section:
    whole = _group(None, (), [report.whole])
    spent = dollars(report.spent.cost_usd, report.spent.known_usd)
    notes = [f"spent by all runs of the set: {spent}", *_legend(report)]
    title = f"{report.name} {report.set_id}: {report.state}"
    return Section(title, whole.columns, whole.rows, tuple(notes))


def _legend(report: SetReport) -> Iterable[str]:
    k = {score["estimator"] for row in report.combinations for score in row.scores}
    if any(str(name).startswith("pass^") for name in k):
        yield "pass@k: one of a case's k attempts passes; pass^k: all do; repeats are attempts"
    rows = [report.whole, *report.combinations]
    if any(row.estimate and row.estimate["tasks"] > row.estimate["clusters"] for row in rows):
        yield "clusters: cases, or the benchmark's clusters of them; only these are independent"
    if any(row.headline is not None and row.headline["official"] is None for row in rows):
        yield "* over what was counted: an attempt is missing; `bounds` in --json say how far off"


def _group(title: str | None, names: Sequence[str], rows: Sequence[Row], limit: int = 0) -> Section:
    shown = rows[:limit] if limit else rows
    columns: dict[str, list[Cell]] = {name: [] for name in names}
    figures = ("metric", "value", "95% interval", "cases", "clusters", "counted", "pass@k",
               "pass^k", "cost", "p50", "p95")  # fmt: skip
    columns |= {name: [] for name in figures}
    for row in shown:
        for name in names:
            columns[name].append(Name(_named(row.names, name)))
        for name, cell in zip(figures, _figures(row), strict=True):
            columns[name].append(cell)
    for name in ("pass@k", "pass^k"):
        if all(cell == NONE for cell in columns[name]):
            del columns[name]
    if columns["cases"] == columns["clusters"]:
        del columns["clusters"]
    cells = tuple(zip(*columns.values(), strict=True)) if shown else ()
    rest = len(rows) - len(shown)
    notes = (f"… and {rest} more rows: --limit 0, --format json or csv",) if rest else ()
    return Section(title, tuple(columns), cells, notes)


def _named(names: Names, name: str) -> str:
    found = {
        "pack": names.pack, "agent": names.agent, "model": names.model,
        "matrix key": names.matrix_key,
    }  # fmt: skip
    return str(found[name])


def _figures(row: Row) -> tuple[Cell, ...]:
    head, estimate = row.headline, row.estimate
    passed, always = row.estimator("pass@"), row.estimator("pass^")
    cost = dollars(row.cost_usd, row.known_usd)
    if head is None or estimate is None:
        value, interval = NONE, row.note or estimate_interval(head["estimate"] if head else {})
        label = row.metric or NONE
    else:
        value = figure(estimate["value"]) + ("" if head["official"] is not None else "*")
        interval = estimate_interval(estimate)
        label = f"{row.metric} {head['estimator']}"
    return (
        Name(label),
        value,
        interval,
        str(estimate["tasks"]) if estimate else "0",
        str(estimate["clusters"]) if estimate else "0",
        counted_text(row),
        NONE if passed is head or passed is None else _estimate(passed),
        NONE if always is None else _estimate(always),
        cost,
        seconds_text(row.p50_s),
        seconds_text(row.p95_s),
    )


def counted_text(row: Row) -> str:
    """Write how many of the planned attempts count: `48/50 (96%)`."""
    if row.planned is None:
        return f"{row.counted}/?"
    covered = share(row.counted, row.planned) if row.planned else ""
    return f"{row.counted}/{row.planned} ({covered})" if row.planned else "0/0"


def _estimate(score: Mapping[str, Any]) -> str:
    estimate = score["estimate"]
    if estimate["value"] is None:
        return NONE
    mark = "" if score["official"] is not None else "*"
    return f"{figure(estimate['value'])}{mark} {estimate_interval(estimate)} k={k_of(score)}"


def k_of(score: Mapping[str, Any]) -> str:
    """Give the k of `pass@k` and `pass^k`."""
    return str(score["estimator"])[len("pass@") :]


def seconds_text(value: float | None) -> str:
    """Write a duration: `0.05 ms`, `12.3 s`, `1250 s`."""
    if value is None:
        return NONE
    if value < 0.1:
        return f"{value * 1000:.3g} ms"
    return f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"


def _wins(pairs: Sequence[AgentPair]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    has_many = len(pairs) > 1
    notes: dict[str, None] = {}
    for pair in pairs:
        difference = pair.difference
        rows.append(
            (
                Name(pair.second),
                Name(pair.first),
                str(pair.tally.wins),
                str(pair.tally.ties),
                str(pair.tally.losses),
                NONE if difference is None else signed(difference.value),
                NONE if difference is None else difference_interval(difference),
                NONE if pair.test is None or pair.test.p is None else p_text(pair.test.p),
                *([NONE if pair.p_holm is None else p_text(pair.p_holm)] if has_many else []),
            )
        )
        if pair.test is not None and pair.test.p is not None:
            notes[test_note(pair.test)] = None
    columns = ("agent", "against", "wins", "ties", "losses", "difference", "95% interval", "p")
    notes["a pair is a case under one model; its repeats are averaged first"] = None
    return Section(
        "agents against each other",
        (*columns, "p (Holm)") if has_many else columns,
        tuple(rows),
        tuple(notes),
    )


def _frontier(report: SetReport) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (
            "*" if choice.is_on_frontier else "",
            Name(choice.agent),
            Name(choice.model),
            dollars(choice.cost_usd["value"]),
            _dollar_interval(choice.cost_usd),
            figure(choice.quality["value"]),
            estimate_interval(choice.quality),
        )
        for choice in report.choices
    ]
    return Section(
        "cost and quality, cheapest first",
        ("", "agent", "model", "an attempt costs", "its interval", "value", "95% interval"),
        tuple(rows),
        ("* on the frontier: none costs as little and is as good",),
    )


def _dollar_interval(cost: Mapping[str, Any]) -> str:
    ends = cost["interval"]
    return estimate_interval(cost) if ends is None else f"[{dollars(ends[0])}, {dollars(ends[1])}]"


def _failures(agents: Sequence[Row]) -> list[Section]:
    """Lay out what did not end well: outcomes, then causes, a column for each agent."""
    outcomes = [
        o for o in Outcome if o not in _RIGHT and any(row.outcomes.get(o) for row in agents)
    ]
    causes = Counter[tuple[str, str]]()
    for row in agents:
        causes.update(row.issues)
    rows: list[tuple[Cell, ...]] = [
        (o.value, NONE, *(str(row.outcomes.get(o, 0)) for row in agents)) for o in outcomes
    ]
    rows += [
        (Name(code), Name(severity), *(str(row.issues.get((severity, code), 0)) for row in agents))
        for (severity, code), _ in sorted(causes.items(), key=lambda one: (-one[1], one[0]))
    ]
    if not rows:
        return []
    heads = [str(row.names.agent) for row in agents]
    return [Section("failures by outcome and cause", ("", "severity", *heads), tuple(rows))]


def _findings(report: SetReport) -> Section:
    findings = report.findings or ()
    has_models = any(one["model"] is not None for one in findings)
    columns = ("scanner", "severity", "state", "agent", *(["model"] * has_models), "count")
    rows: list[tuple[Cell, ...]] = [
        tuple(
            str(one[name]) if name == "count" else Name(str(one[name] or NONE)) for name in columns
        )
        for one in findings
    ]
    said = None if report.scanned is None else report.scanned.warning
    return Section("findings", columns, tuple(rows), () if said is None else (said,))


def gate_section(gates: Sequence[GateResult]) -> Section:
    """Lay out what was asked and what came of it."""
    return Section(
        "gates",
        ("gate", "", "what was found"),
        tuple(
            (
                Name(f"{g.gate.option} {g.gate.request}".strip()),
                "met" if g.is_met else "NOT MET",
                Name(g.said),
            )
            for g in gates
        ),
    )
