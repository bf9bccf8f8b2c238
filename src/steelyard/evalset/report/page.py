"""A report as one page that needs nothing from outside: no script, no font, no picture.

Keys, cases and messages are others' texts: each is escaped, what cannot be seen is written out,
and the page's policy forbids everything that is not its own style.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from steelyard.config import printable
from steelyard.evalset.comparison_text import comparison_sections
from steelyard.evalset.report.page_style import STYLE, policy
from steelyard.evalset.report.plots import Span, frontier_svg, interval_svg, span_of
from steelyard.evalset.report.report import ReadSet, Row, SetReport
from steelyard.evalset.report.report_text import (
    NONE,
    counted_text,
    k_of,
    report_sections,
    seconds_text,
)
from steelyard.results.comparison_text import Cell, Name, Section
from steelyard.results.consumption import dollars
from steelyard.results.figures import figure
from steelyard.results.summary_text import estimate_interval

if TYPE_CHECKING:
    from steelyard.evalset.gates import Held

_OWN: Final = frozenset({"by agent", "by pack", "by model", "repeats taken together", "by cell"})
"""Sections that the page draws with intervals."""
_WORDS: Final = {"NOT MET": "bad", "met": "good", "regressed": "bad", "improved": "good"}


def page(read: ReadSet, held: Held) -> str:
    """Give the whole page."""
    report = read.report
    title = f"{report.name} {report.set_id}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy())}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{text(title)}</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{text(report.name)}</h1>",
        f'<p class="dim">{text(report.set_id)}, made {text(report.created_at)}: '
        f"{text(report.state)}</p>",
        *_facts(report),
        *_matrix(report),
        *_groups(report),
        *_plot(report),
        *_sections(report_sections(report, held.results, limit=0)),
        *_baseline(held),
        *_warnings((*report.warnings, *held.warnings)),
        *_cells(report),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def text(value: object) -> str:
    """Copy a stranger's text so that it is nothing but text."""
    return escape(printable.one_line(str(value)))


def _facts(report: SetReport) -> Iterator[str]:
    whole = report.whole
    facts = [
        f"{len(report.cells)} cells: {len(report.packs)} packs, {len(report.agents)} agents, "
        f"{len(report.models)} models",
        f"{counted_text(whole)} attempts count",
        f"{dollars(report.spent.cost_usd, report.spent.known_usd)} spent by all runs of the set",
    ]
    yield "<ul>" + "".join(f"<li>{text(fact)}</li>" for fact in facts) + "</ul>"


def _matrix(report: SetReport) -> Iterator[str]:
    """Packs and models down, agents across: all repeats of a combination in one figure."""
    agents = [str(row.names.agent) for row in report.agents]
    models = list(dict.fromkeys(row.names.model for row in report.combinations))
    has_models = len(models) > 1
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in report.combinations:
        key = str(row.names.pack), str(row.names.model) if has_models else ""
        lines.setdefault(key, {})[str(row.names.agent)] = row
    yield "<h2>Matrix</h2>"
    yield (
        '<div class="scroll"><table class="matrix"><caption>The score of each combination, its '
        "repeats taken together, with its 95% interval and the attempts that count.</caption>"
    )
    heads = ["pack", *(["model"] if has_models else []), *agents]
    yield _head(heads)
    yield "<tbody>"
    for (pack, model), of in lines.items():
        span = _span(list(of.values()))
        cells = [f'<th scope="row">{text(pack)}</th>']
        cells += [f"<td>{text(model)}</td>"] if has_models else []
        cells += [_matrix_cell(of.get(agent), span) for agent in agents]
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _matrix_cell(row: Row | None, span: Span) -> str:
    if row is None:
        return f"<td>{NONE}</td>"
    counted = f'<span class="small">{text(counted_text(row))}</span>'
    estimate, head = row.estimate, row.headline
    if estimate is None or head is None:
        return (
            f'<td><span class="small">{text(row.note or "nothing scored")}</span><br>{counted}</td>'
        )
    mark = "" if head["official"] is not None else "*"
    return (
        f'<td><span class="value">{text(figure(estimate["value"]))}{mark}</span> '
        f'<span class="small">{text(estimate_interval(estimate))}</span>'
        f"{interval_svg(estimate['value'], estimate['interval'], span)}{counted}</td>"
    )


def _groups(report: SetReport) -> Iterator[str]:
    for title, rows in (
        ("Agents", report.agents), ("Packs", report.packs), ("Models", report.models),
    ):  # fmt: skip
        if title == "Agents" or len(rows) > 1:
            yield f"<h2>{title}</h2>"
            yield from _rows(rows)


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    span = _span(rows)
    has_chances = any(row.estimator("pass^") is not None for row in rows)
    chances = ("pass@k", "pass^k") if has_chances else ()
    yield '<div class="scroll"><table>'
    yield _head(("", "metric", "value, 95% interval", "", "cases", "counted", *chances, "cost",
                 "p50, p95"))  # fmt: skip
    yield "<tbody>"
    for row in rows:
        names, estimate, head = row.names, row.estimate, row.headline
        name = names.matrix_key or names.agent or names.pack or names.model or ""
        cells = [f'<th scope="row">{text(name)}</th>']
        if estimate is None or head is None:
            cells.append(f"<td>{text(row.metric or NONE)}</td>")
            cells.append(f"<td>{_two(NONE, row.note or 'nothing scored')}</td><td></td>")
        else:
            mark = "" if head["official"] is not None else "*"
            cells.append(f"<td>{_two(row.metric, head['estimator'])}</td>")
            cells.append(
                f"<td>{_two(figure(estimate['value']) + mark, estimate_interval(estimate))}</td>"
            )
            plot = interval_svg(estimate["value"], estimate["interval"], span)
            cells.append(f'<td class="plot">{plot}</td>')
        cells.append(f'<td class="number">{_cases(estimate)}</td>')
        cells.append(f'<td class="number">{text(counted_text(row))}</td>')
        if has_chances:
            cells += [f"<td>{_chance(row, start)}</td>" for start in ("pass@", "pass^")]
        cells.append(f'<td class="number">{text(dollars(row.cost_usd, row.known_usd))}</td>')
        cells.append(f"<td>{_two(seconds_text(row.p50_s), seconds_text(row.p95_s))}</td>")
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _two(value: object, below: object) -> str:
    return f'{text(value)}<br><span class="small">{text(below)}</span>'


def _cases(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "0"
    tasks, clusters = estimate["tasks"], estimate["clusters"]
    return str(tasks) if tasks == clusters else _two(tasks, f"in {clusters} clusters")


def _chance(row: Row, start: str) -> str:
    score = row.estimator(start)
    if score is None or score["estimate"]["value"] is None:
        return NONE
    estimate = score["estimate"]
    mark = "" if score["official"] is not None else "*"
    return _two(figure(estimate["value"]) + mark, f"{estimate_interval(estimate)}, k={k_of(score)}")


def _span(rows: Sequence[Row]) -> Span:
    estimates = [row.estimate for row in rows if row.estimate is not None]
    inside = all(0 <= end <= 1 for e in estimates for end in (*(e["interval"] or ()), e["value"]))
    return span_of(estimates, (0.0, 1.0) if inside else None)


def _plot(report: SetReport) -> Iterator[str]:
    if not report.choices:
        return
    yield "<h2>Cost and quality</h2>"
    yield (
        f"<figure>{frontier_svg(report.choices, report.whole.metric or 'score')}<figcaption>Each "
        "agent and model over all packs, lines as long as the 95% intervals. Filled: on the "
        "frontier, none costs as little and is as good.</figcaption></figure>"
    )


def _sections(laid: Iterable[Section]) -> Iterator[str]:
    for number, section in enumerate(laid):
        if number == 0:
            notes = [note for note in section.notes if "spent" not in note]
            yield "".join(f'<p class="dim">{text(note)}</p>' for note in notes)
        elif section.title not in _OWN:
            yield from _table(section)


def _table(section: Section) -> Iterator[str]:
    if section.title is not None:
        yield f"<h2>{text(section.title[:1].upper() + section.title[1:])}</h2>"
    yield '<div class="scroll"><table>'
    yield _head(section.columns)
    yield "<tbody>"
    for row in section.rows:
        yield f"<tr>{''.join(map(_cell, row))}</tr>"
    yield "</tbody></table></div>"
    for note in section.notes:
        yield f'<p class="dim">{text(note)}</p>'


def _cell(cell: Cell) -> str:
    if isinstance(cell, Name):
        return f"<td>{text(cell.text)}</td>"
    known = _WORDS.get(cell)
    shown = f'<span class="{known}">{text(cell)}</span>' if known else text(cell)
    is_number = cell[:1].isdigit() or cell[:2].lstrip("+-[$")[:1].isdigit()
    return f'<td class="number">{shown}</td>' if is_number else f"<td>{shown}</td>"


def _head(titles: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{text(title)}</th>' for title in titles)
    return f"<thead><tr>{cells}</tr></thead>"


def _baseline(held: Held) -> Iterator[str]:
    if held.comparison is None:
        return
    yield "<h2>Against the baseline</h2>"
    for section in comparison_sections(held.comparison):
        yield from _table(section)


def _warnings(warnings: Sequence[str]) -> Iterator[str]:
    if warnings:
        yield "<h2>Warnings</h2><ul>"
        yield from (f"<li>{text(warning)}</li>" for warning in warnings)
        yield "</ul>"


def _cells(report: SetReport) -> Iterator[str]:
    if len(report.cells) > len(report.combinations):
        yield f"<details><summary>All {len(report.cells)} cells</summary>"
        yield from _rows(report.cells)
        yield "</details>"
