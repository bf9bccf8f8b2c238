"""Progress in the terminal: `plain` lines for logs and CI, a small live view, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, Protocol, TextIO

from steelyard.components.issues import Outcome
from steelyard.config import printable
from steelyard.engine.events import Observer, Progress, RequestResult, RunOutcome, Unobserved

PLAIN_INTERVAL_S: Final = 10.0
"""At most one line a request in this time, unless something changed that matters."""

_FAILED: Final = (Outcome.FAILED_FATAL, Outcome.FAILED_ERROR, Outcome.TIMED_OUT)


class Renderer(Observer, Protocol):
    """An observer that draws."""

    def close(self) -> None:
        """Leave the terminal as it was found."""
        ...


class _Silent(Unobserved):
    """Says nothing, but for why a request did not complete."""

    def __init__(self, stream: TextIO) -> None:
        self._plain = _Plain(stream)

    def request_ended(self, result: RequestResult) -> None:
        if result.outcome is not RunOutcome.COMPLETED:
            self._plain.request_ended(result)

    def close(self) -> None:
        self._plain.close()


def make_renderer(mode: str, stream: TextIO | None = None) -> Renderer:
    """Give the renderer for `auto`, `plain` or `none`; `auto` is live on a real terminal."""
    stream = stream or sys.stderr
    if mode == "none":
        return _Silent(stream)
    if mode == "auto" and _is_live_terminal(stream):
        return _Live(stream)
    return _Plain(stream)


def _is_live_terminal(stream: TextIO) -> bool:
    import os

    try:
        return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:  # a closed stream
        return False


def describe(progress: Progress) -> str:
    """Say in one line where a request stands; stable words, for grep."""
    if progress.planned is None:
        return f"{progress.name}: loading tasks, {progress.elapsed_s:.0f} s"
    parts = [f"{progress.ended}/{progress.planned} ended", f"{progress.running} running"]
    failed = sum(progress.outcomes.get(outcome, 0) for outcome in _FAILED)
    if failed:
        codes = ", ".join(
            f"{code} {count}" for code, count in sorted(progress.issues.items(), key=_by_count)[:3]
        )
        parts.append(f"{failed} failed ({codes})" if codes else f"{failed} failed")
    if progress.reused:
        parts.append(f"{progress.reused} reused")
    if progress.cost_usd:
        parts.append(f"${progress.cost_usd:.4f}")
    parts.append(f"{progress.elapsed_s:.0f} s")
    left_s = eta_s(progress)
    if left_s is not None:
        parts.append(f"about {left_s:.0f} s left")
    return f"{progress.name}: {', '.join(parts)}"


def eta_s(progress: Progress) -> float | None:
    """Seconds left at the pace so far; None before anything has ended, or at the end."""
    fresh = progress.ended - progress.reused
    if not progress.planned or fresh <= 0 or progress.ended >= progress.planned:
        return None
    return progress.elapsed_s / fresh * (progress.planned - progress.ended)


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


class _Plain:
    """A line now and then. A stream that has gone away is written to no more."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self._said: dict[str, tuple[float, str]] = {}

    def tick(self, progress: tuple[Progress, ...]) -> None:
        for request in progress:
            if request.state == "ended":
                continue
            last_s, state = self._said.get(request.name, (-PLAIN_INTERVAL_S, ""))
            if request.elapsed_s - last_s >= PLAIN_INTERVAL_S or state != request.state:
                self._said[request.name] = (request.elapsed_s, request.state)
                self._say(describe(request))

    def notice(self, request: str | None, message: str) -> None:
        self._say(f"{request}: {message}" if request else message)

    def request_ended(self, result: RequestResult) -> None:
        self._say(ended_line(result))

    def close(self) -> None:
        self._stream = None

    def _say(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(printable.one_line(_joined(text)) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


def _joined(text: str) -> str:
    """Put problems and their remedies, a line each, on one line."""
    return text.replace("\n  ", " - ").replace("\n", "; ")


def ended_line(result: RequestResult) -> str:
    """Say in one line how a request ended."""
    if result.outcome is RunOutcome.COMPLETED:
        return f"{result.name}: completed, {result.planned} attempts"
    return f"{result.name}: {result.outcome}: {result.reason or 'no reason is known'}"


class _Live:
    """One line a request, redrawn in place."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        class SteadyConsole(Console):
            """rich would end the process where the terminal has gone away; the run goes on."""

            def on_broken_pipe(self) -> None:
                raise BrokenPipeError

        self._console = SteadyConsole(file=stream)
        self._is_gone = False
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._draw(self._live.start)

    def tick(self, progress: tuple[Progress, ...]) -> None:
        self._draw(lambda: self._live.update(self._table(progress), refresh=True))

    def notice(self, request: str | None, message: str) -> None:
        self._print(f"{request}: {message}" if request else message)

    def request_ended(self, result: RequestResult) -> None:
        self._print(ended_line(result))

    def close(self) -> None:
        self._draw(self._live.stop)

    def _print(self, text: str) -> None:
        shown = printable.lines(text)
        self._draw(lambda: self._console.print(shown, markup=False, highlight=False))

    def _draw(self, act: Callable[[], None]) -> None:
        if self._is_gone:
            return
        try:
            act()
        except (OSError, ValueError):
            self._is_gone = True

    def _table(self, progress: tuple[Progress, ...]) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1))
        for request in progress:
            if request.state == "ended":
                continue
            bar = ProgressBar(total=request.planned or 1, completed=request.ended, width=20)
            text = printable.one_line(describe(request))
            table.add_row(bar, Text(text, overflow="ellipsis", no_wrap=True))
        return table
