"""Comparisons as tables of text, for a terminal and for Markdown alike. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Final

from steelyard.config import printable
from steelyard.results.comparison import (
    ALL_SAME,
    NO_SPREAD,
    Compared,
    Difference,
    ExactTest,
    counted_tasks,
    side_estimate,
)
from steelyard.results.consumption import dollars
from steelyard.results.figures import figure, signed
from steelyard.results.gates import GateResult
from steelyard.results.markdown import code, escaped, table
from steelyard.results.summary_text import TOO_FEW_CLUSTERS, estimate_interval
from steelyard.results.task_table import RunTable

_NONE: Final = "–"
_WHY_NONE: Final = {ALL_SAME: "all the same", NO_SPREAD: "clusters cancel out"}
_MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Name:
    """A cell whose text is a stranger's: an id, a name."""

    text: str


Cell = str | Name


@dataclass(frozen=True, slots=True)
class Section:
    """A table, with a line above and lines below."""

    title: str | None
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def sections(
    found: Sequence[Compared], gates: Sequence[GateResult], *, limit: int = 10
) -> list[Section]:
    """Lay out comparisons with one base; `limit` tasks of each, 0 for all that changed."""
    first = found[0]
    laid = [_runs(found), _differences(found)]
    for each in found:
        name = "" if len(found) == 1 else f" ({each.second.run_id})"
        laid += _beside(each, name)
        laid += _categories(each, name)
        laid += _changes(each, name, limit)
    if gates:
        laid.append(
            Section(
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
        )
    head = f"{first.asked.metric} {first.asked.label}"
    if not first.asked.spec.higher_is_better:
        head += " (lower is better)"
    laid[0] = Section(head, laid[0].columns, laid[0].rows, laid[0].notes)
    return laid


def text_lines(
    laid: Sequence[Section],
    table_lines: Callable[[Sequence[str], Sequence[Sequence[object]]], list[str]],
) -> list[str]:
    """Give the lines for a terminal, with its own way to lay out a table."""
    lines: list[str] = []
    for section in laid:
        lines += [""] if lines else []
        lines += [] if section.title is None else [printable.one_line(section.title)]
        rows = [[cell.text if isinstance(cell, Name) else cell for cell in r] for r in section.rows]
        lines += table_lines(section.columns, rows)
        lines += map(printable.one_line, section.notes)
    return lines


def markdown_text(laid: Sequence[Section], warnings: Iterable[str]) -> str:
    """Give a comment for a pull request: no markup, link or mention of a stranger's."""
    parts: list[str] = []
    for number, section in enumerate(laid):
        if section.title is not None:
            parts.append(f"{'###' if number == 0 else '####'} {code(section.title)}")
        rows = [
            [code(c.text, 300) if isinstance(c, Name) else escaped(c) for c in r]
            for r in section.rows
        ]
        parts.append(table([escaped(column) for column in section.columns], rows))
        parts += [code(note, 500) for note in section.notes]
    parts += [f"- warning: {code(warning, 500)}" for warning in warnings]
    return "\n\n".join(parts) + "\n"


# -- sections ----------------------------------------------------------------------------------


def _runs(found: Sequence[Compared]) -> Section:
    rows = [_run_row(found[0].first, side_estimate(found[0], 0), " (base)")]
    rows += [_run_row(each.second, side_estimate(each, 1), "") for each in found]
    return Section(
        None,
        ("run", "value", "95% interval", "tasks", "coverage", "cost", "agent time"),
        tuple(rows),
    )


def _run_row(run: RunTable, estimate: dict[str, Any], mark: str) -> tuple[Cell, ...]:
    usage = run.metrics["usage"]
    shown = dollars(usage["cost_usd"], usage["known_cost_usd"])
    value = estimate["value"]
    official = "" if run.tally.is_official else "*"
    return (
        Name(f"{run.request}/{run.run_id}{mark}"),
        f"{figure(value)}{official}",
        estimate_interval(estimate),
        str(estimate["tasks"]),
        f"{run.tally.counted_attempts}/{run.tally.planned_attempts}",
        shown,
        f"{fsum(facts.agent_s for facts in run.facts.values()):.1f} s",
    )


def _differences(found: Sequence[Compared]) -> Section:
    is_many = len(found) > 1
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for each in found:
        row: list[Cell] = [
            Name(each.second.run_id),
            signed(each.difference.value),
            difference_interval(each.difference),
            _p(each.test),
        ]
        if is_many:
            row.append(_NONE if each.p_holm is None else p_text(each.p_holm))
        row += [str(n) for n in (each.tally.wins, each.tally.ties, each.tally.losses)]
        rows.append(tuple(row))
        notes += _notes(each, f"{each.second.run_id}: " if is_many else "")
    columns = ["less the base", "difference", "95% interval", "p"]
    columns += ["p (Holm)"] * is_many + ["wins", "ties", "losses"]
    return Section(None, tuple(columns), tuple(rows), tuple(notes))


def _notes(each: Compared, name: str) -> Iterable[str]:
    yield f"{name}{test_note(each.test)}"
    if each.detectable is not None:
        yield (
            f"{name}with so many tasks a difference of {each.detectable:.3f} is found "
            "in four of five cases"
        )
    if not each.is_official:
        yield (
            f"{name}* not official: missing attempts could make any difference of it"
            if each.bounds is None
            else f"{name}* not official: with the missing attempts the difference is between "
            f"{signed(each.bounds[0])} and {signed(each.bounds[1])}"
        )
    for where, task_ids in (("the base", each.only_first), ("this run", each.only_second)):
        if task_ids:
            yield f"{name}only in {where}: {_named(task_ids)}"
    if each.common.differing:
        yield f"{name}not the same in both, left out: {_named(each.common.differing)}"
    if each.unpaired:
        yield f"{name}without a value in one of the two: {counted_tasks(each.unpaired)}"


def test_note(test: ExactTest) -> str:
    """Say which test gave a p."""
    if test.p is None:
        return "no p: no task differs"
    if test.name == "mcnemar":
        return "p: exact McNemar, two-sided"
    if test.resamples is None:
        return "p: exact sign-flip, two-sided"
    return (
        f"p: sign-flip, two-sided, from {test.resamples} drawn patterns "
        f"(± {test.standard_error:.2g})"
    )


def _beside(each: Compared, name: str) -> list[Section]:
    rows: list[tuple[Cell, ...]] = []
    if each.cost_usd is not None and (each.cost_usd.value or each.cost_usd.interval):
        rows.append(("cost, $", *_row(each.cost_usd, ".6f")))
    if each.agent_s is not None and (each.agent_s.value or each.agent_s.interval):
        rows.append(("agent time, s", *_row(each.agent_s, ".3f")))
    columns = ("", "difference", "95% interval", "tasks")
    return [Section(f"per attempt{name}", columns, tuple(rows))] if rows else []


def _categories(each: Compared, name: str) -> list[Section]:
    rows = tuple(
        (
            Name(category),
            *_row(difference, ".3f"),
            str(tally.wins),
            str(tally.ties),
            str(tally.losses),
        )
        for category, (difference, tally) in each.categories.items()
    )
    columns = ("category", "difference", "95% interval", "tasks", "wins", "ties", "losses")
    return [Section(f"categories{name}", columns, rows)] if rows else []


def _changes(each: Compared, name: str, limit: int) -> list[Section]:
    changed = each.largest(0)
    shown = changed[:limit] if limit else changed
    if not shown:
        return []
    rows = tuple(
        (Name(p.task_id), figure(p.first), figure(p.second), signed(p.difference)) for p in shown
    )
    rest = len(changed) - len(shown)
    notes = (f"… and {rest} more that changed: --limit 0 shows all",) if rest else ()
    return [
        Section(f"largest changes{name}", ("task", "base", "this run", "difference"), rows, notes)
    ]


# -- cells -------------------------------------------------------------------------------------


def _row(difference: Difference, form: str) -> tuple[Cell, ...]:
    value = _signed(difference.value, form)
    return value, difference_interval(difference, form), str(difference.tasks)


def difference_interval(difference: Difference, form: str = ".3f") -> str:
    """Write the interval of a difference, or why there is none."""
    if difference.clusters < TOO_FEW_CLUSTERS:
        few = difference.clusters < difference.tasks
        return "too few clusters" if few else "too few tasks"
    if difference.interval is None:
        return _WHY_NONE.get(difference.note or "", difference.note or _NONE)
    low, high = difference.interval
    return f"[{_signed(low, form)}, {_signed(high, form)}]"


def _signed(value: float, form: str) -> str:
    return signed(value) if form == ".3f" else f"{value:+{form}}"


def _p(test: ExactTest) -> str:
    return _NONE if test.p is None else p_text(test.p)


def p_text(p: float) -> str:
    """Write a p."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _named(task_ids: Sequence[str]) -> str:
    shown = ", ".join(task_ids[:_MAX_NAMED])
    return f"{counted_tasks(len(task_ids))} ({shown}{', …' if len(task_ids) > _MAX_NAMED else ''})"
