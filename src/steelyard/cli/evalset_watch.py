"""`steelyard evalset watch SET`: the matrix while it fills, until the set has ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from steelyard.cli.options import output_options

if TYPE_CHECKING:
    from steelyard.evalset.following import SetFollower
    from steelyard.evalset.standing import CellStanding, SetStanding

INTERVAL_S: Final = 0.5
_SHARE: Final = 10
"""A follower rests so many times as long as it looks, so that it stays cheap in large sets."""
_MAX_INTERVAL_S: Final = 5.0
PLAIN_S: Final = 10.0
"""At most one line of totals in this time."""


class Renderer(Protocol):
    """Shows what a follower sees."""

    def show(self, standing: SetStanding, changed: tuple[int, ...]) -> None:
        """Show where the set stands, and which cells have changed."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was found."""
        ...


@click.command("watch")
@click.argument("set_", metavar="SET")
@output_options
def watch(set_: str, as_json: bool, debug: bool) -> int:
    """Show SET's matrix until it has ended; ctrl-c stops watching, not the set.

    SET is a set's folder, its id, its name, or `latest`. Ends with what the set ends with: 0 where
    it completed, 1 where a part failed or its process died, 3 where a gate was missed, 4 where the
    budget was spent, 5 where its time was, 130 where it was cancelled.

    On a terminal the matrix is drawn; else there is a line where something has changed. With --json
    there is a document `evalset-standing/1` on a line each time, whose `cells` are those that have
    changed.
    """
    from steelyard.cli.evalset_status import standing_lines
    from steelyard.cli.output import note, say
    from steelyard.cli.progress import is_live
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.following import SetFollower

    follower = SetFollower(find_set(set_, results_dir()))
    renderer = _renderer(as_json=as_json, is_drawn=is_live("auto", sys.stdout))
    try:
        last = follow(follower, renderer)
    except KeyboardInterrupt:
        renderer.close()
        note("no longer watched; the set goes on")
        return 130
    finally:
        renderer.close()
    if not as_json:
        for line in standing_lines(last):
            say(line)
        for warning in last.warnings:
            note(f"warning: {warning}")
    return last.exit_status or 0


def follow(
    follower: SetFollower,
    renderer: Renderer,
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> SetStanding:
    """Look and show until the set has ended; give its last standing.

    Raises:
        SetUnreadable: its `evalset.json` is gone or damaged.
    """
    while True:
        began_s = monotonic()
        standing = follower.look()
        renderer.show(standing, follower.changed)
        if standing.exit_status is not None:
            return standing
        took_s = max(0.0, monotonic() - began_s)
        sleep(min(_MAX_INTERVAL_S, max(INTERVAL_S, took_s * _SHARE)))


def _renderer(*, as_json: bool, is_drawn: bool) -> Renderer:
    if as_json:
        return _Documents()
    return _Drawn() if is_drawn else _Plain()


def emit(text: str) -> None:
    """Print a line as it comes; a reader that has gone away ends the command, as in a pipe.

    Raises:
        BrokenPipeError: nobody reads any more.
    """
    from steelyard.config import printable

    sys.stdout.write(f"{printable.lines(text)}\n")
    sys.stdout.flush()


class _Drawn:
    """Draws on a real terminal, with the live view's own drawer."""

    def __init__(self) -> None:
        from steelyard.cli.evalset_screen import compose_matrix
        from steelyard.cli.screen_terminal import Drawer

        self._drawer = Drawer(sys.stdout, composer=compose_matrix)
        self._view: SetStanding | None = None
        self._signals = _signals(self._stop, self._go_on, self._end)
        self._signals.__enter__()

    def show(self, standing: SetStanding, changed: tuple[int, ...]) -> None:
        self._view = standing
        self._drawer.show(standing)

    def close(self) -> None:
        self._signals.__exit__(None, None, None)
        self._drawer.close()

    def _stop(self) -> None:
        """Give the terminal back, then stop as ctrl-z asks."""
        self._drawer.suspend()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._drawer.resume()

    def _go_on(self) -> None:
        self._drawer.start_anew()

    def _end(self) -> None:
        self._drawer.close()


@contextmanager
def _signals(
    stop: Callable[[], None], go_on: Callable[[], None], end: Callable[[], None]
) -> Iterator[None]:
    """Take the signals that would leave a terminal half drawn, until the block ends."""

    def ending(number: int, _frame: FrameType | None) -> None:
        end()
        sys.exit(128 + number)

    handlers: dict[int, Any] = {
        signal.SIGTSTP: lambda *_: stop(),
        signal.SIGCONT: lambda *_: go_on(),
        signal.SIGTERM: ending,
        signal.SIGHUP: ending,
    }
    before = {}
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Plain:
    """A line where a cell has ended, and totals now and then."""

    def __init__(self) -> None:
        from steelyard.cli.progress import LineLimit

        self._limit = LineLimit()
        self._said: dict[int, str] = {}
        self._totals_s: float | None = None
        self._left_out = 0

    def show(self, standing: SetStanding, changed: tuple[int, ...]) -> None:
        from steelyard.cli.evalset_status import attempts_text, cost_text, states_text, title_line

        is_first, now_s = self._totals_s is None, time.monotonic()
        for place in changed:
            cell = standing.cells[place]
            state = cell.state.value
            if self._said.get(place, "pending") != state and not is_first:
                if self._limit.takes():
                    emit(cell_line(cell))
                else:
                    self._left_out += 1
            self._said[place] = state
        if is_first and standing.exit_status is not None:
            return  # it had ended before: what is printed at the end says it all
        if self._totals_s is None or now_s - self._totals_s >= PLAIN_S:
            self._totals_s = now_s
            if self._left_out:
                emit(f"… {self._left_out} lines left out")
                self._left_out = 0
            emit(
                f"{title_line(standing)}; cells: {states_text(standing.states)}; "
                f"attempts: {attempts_text(standing)}; cost {cost_text(standing)}"
            )

    def close(self) -> None:
        """Nothing is drawn."""


def cell_line(cell: CellStanding) -> str:
    """Say in one line where a cell stands; stable words, for grep."""
    from steelyard.cli.evalset_status import score_text, undone_texts
    from steelyard.config import printable
    from steelyard.evalset.states import CellState
    from steelyard.results.consumption import dollars

    planned = "?" if cell.planned is None else cell.planned
    parts = [f"{cell.state.value}, {cell.ended}/{planned} ended"]
    if cell.failed:
        parts.append(f"{cell.failed} failed")
    parts += undone_texts(cell.undone)
    if cell.score is not None:
        parts.append(f"score {score_text(cell.score)}")
    if cell.spent.cost_usd != 0:
        parts.append(dollars(cell.spent.cost_usd, cell.spent.known_usd))
    if cell.reason and cell.state is not CellState.COMPLETED:
        parts.append(cell.reason)
    return printable.one_line(f"{cell.cell.matrix_key}: {', '.join(parts)}")


class _Documents:
    """A JSON document on a line each time that something has changed."""

    def __init__(self) -> None:
        self._last: object = None

    def show(self, standing: SetStanding, changed: tuple[int, ...]) -> None:
        import json

        from steelyard.config import printable

        what = standing.state, standing.submission, standing.warnings, standing.spent
        if self._last is not None and not changed and what == self._last:
            return
        document = standing.as_json(None if self._last is None else changed)
        self._last = what
        emit(printable.json_lines(json.dumps(document, ensure_ascii=False)))

    def close(self) -> None:
        """Nothing is drawn."""
