"""What the live view shows: a launch as lines of text, for any size of terminal. Pure.

`docs/design/control.md` has the order in which things go where room is short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from steelyard.cli.pace import Standing, duration, failed
from steelyard.components.issues import Outcome
from steelyard.config import printable
from steelyard.engine.budget import NO_SPENDING, BudgetStanding
from steelyard.engine.events import Progress, Underway
from steelyard.results.figures import usd

_BARS: Final = (20, 12, 6, 0)
_MIN_NAME: Final = 3
_MAX_NAME: Final = 40
_SLOWEST: Final = 5
_CODES: Final = 3
_CONCURRENCY: Final = "task concurrency"
"""What nearly everything waits for nearly always: said only of a request that runs nothing."""
HELP: Final = (
    ("p", "start nothing more for now; p again goes on"),
    ("d", "drain: what runs ends and counts, nothing more starts"),
    ("+ -", "more, or fewer, attempts at once"),
    ("q", "stop: what runs is ended and cleaned up; the same as ctrl-c"),
    ("?", "show or hide this"),
)
_KEYS: Final = (("p", "pause"), ("d", "drain"), ("+-", "at once"), ("?", "help"), ("q", "stop"))


class Charset(Enum):
    """The characters a terminal can show."""

    UNICODE = ("━", "─", "…", "·")
    ASCII = ("#", "-", "~", "|")

    @property
    def full(self) -> str:
        """The done part of a bar."""
        return self.value[0]

    @property
    def rest(self) -> str:
        """The other part of a bar."""
        return self.value[1]

    @property
    def cut(self) -> str:
        """Stands for what was cut off."""
        return self.value[2]

    @property
    def dot(self) -> str:
        """Stands between facts."""
        return self.value[3]


class Span(NamedTuple):
    """A piece of a line, in one style."""

    text: str
    style: str = ""
    """`title`, `bar`, `rest`, `bad`, `warn`, `dim`, `key`, or nothing."""


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class RequestView:
    """One request as it is shown."""

    progress: Progress
    standing: Standing
    waits_for: str | None = None
    budget: BudgetStanding = NO_SPENDING


@dataclass(frozen=True, slots=True)
class View:
    """A launch as it is shown."""

    requests: tuple[RequestView, ...]
    """All that have begun, those that have ended too."""
    total: Standing
    unbegun: int = 0
    """Requests whose turn has not come."""
    state: str = "running"
    concurrency: int | None = None
    budget: BudgetStanding = NO_SPENDING
    question: str | None = None
    """What is to be confirmed with y or n."""
    shows_help: bool = False
    has_keys: bool = False


def render(view: View, width: int, height: int, charset: Charset) -> list[str]:
    """Lay out the view as plain lines: at most `height` of at most `width` cells."""
    return ["".join(span.text for span in line) for line in compose(view, width, height, charset)]


def compose(view: View, width: int, height: int, charset: Charset) -> list[Line]:
    """Lay out the view in styled spans; none where nothing goes on."""
    going = [request for request in view.requests if request.progress.state != "ended"]
    if not going:
        return []
    # Those that run stand before those that wait.
    going.sort(key=lambda request: request.standing.is_waiting)
    room = max(1, height)
    foot = _foot(view, width, room)
    has_total = len(view.requests) + view.unbegun > 1 and room > len(foot)
    has_head = room - len(foot) - has_total >= 3
    room -= len(foot) + has_head + has_total
    lines: list[Line] = []
    if has_head:
        lines.append(_head(view, width, charset))
    shown = going
    if len(going) + bool(view.unbegun) > room:
        # Some room stays for what runs longest: a list of names alone says little.
        shown = going[: max(0, room - 1 - min(4, room // 4))]
    total = view.total if has_total else None
    starts = view.state == "running"
    lines += _body(going, shown, view.unbegun, total, starts, width, room, charset)
    lines += foot
    return [fitted(line, width, charset) for line in lines[: max(1, height)]]


def _body(
    going: Sequence[RequestView],
    shown: Sequence[RequestView],
    unbegun: int,
    total: Standing | None,
    starts: bool,
    width: int,
    room: int,
    charset: Charset,
) -> Iterator[Line]:
    standings = [request.standing for request in shown]
    if total is not None:
        standings.append(total)
    rows = list(_rows(standings, starts, width, charset)) if standings else []
    hidden = len(going) - len(shown) + unbegun
    left = room - len(shown) - bool(hidden)
    slowest = _slowest(going) if left >= 2 else []
    kept_for_slowest = min(len(slowest), max(2, left // 3)) if slowest else 0
    extras: list[list[Line]] = [[] for _ in shown]
    for make in (_details, _failures):
        for index, request in enumerate(shown):
            line = make(request, width, charset)
            if line and sum(map(len, extras)) < left - kept_for_slowest:
                extras[index].append(line)
    left -= sum(map(len, extras))
    for row, lines in zip(rows, extras, strict=False):
        yield row
        yield from lines
    if hidden and room > 0:
        yield (Span(f"{charset.cut} and {hidden} more requests", "dim"),)
    if total is not None:
        yield rows[-1]
    if left >= 2:
        yield from slowest[:left]


# -- the lines ---------------------------------------------------------------------------------


def _head(view: View, width: int, charset: Charset) -> Line:
    style = {"running": "title", "paused": "warn"}.get(view.state, "bad")
    facts = [duration(view.total.elapsed_s)]
    if view.concurrency is not None:
        facts.append(f"{view.total.running} of at most {view.concurrency} run")
    spent = _spent(view.budget)
    if spent:
        facts.append(spent)
    elif costs := [r.progress.cost_usd for r in view.requests if r.progress.cost_usd]:
        least = "at least " if any(r.progress.cost_usd is None for r in view.requests) else ""
        facts.append(f"{least}${usd(sum(costs), 2)}")
    spans = [Span(view.state, style), *(Span(f" {charset.dot} {fact}") for fact in facts)]
    return while_they_fit(spans, width)


def _rows(
    standings: Sequence[Standing], starts: bool, width: int, charset: Charset
) -> Iterator[Line]:
    names = [printable.one_line(standing.name) for standing in standings]
    counts = [_count(standing) for standing in standings]
    count_width = max(map(len, counts))
    facts = [_facts(standing, starts) for standing in standings]
    wanted = max(sum(len(text) + 1 for text, _ in of[:2]) for of in facts)
    needed = 1 + count_width + wanted
    name_width = min(_MAX_NAME, max(map(cell_len, names)))
    bar_width = next(
        (size for size in _BARS if name_width + needed + size + bool(size) <= width), 0
    )
    least = min(name_width, _MIN_NAME)
    name_width = min(name_width, max(least, width - needed))
    for name, count, of, standing in zip(names, counts, facts, standings, strict=True):
        line = [Span(set_cell_size(cut(name, name_width, charset), name_width), "title")]
        if bar_width:
            full = 0
            if standing.planned:
                full = min(bar_width, bar_width * standing.ended // standing.planned)
            line += [Span(" "), Span(charset.full * full, "bar")]
            line.append(Span(charset.rest * (bar_width - full), "rest"))
        line.append(Span(f" {count:>{count_width}}"))
        used = name_width + bar_width + bool(bar_width) + 1 + count_width
        for text, style in of:
            used += len(text) + 1
            if used > width:
                break
            line.append(Span(f" {text}", style))
        yield tuple(line)


def _count(standing: Standing) -> str:
    if standing.planned is None and not standing.ended:
        return "loading"
    planned = "?" if standing.planned is None else str(standing.planned)
    return f"{standing.ended}/{planned}"


def _facts(standing: Standing, starts: bool) -> list[tuple[str, str]]:
    """What a row says after its count, the most important first.

    While nothing starts, nobody knows when it ends.
    """
    found = []
    if standing.failed:
        found.append((f"{standing.failed} failed", "bad"))
    if standing.planned is None:
        found.append((duration(standing.elapsed_s), ""))
        if starts and standing.left_s is not None:
            found.append((f"ETA ~{duration(standing.left_s)}", ""))
        return found
    if standing.is_waiting:
        found.append(("waiting", "dim"))
    elif not starts:
        pass
    elif standing.left_s is not None:
        about = "~" if standing.is_rough else ""
        found.append((f"ETA {about}{duration(standing.left_s)}", ""))
    elif standing.ended < standing.planned:
        found.append(("ETA unknown", "dim"))
    if standing.planned:
        found.append((f"{100 * standing.ended // standing.planned}%", ""))
    if standing.per_s is not None and not standing.is_waiting:
        found.append((_rate(standing.per_s), ""))
    return found


def _rate(per_s: float) -> str:
    if per_s >= 10:
        return f"{per_s:.0f}/s"
    if per_s >= 1:
        return f"{per_s:.1f}/s"
    return f"{per_s * 60:.1f}/min" if per_s * 60 >= 1 else f"{per_s * 3600:.1f}/h"


def _details(request: RequestView, width: int, charset: Charset) -> Line:
    progress = request.progress
    if progress.planned is None:
        return ()
    facts = [f"{progress.running} running", f"{progress.queued} queued"]
    spent = _spent(request.budget)
    if spent:
        facts.append(spent)
    elif progress.cost_usd is None:
        facts.append("cost unknown")
    elif progress.cost_usd:
        facts.append(f"${usd(progress.cost_usd)}")
    waits_for = request.waits_for
    if waits_for and progress.queued and not (progress.running and waits_for == _CONCURRENCY):
        facts.append(waits_for if waits_for == "paused" else f"waits for {waits_for}")
    if scored := progress.outcomes.get(Outcome.SCORED, 0):
        facts.append(f"{scored} scored")
    if others := progress.ended - scored - failed(progress):
        facts.append(f"{others} skipped")
    if progress.retries:
        waiting = f" ({progress.waiting} waiting)" if progress.waiting else ""
        facts.append(f"{progress.retries} retries{waiting}")
    if progress.reused:
        facts.append(f"{progress.reused} reused")
    dots = ["  ", *(f" {charset.dot} " for _ in facts)]
    spans = [
        Span(dot + printable.one_line(fact), "dim") for dot, fact in zip(dots, facts, strict=False)
    ]
    return while_they_fit(spans, width)


def _failures(request: RequestView, width: int, charset: Charset) -> Line:
    issues = request.progress.issues
    if not issues:
        return ()
    ordered = sorted(issues.items(), key=lambda item: (-item[1], item[0]))
    spans = [Span("  failures:", "bad")]
    for number, (code, count) in enumerate(ordered[:_CODES]):
        spans.append(Span(f"{',' if number else ''} {printable.one_line(code)} {count}", "bad"))
    if len(ordered) > _CODES:
        spans.append(Span(f", {len(ordered) - _CODES} more codes", "bad"))
    return while_they_fit(spans, width, least=2)


def _slowest(going: Sequence[RequestView]) -> list[Line]:
    found = [(one, request) for request in going for one in request.progress.slowest]
    found.sort(key=lambda pair: -pair[0].age_s)
    if not found:
        return []
    names_them = len(going) > 1
    lines: list[Line] = [(Span("running longest, in phase", "dim"),)]
    for one, request in found[:_SLOWEST]:
        name = f"{request.progress.name} " if names_them else ""
        lines.append((Span(f"  {duration(one.age_s):>6}  "), *_where(one, name)))
    return lines


def _where(one: Underway, name: str) -> Iterator[Span]:
    yield Span(f"{printable.one_line(one.phase):<8} {duration(one.phase_s):>6}  ", "warn")
    yield Span(printable.one_line(f"{name}{one.task_id} #{one.attempt}"))


def _foot(view: View, width: int, room: int) -> list[Line]:
    if view.question is not None:
        return [(Span("y/n ", "key"), Span(view.question, "warn"))]
    if not view.has_keys:
        return []
    if view.shows_help and room >= len(HELP) + 3:
        return [(Span(f"{keys:>4}", "key"), Span(f"  {text}", "dim")) for keys, text in HELP]
    if room < 4:
        return []
    line: list[Span] = []
    for keys, text in _KEYS:
        text = "resume" if keys == "p" and view.state == "paused" else text
        gap = "  " if line else ""
        if sum(len(span.text) for span in line) + len(f"{gap}{keys} {text}") > width:
            continue
        line += [Span(f"{gap}{keys}", "key"), Span(f" {text}", "dim")]
    return [tuple(line)]


def _spent(budget: BudgetStanding) -> str:
    parts = []
    if budget.limit_usd is not None:
        parts.append(f"${usd(budget.spent_usd, 2)} of ${usd(budget.limit_usd, 2)}")
    if budget.limit_tokens is not None:
        parts.append(f"{_short(budget.spent_tokens)} of {_short(budget.limit_tokens)} tokens")
    return ", ".join(parts)


def _short(count: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


# -- widths ------------------------------------------------------------------------------------


def while_they_fit(spans: Sequence[Span], width: int, *, least: int = 1) -> Line:
    """The first of the spans that fit whole; the first `least` stay, to be cut."""
    used, kept = 0, []
    for number, span in enumerate(spans):
        used += cell_len(span.text)
        if used > width and number >= least:
            break
        kept.append(span)
    return tuple(kept)


def cut(text: str, width: int, charset: Charset) -> str:
    """Cut a text to so many cells, and show that it was."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + charset.cut if width > 0 else ""


def fitted(line: Line, width: int, charset: Charset) -> Line:
    """Cut a line that is too wide; what could not be shown in ASCII is replaced there."""
    spans: list[Span] = []
    left = width
    for text, style in line:
        shown = text if charset is Charset.UNICODE else _ascii(text)
        cells = cell_len(shown)
        if cells > left:
            spans.append(Span(cut(shown, left, charset), style))
            break
        spans.append(Span(shown, style))
        left -= cells
    return tuple(spans)


def _ascii(text: str) -> str:
    return text if text.isascii() else text.encode("ascii", "replace").decode("ascii")
