"""Progress in the terminal: `plain` lines for logs and CI, a small live view, or nothing."""

from __future__ import annotations

import sys
from typing import Final, Protocol, TextIO

from steelyard.cli.pace import Paces, Standing, failed
from steelyard.config import printable
from steelyard.engine.control import Controls
from steelyard.engine.events import Observer, Progress, RequestResult, RunOutcome, Unobserved

PLAIN_INTERVAL_S: Final = 10.0
"""At most one line a request in this time, unless something changed that matters."""


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
    if mode == "auto" and _is_live_terminal(stream):
        from steelyard.cli.live import Live

        return Live(stream, controls)
    return _Plain(stream)


def _is_live_terminal(stream: TextIO) -> bool:
    import os

    try:
        return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
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
    if progress.reused:
        parts.append(f"{progress.reused} reused")
    if progress.cost_usd:
        parts.append(f"${progress.cost_usd:.4f}")
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


class _Plain:
    """A line now and then. A stream that has gone away is written to no more."""

    shows_notices = True

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self._said: dict[str, tuple[float, str]] = {}
        self._paces = Paces()

    def tick(self, progress: tuple[Progress, ...]) -> None:
        standings = self._paces.see(progress)
        for request in progress:
            if request.state == "ended":
                continue
            last_s, state = self._said.get(request.name, (-PLAIN_INTERVAL_S, ""))
            if request.elapsed_s - last_s >= PLAIN_INTERVAL_S or state != request.state:
                self._said[request.name] = (request.elapsed_s, request.state)
                self._say(describe(request, standings[request.name]))

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
