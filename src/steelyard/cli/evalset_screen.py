"""What `evalset watch` shows: a set's matrix as lines of text, for any size of terminal. Pure.

Where room is short, cells become counts, then letters, then numbers of cells in each state; rows
that rest go before those in which something happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rich.cells import cell_len, set_cell_size

from steelyard.cli.evalset_status import codes_text, cost_text, score_text, undone_texts
from steelyard.cli.pace import duration
from steelyard.cli.screen import Charset, Line, Span, cut, fitted, while_they_fit
from steelyard.config import printable
from steelyard.evalset.standing import CellStanding, GroupStanding, SetStanding
from steelyard.evalset.states import CellState, SetState

_STYLE: Final[Mapping[CellState, str]] = {
    CellState.PENDING: "dim",
    CellState.RUNNING: "key",
    CellState.COMPLETED: "bar",
    CellState.FAILED: "bad",
    CellState.TIMED_OUT: "bad",
    CellState.CANCELLED: "warn",
    CellState.SKIPPED_BUDGET: "warn",
    CellState.INTERRUPTED: "warn",
}
_LETTER: Final[Mapping[CellState, str]] = {
    CellState.PENDING: ".",
    CellState.RUNNING: "r",
    CellState.COMPLETED: "c",
    CellState.FAILED: "F",
    CellState.TIMED_OUT: "T",
    CellState.CANCELLED: "x",
    CellState.SKIPPED_BUDGET: "$",
    CellState.INTERRUPTED: "!",
}
_SET_STYLE: Final[Mapping[SetState, str]] = {
    SetState.RUNNING: "title",
    SetState.COMPLETED: "bar",
}
_MIN_NAME: Final = 8
_MAX_NAME: Final = 44
_SCORE: Final = 22
"""Of `0.600 [0.231, 0.882]` and a little more."""
_COUNT: Final = 9
_SLOWEST: Final = 4


class Cells(Enum):
    """How the cells of a row are shown."""

    SCORES = "scores"
    """Each with its score and interval, as `0.600 [0.231, 0.882]`."""
    COUNTS = "counts"
    """Each as `3/5`: attempts that have ended, of those planned."""
    LETTERS = "letters"
    """Each a letter for its state."""
    STATES = "states"
    """How many are in each state, as `3c 2r`."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the columns stand."""

    name: int
    score: int
    """0: no column."""
    count: int
    cells: Cells
    cell: int
    """Width of one cell, the gap before it included."""
    repeats: int


def compose_matrix(standing: SetStanding, width: int, height: int, charset: Charset) -> list[Line]:
    """Lay out a set in styled spans: at most `height` lines of at most `width` cells."""
    room = max(1, height)
    lines = [_head(standing, width, charset)]
    extras = _extras(standing, width, charset)
    kept = min(len(extras), max(0, (room - 1) // 3))
    has_legend = room - 1 - kept >= 4
    has_titles = room - 1 - kept - has_legend >= 3
    if has_legend:
        lines.append(_legend(standing, width))
    left = room - len(lines) - kept - has_titles
    shown, hidden = _chosen(standing, left)
    layout = _layout(standing, shown, width)
    if has_titles and shown:
        lines.append(_titles(layout))
    lines += [_row(row, standing, layout, charset) for row in shown]
    if hidden and left > 0:
        lines.append(_hidden(hidden, standing, charset))
    lines += extras[: max(0, room - len(lines))]
    return [fitted(line, width, charset) for line in lines[:room]]


def _head(standing: SetStanding, width: int, charset: Charset) -> Line:
    planned = "?" if standing.planned is None else standing.planned
    ended = sum(n for state, n in standing.states.items() if state in _ENDED)
    facts = [
        duration(standing.elapsed_s),
        f"{ended}/{len(standing.cells)} cells",
        f"{standing.ended}/{planned} attempts",
    ]
    if standing.left_s is not None:
        facts.append(f"ETA {'~' if standing.is_rough else ''}{duration(standing.left_s)}")
    facts.append(cost_text(standing))
    if standing.running:
        facts.append(f"{standing.running} running")
    if standing.failed:
        facts.append(f"{standing.failed} failed")
    facts += undone_texts(standing.undone)
    spans = [Span(standing.state.value, _SET_STYLE.get(standing.state, "bad"))]
    spans += [Span(f" {charset.dot} {fact}") for fact in facts]
    spans.append(Span(f" {charset.dot} {printable.one_line(standing.name)}", "dim"))
    return while_they_fit(spans, width)


_ENDED: Final = frozenset(CellState) - {CellState.PENDING, CellState.RUNNING}


def _legend(standing: SetStanding, width: int) -> Line:
    spans: list[Span] = []
    for state, n in standing.states.items():
        gap = "  " if spans else ""
        spans.append(Span(f"{gap}{_LETTER[state]} {n} {state.value}", _STYLE[state]))
    return while_they_fit(spans, width)


def _extras(standing: SetStanding, width: int, charset: Charset) -> list[Line]:
    lines: list[Line] = []
    if issues := standing.issues:
        lines.append((Span(printable.one_line(f"failures: {codes_text(issues)}"), "bad"),))
    lines += [
        (Span(printable.one_line(f"warning: {warning}"), "warn"),)
        for warning in standing.warnings[:2]
    ]
    slowest = standing.slowest(_SLOWEST)
    if slowest:
        lines.append((Span("running longest, in phase", "dim"),))
    for one in slowest:
        attempt = one.attempt
        place = printable.one_line(f"{one.matrix_key} {attempt.task_id} #{attempt.attempt}")
        phase = f"{printable.one_line(attempt.phase):<8} {duration(attempt.phase_s):>6}  "
        lines.append((Span(f"  {duration(attempt.age_s):>6}  "), Span(phase, "warn"), Span(place)))
    return lines


def _chosen(
    standing: SetStanding, room: int
) -> tuple[Sequence[GroupStanding], Sequence[GroupStanding]]:
    """Give the rows that are shown, in the matrix's order, and those that are not."""
    rows = standing.rows
    if len(rows) <= room:
        return rows, ()
    keep = max(0, room - 1)
    by_interest = sorted(range(len(rows)), key=lambda place: (_interest(rows[place]), place))
    kept = set(by_interest[:keep])
    return (
        [row for place, row in enumerate(rows) if place in kept],
        [row for place, row in enumerate(rows) if place not in kept],
    )


def _interest(row: GroupStanding) -> int:
    """Say how soon a row may be left out: the greater, the sooner."""
    if row.states.get(CellState.RUNNING):
        return 0
    if any(state in _ENDED and state is not CellState.COMPLETED for state in row.states):
        return 1
    return 2 if row.failed else 3 if row.states.get(CellState.COMPLETED) else 4


def _layout(standing: SetStanding, rows: Sequence[GroupStanding], width: int) -> _Layout:
    names = min(_MAX_NAME, max((cell_len(_name(row)) for row in rows), default=0))
    repeats = max((len(row.cells) for row in rows), default=0)
    needed = max(
        (len(_counted(standing.cells[place])) for row in rows for place in row.cells), default=0
    )
    least = max(_MIN_NAME, names * 2 // 3)
    for score, count in ((_SCORE, _COUNT), (_SCORE, 0), (0, _COUNT), (0, 0)):
        for cells, cell in (
            (Cells.SCORES, _SCORE),
            (Cells.COUNTS, needed + 1),
            (Cells.LETTERS, 1),
        ):
            gap = cells is Cells.LETTERS
            used = score + count + cell * repeats + gap
            if used + least <= width:
                return _Layout(min(names, width - used), score, count, cells, cell, repeats)
        # Numbers of cells in each state take as much as is left.
        if least + score + count + 12 <= width:
            name = min(names, width - score - count - 12)
            return _Layout(name, score, count, Cells.STATES, 0, repeats)
    return _Layout(min(names, max(1, width)), 0, 0, Cells.STATES, 0, repeats)


def _titles(layout: _Layout) -> Line:
    spans = [Span(set_cell_size("", layout.name))]
    if layout.score:
        spans.append(Span(f"  {'score [95%]':<{layout.score - 2}}", "dim"))
    if layout.count:
        spans.append(Span(f"{'ended':>{layout.count}}", "dim"))
    if layout.cells in (Cells.SCORES, Cells.COUNTS):
        for repeat in range(1, layout.repeats + 1):
            text = f"#{repeat}"
            aligned = (
                f"  {text:<{layout.cell - 2}}"
                if layout.cells is Cells.SCORES
                else f"{text:>{layout.cell}}"
            )
            spans.append(Span(aligned, "dim"))
    return tuple(spans)


def _row(row: GroupStanding, standing: SetStanding, layout: _Layout, charset: Charset) -> Line:
    name = _name(row)
    shown = name if charset is Charset.UNICODE else name.encode("ascii", "replace").decode()
    spans = [Span(set_cell_size(cut(shown, layout.name, charset), layout.name), "title")]
    if layout.score:
        score = "" if row.score is None else score_text(row.score)
        spans.append(Span(f"  {set_cell_size(score, layout.score - 2)}"))
    if layout.count:
        planned = "?" if row.planned is None else row.planned
        spans.append(Span(f"{f'{row.ended}/{planned}':>{layout.count}}"))
    spans += _cells(row, [standing.cells[place] for place in row.cells], layout)
    return tuple(spans)


def _cells(row: GroupStanding, cells: Sequence[CellStanding], layout: _Layout) -> Iterator[Span]:
    match layout.cells:
        case Cells.STATES:
            for state, n in row.states.items():
                yield Span(f" {n}{_LETTER[state]}", _STYLE[state])
        case Cells.LETTERS:
            yield Span(" ")
            for cell in cells:
                yield Span(_LETTER[cell.state], _STYLE[cell.state])
        case Cells.COUNTS:
            for cell in cells:
                yield Span(f"{_counted(cell):>{layout.cell}}", _STYLE[cell.state])
        case Cells.SCORES:
            for cell in cells:
                has_score = cell.state is not CellState.RUNNING and cell.score is not None
                text = score_text(cell.score) if has_score else _counted(cell)
                size = layout.cell - 2
                yield Span(f"  {set_cell_size(text, size)}", _STYLE[cell.state])


def _counted(cell: CellStanding) -> str:
    """Write a cell's attempts: `3/5`; where it did not complete, with its letter."""
    if cell.state is CellState.PENDING:
        return _LETTER[cell.state]
    planned = "?" if cell.planned is None else cell.planned
    mark = "" if cell.state in (CellState.RUNNING, CellState.COMPLETED) else _LETTER[cell.state]
    return f"{mark}{cell.ended}/{planned}"


def _hidden(rows: Sequence[GroupStanding], standing: SetStanding, charset: Charset) -> Line:
    states: dict[CellState, int] = {}
    for row in rows:
        for state, n in row.states.items():
            states[state] = states.get(state, 0) + n
    spans = [Span(f"{charset.cut} and {len(rows)} more rows:", "dim")]
    spans += [
        Span(f" {states[state]}{_LETTER[state]}", _STYLE[state])
        for state in CellState
        if state in states
    ]
    return tuple(spans)


def _name(row: GroupStanding) -> str:
    parts = [row.pack or "", row.agent, *([] if row.model is None else [row.model])]
    return printable.one_line("  ".join(parts))
