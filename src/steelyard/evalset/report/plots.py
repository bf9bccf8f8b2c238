"""Pictures of a report as SVG: intervals on a line, cost against quality. Pure.

Colours come from the page's style by class, for its policy allows no style of an element's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import Any, Final

from steelyard.config import printable
from steelyard.evalset.report.frontier import Choice
from steelyard.results.consumption import dollars
from steelyard.results.figures import figure

_WIDTH: Final = 160
_HEIGHT: Final = 18
_PAD: Final = 6

PLOT_WIDTH: Final = 760
PLOT_HEIGHT: Final = 380
_LEFT: Final = 64
_RIGHT: Final = 150
_TOP: Final = 18
_BOTTOM: Final = 46
_MAX_LABEL: Final = 28
_LABEL_WIDTH: Final = 130
MAX_LABELS: Final = 30
"""Above this many points only those on the frontier are named."""

Span = tuple[float, float]


def span_of(estimates: Sequence[Any], bounds: Span | None) -> Span:
    """Give what a row of intervals is drawn over: the metric's bounds, or all that is there."""
    if bounds is not None:
        return bounds
    ends = [end for e in estimates for end in (e["interval"] or (e["value"],))]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def interval_svg(value: float, interval: Sequence[float] | None, span: Span) -> str:
    """Draw a value on its interval."""

    def x(at: float) -> float:
        share = (min(max(at, span[0]), span[1]) - span[0]) / (span[1] - span[0])
        return round(_PAD + share * (_WIDTH - 2 * _PAD), 2)

    middle = _HEIGHT / 2
    shown = figure(value) if interval is None else f"{figure(value)} of {_pair(interval)}"
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{escape(shown)}">',
        f'<line class="axis" x1="{_PAD}" y1="{middle}" x2="{_WIDTH - _PAD}" y2="{middle}"/>',
    ]
    if interval is not None:
        ends = f'x1="{x(interval[0])}" y1="{middle}" x2="{x(interval[1])}" y2="{middle}"'
        parts.append(f'<line class="bar" {ends}/>')
    parts.append(f'<circle class="dot" cx="{x(value)}" cy="{middle}" r="4"/></svg>')
    return "".join(parts)


def _pair(interval: Sequence[float]) -> str:
    return f"[{figure(interval[0])}, {figure(interval[1])}]"


def frontier_svg(choices: Sequence[Choice], metric: str) -> str:
    """Draw cost against quality, each with its interval, and the frontier through them."""
    costs = _ends([choice.cost_usd for choice in choices], lowest=0.0)
    values = _ends([choice.quality for choice in choices])

    def x(at: float) -> float:
        inner = PLOT_WIDTH - _LEFT - _RIGHT
        return round(_LEFT + (at - costs[0]) / (costs[1] - costs[0]) * inner, 2)

    def y(at: float) -> float:
        inner = PLOT_HEIGHT - _TOP - _BOTTOM
        return round(_TOP + (1 - (at - values[0]) / (values[1] - values[0])) * inner, 2)

    floor, right = PLOT_HEIGHT - _BOTTOM, PLOT_WIDTH - _RIGHT
    parts = [
        f'<svg viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}" width="{PLOT_WIDTH}" '
        f'height="{PLOT_HEIGHT}" role="img" aria-label="Cost of an attempt against quality">',
        f'<line class="axis" x1="{_LEFT}" y1="{floor}" x2="{right}" y2="{floor}"/>',
        f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{floor}"/>',
    ]
    for at in _ticks(costs):
        parts.append(
            f'<line class="axis" x1="{x(at)}" y1="{floor}" x2="{x(at)}" y2="{floor + 5}"/>'
        )
        parts.append(f'<text class="dim" x="{x(at)}" y="{floor + 19}" text-anchor="middle">'
                     f"{dollars(at)}</text>")  # fmt: skip
    for at in _ticks(values):
        parts.append(
            f'<line class="axis" x1="{_LEFT - 5}" y1="{y(at)}" x2="{right}" y2="{y(at)}"/>'
        )
        parts.append(f'<text class="dim" x="{_LEFT - 9}" y="{y(at) + 4}" text-anchor="end">'
                     f"{figure(at)}</text>")  # fmt: skip
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{PLOT_HEIGHT - 8}" text-anchor="middle">'
                 "cost of an attempt</text>")  # fmt: skip
    parts.append(f'<text x="{_LEFT}" y="{_TOP - 6}">{_text(metric)}</text>')
    front = sorted((c.cost_usd["value"], c.quality["value"]) for c in choices if c.is_on_frontier)
    if len(front) > 1:
        points = " ".join(f"{x(cost)},{y(value)}" for cost, value in front)
        parts.append(f'<polyline class="front" points="{points}"/>')
    for choice in choices:
        cx, cy = x(choice.cost_usd["value"]), y(choice.quality["value"])
        if (ends := choice.quality["interval"]) is not None:
            parts.append(f'<line class="error" x1="{cx}" y1="{y(ends[0])}" x2="{cx}" '
                         f'y2="{y(ends[1])}"/>')  # fmt: skip
        if (ends := choice.cost_usd["interval"]) is not None:
            parts.append(f'<line class="error" x1="{x(ends[0])}" y1="{cy}" x2="{x(ends[1])}" '
                         f'y2="{cy}"/>')  # fmt: skip
    named = len(choices) <= MAX_LABELS
    taken: list[Span] = []
    for choice in choices:
        cx, cy = x(choice.cost_usd["value"]), y(choice.quality["value"])
        kind = "dot" if choice.is_on_frontier else "beaten"
        name = f"{choice.agent} / {choice.model}"
        parts.append(f'<circle class="{kind}" cx="{cx}" cy="{cy}" r="5">'
                     f"<title>{_text(name)}</title></circle>")  # fmt: skip
        if named or choice.is_on_frontier:
            at = cy + 4
            while any(abs(cx - x_) < _LABEL_WIDTH and abs(at - y_) < 13 for x_, y_ in taken):
                at += 13  # below the one it would cover
            taken.append((cx, at))
            parts.append(f'<text x="{cx + 9}" y="{at}">{_text(_cut(name))}</text>')
    return "".join([*parts, "</svg>"])


def _ends(estimates: Sequence[Any], lowest: float | None = None) -> Span:
    low, high = span_of(estimates, None)
    low = low if lowest is None else lowest
    margin = (high - low) * 0.05 or 0.5
    return (low if lowest is not None else low - margin), high + margin


def _ticks(span: Span) -> list[float]:
    """Give some five round places on an axis."""
    step = _round_step((span[1] - span[0]) / 5)
    first = -(-span[0] // step)
    return [round((first + n) * step, 12) for n in range(int((span[1] - first * step) / step) + 1)]


def _round_step(raw: float) -> float:
    base = 10.0 ** floor(log10(raw))
    return next(base * factor for factor in (1, 2, 5, 10) if base * factor >= raw)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…"


def _text(text: str) -> str:
    return escape(printable.one_line(text))
