"""The live view: one line a request and one for all, redrawn in place.

Numbers are never cut: where room is short the details go, then the bar, then the name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from steelyard.cli.pace import Paces, Standing, duration
from steelyard.cli.progress import ended_line, worst_codes
from steelyard.config import printable
from steelyard.engine.events import Progress, RequestResult

_BARS: Final = (20, 12, 6, 0)
_MIN_NAME: Final = 3
_FREE: Final = 3
"""Cells at the end of each line: `^C`, echoed there, must not break it and leave lines behind."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is to be drawn of one request."""

    name: str
    ended: int
    planned: int | None
    numbers: str
    """Always shown whole."""
    details: tuple[str, ...]
    """Shown while there is room, the most important first."""


def row_of(standing: Standing, progress: Progress | None = None) -> Row:
    """Give the row of a request; without `progress`, that of all together."""
    if standing.planned is None and progress is not None:
        return Row(standing.name, 0, None, f"loading tasks {duration(standing.elapsed_s)}", ())
    planned = "?" if standing.planned is None else str(standing.planned)
    numbers = [f"{standing.ended}/{planned}"]
    if standing.failed:
        numbers.append(f"{standing.failed} failed")
    if standing.is_waiting:
        numbers.append("waiting")
    elif standing.left_s is not None:
        numbers.append(f"ETA {duration(standing.left_s)}")
    details = [] if standing.is_waiting else [f"{standing.running} running"]
    if progress is not None:
        if standing.failed and progress.issues:
            details.append(worst_codes(progress))
        if progress.reused:
            details.append(f"{progress.reused} reused")
        if progress.cost_usd:
            details.append(f"${progress.cost_usd:.4f}")
    else:
        details.append(duration(standing.elapsed_s))
    return Row(standing.name, standing.ended, standing.planned, " ".join(numbers), tuple(details))


def layout(rows: Sequence[Row], width: int, bar: str) -> list[str]:
    """Lay out the rows in `width` cells, all with one width of names and of bars.

    Args:
        rows: at least one.
        width: of the terminal.
        bar: two characters: what is done, what is not.
    """
    from rich.cells import cell_len, set_cell_size

    names = [printable.one_line(row.name) for row in rows]
    needed = 1 + max(cell_len(row.numbers) for row in rows)
    name_width = max(map(cell_len, names))
    bar_width = next(
        (size for size in _BARS if name_width + needed + size + bool(size) <= width), 0
    )
    name_width = min(name_width, max(_MIN_NAME, width - needed))
    found = []
    for name, row in zip(names, rows, strict=True):
        is_cut = cell_len(name) > name_width
        shown = set_cell_size(name, name_width - 1) + "…" if is_cut else name
        line = set_cell_size(shown, name_width)
        if bar_width:
            line += " " + _bar(row, bar_width, bar)
        line += " " + row.numbers
        for detail in row.details:
            more = f"{line}, {printable.one_line(detail)}"
            if cell_len(more) > width:
                break
            line = more
        found.append(line)
    return found


def _bar(row: Row, width: int, bar: str) -> str:
    full = min(width, width * row.ended // row.planned) if row.planned else 0
    return bar[0] * full + bar[1] * (width - full)


class Live:
    """Draws on a real terminal. One that has gone away is written to no more."""

    shows_notices = True

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live as Region

        class SteadyConsole(Console):
            """rich would end the process where the terminal has gone away; the run goes on."""

            def on_broken_pipe(self) -> None:
                raise BrokenPipeError

        self._console = SteadyConsole(file=stream)
        self._is_gone = False
        self._paces = Paces()
        plain = bool(os.environ.get("NO_COLOR")) or not _is_utf8(stream)
        self._bar = "#-" if plain else "━─"
        self._region = Region(console=self._console, auto_refresh=False, transient=True)
        self._draw(self._region.start)

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """Draw a snapshot in place of the last."""
        lines = self._lines(progress)
        self._draw(lambda: self._region.update(_as_drawn(lines), refresh=True))

    def notice(self, request: str | None, message: str) -> None:
        """Print above what is drawn."""
        self._print(f"{request}: {message}" if request else message)

    def request_ended(self, result: RequestResult) -> None:
        """Print how it ended, above what is drawn."""
        self._print(ended_line(result))

    def close(self) -> None:
        """Take what is drawn away; what was printed stays."""
        # An empty region leaves no line behind.
        self._draw(lambda: self._region.update(_as_drawn([]), refresh=True))
        self._draw(self._region.stop)

    def _lines(self, progress: tuple[Progress, ...]) -> list[str]:
        standings, overall = self._paces.see(progress), self._paces.overall(progress)
        going = [request for request in progress if request.state != "ended"]
        if not going:
            return []
        # Those that run stand before those that wait; what has no room is counted.
        going.sort(key=lambda request: standings[request.name].is_waiting)
        size = self._console.size
        room = max(1, size.height - 3)
        rows = [row_of(standings[request.name], request) for request in going[:room]]
        if len(progress) > 1:
            rows.append(row_of(overall))
        lines = layout(rows, max(1, size.width - _FREE), self._bar)
        if len(going) > room:
            lines.insert(room, f"… and {len(going) - room} more requests")
        return lines

    def _print(self, text: str) -> None:
        shown = printable.lines(text)
        self._draw(
            lambda: self._console.print(shown, markup=False, highlight=False, soft_wrap=True)
        )

    def _draw(self, act: Callable[[], None]) -> None:
        if self._is_gone:
            return
        try:
            act()
        except (OSError, ValueError):
            self._is_gone = True


def _is_utf8(stream: TextIO) -> bool:
    name = (getattr(stream, "encoding", None) or "utf-8").lower()
    return name.replace("-", "") == "utf8"


def _as_drawn(lines: Sequence[str]) -> Any:
    from rich.console import Group
    from rich.text import Text

    return Group(*(Text(line, no_wrap=True, overflow="crop") for line in lines))
