"""Progress in the terminal: `plain` lines for logs and CI, a small live view, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TextIO

from steelyard.cli.many_requests import Endings, total_line, worth_a_line
from steelyard.cli.output import counted
from steelyard.cli.pace import Paces, Standing, failed
from steelyard.config import printable
from steelyard.engine.control import Controls
from steelyard.engine.events import Observer, Progress, RequestResult, RunOutcome, Unobserved
from steelyard.results.figures import usd

PLAIN_INTERVAL_S: Final = 10.0
"""At most one line a request in this time, unless something changed that matters."""
SLOW_S: Final = 60.0
"""An attempt that has run for longer is named."""
LINES_A_SECOND: Final = 20
LINES_AT_ONCE: Final = 1_000
"""What no more than that many lines a second have saved up; the last words are never held back."""


class Renderer(Observer, Protocol):
    """An observer that draws."""

    shows_notices: bool
    """False where a notice is not seen by anybody."""

    def close(self) -> None:
        """Leave the terminal as it was found."""
        ...


class _Silent(Unobserved):
    """Says nothing, but for why a request did not complete."""

    shows_notices = False

    def __init__(self, stream: TextIO) -> None:
        self._plain = _Plain(stream)

    def request_ended(self, result: RequestResult) -> None:
        if result.outcome is not RunOutcome.COMPLETED:
            self._plain.request_ended(result)

    def close(self) -> None:
        self._plain.close()


def make_renderer(
    mode: str, stream: TextIO | None = None, controls: Controls | None = None
) -> Renderer:
    """Give the renderer for `auto`, `plain` or `none`; `auto` is live on a real terminal.

    With the controls of a launch, its keys steer it.
    """
    stream = stream or sys.stderr
    if mode == "none":
        return _Silent(stream)
    if is_live(mode, stream):
        from steelyard.cli.live import Live

        return Live(stream, controls)
    return _Plain(stream)


def is_live(mode: str, stream: TextIO) -> bool:
    """True where a mode draws on this stream: `auto`, on a terminal that is not dumb."""
    import os

    try:
        is_terminal = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        return mode == "auto" and is_terminal
    except ValueError:  # a closed stream
        return False


def describe(progress: Progress, standing: Standing) -> str:
    """Say in one line where a request stands; stable words, for grep."""
    if progress.planned is None:
        return f"{progress.name}: loading tasks, {progress.elapsed_s:.0f} s"
    parts = [f"{progress.ended}/{progress.planned} ended", f"{progress.running} running"]
    fell = failed(progress)
    if fell:
        codes = worst_codes(progress)
        parts.append(f"{fell} failed ({codes})" if codes else f"{fell} failed")
    if progress.retries:
        waiting = f" ({progress.waiting} waiting)" if progress.waiting else ""
        parts.append(f"{progress.retries} retries{waiting}")
    if progress.reused:
        parts.append(f"{progress.reused} reused")
    if progress.tokens:
        parts.append(f"{progress.tokens:,} tokens")
    if progress.cost_usd != 0 or progress.budget_usd is not None:
        cost = "cost unknown" if progress.cost_usd is None else f"${usd(progress.cost_usd)}"
        limit = "" if progress.budget_usd is None else f" of ${usd(progress.budget_usd, 2)}"
        parts.append(f"{cost}{limit}")
    if progress.slowest and progress.slowest[0].age_s >= SLOW_S:
        one = progress.slowest[0]
        parts.append(f"{one.task_id} #{one.attempt} in {one.phase} for {one.phase_s:.0f} s")
    parts.append(f"{progress.elapsed_s:.0f} s")
    if standing.is_waiting:
        parts.append("waiting")
    elif standing.left_s is not None:
        parts.append(f"about {standing.left_s:.0f} s left")
    return f"{progress.name}: {', '.join(parts)}"


def worst_codes(progress: Progress) -> str:
    """Name the three most frequent causes, each with its count."""
    ordered = sorted(progress.issues.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{code} {count}" for code, count in ordered[:3])


class LineLimit:
    """How many lines may be written: a bucket that fills with time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._saved = float(LINES_AT_ONCE)
        self._at_s = clock()

    def takes(self) -> bool:
        """True where one more line may be written; it counts then."""
        now_s = self._clock()
        self._saved = min(LINES_AT_ONCE, self._saved + (now_s - self._at_s) * LINES_A_SECOND)
        self._at_s = now_s
        if self._saved < 1:
            return False
        self._saved -= 1
        return True


class _Plain:
    """A line now and then. A stream that has gone away is written to no more."""

    shows_notices = True

    def __init__(self, stream: TextIO, limit: LineLimit | None = None) -> None:
        self._stream: TextIO | None = stream
        self._limit = limit or LineLimit()
        self._left_out = 0
        self._said: dict[str, tuple[float, str]] = {}
        self._paces = Paces()
        self._endings = Endings()
        self._total_due_s = 0.0

    def tick(self, progress: tuple[Progress, ...]) -> None:
        standings = self._paces.see(progress)
        if self._endings.see(progress):
            self._tick_of_many(progress, standings)
            return
        due = []
        for request in progress:
            last_s, state = self._said.get(request.name, (-PLAIN_INTERVAL_S, ""))
            is_due = request.elapsed_s - last_s >= PLAIN_INTERVAL_S or state != request.state
            if is_due and request.state not in ("ended", "waiting"):
                due.append((last_s, request))
        due.sort(key=lambda pair: pair[0])  # where not all may speak, the longest silent do
        for _, request in due:
            if not self._limit.takes():
                break
            self._said[request.name] = (request.elapsed_s, request.state)
            self._say(describe(request, standings[request.name]))

    def _tick_of_many(
        self, progress: tuple[Progress, ...], standings: Mapping[str, Standing]
    ) -> None:
        """Say where all stand, and of those that go on for long a few."""
        total = self._paces.overall(progress)
        if total.elapsed_s < self._total_due_s:
            return
        self._total_due_s = total.elapsed_s + PLAIN_INTERVAL_S
        self._say_left_out()
        self._say(total_line(progress, total))
        for request in worth_a_line(progress):
            if self._limit.takes():
                self._say(describe(request, standings[request.name]))

    def notice(self, request: str | None, message: str) -> None:
        if not self._limit.takes():
            self._left_out += 1
            return
        self._say_left_out()
        self._say(f"{request}: {message}" if request else message)

    def request_ended(self, result: RequestResult) -> None:
        if self._endings.takes(result):
            self._say_left_out()
            self._say(ended_line(result))

    def close(self) -> None:
        self._say_left_out()
        self._stream = None

    def _say_left_out(self) -> None:
        for line in self._endings.rest():
            self._say(line)
        count, self._left_out = self._left_out, 0
        if count:
            self._say(f"… {count} lines left out: more than {LINES_A_SECOND} a second; see run.log")

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
        return f"{result.name}: completed, {counted(result.planned, 'attempt')}"
    return f"{result.name}: {result.outcome}: {result.reason or 'no reason is known'}"
