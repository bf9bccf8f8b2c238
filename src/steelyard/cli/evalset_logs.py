"""`steelyard evalset logs SET`: what happened in its cells, line by line, as it comes."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from steelyard.cli.options import output_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.evalset.happenings import Happening, Happenings
    from steelyard.evalset.set_reader import OpenedSet

INTERVAL_S: Final = 0.5
_SHARE: Final = 10
_MAX_INTERVAL_S: Final = 5.0
_MESSAGE: Final = 300


@click.command("logs")
@click.argument("set_", metavar="SET")
@click.option("-f", "--follow", is_flag=True, help="Go on until the set has ended.")
@click.option(
    "--cell", "keys", multiple=True, metavar="KEY", help="Only these cells: keys or patterns."
)
@click.option(
    "--case", "cases", multiple=True, metavar="CASE", help="Only these cases: ids or patterns."
)
@click.option(
    "--tail", type=click.IntRange(min=0), metavar="N", help="Of what there is the last N."
)
@click.option("--log", "has_log", is_flag=True, help="Lines of each run's run.log, too.")
@click.option("--phases", "has_phases", is_flag=True, help="Phases and sessions of attempts, too.")
@output_options
def logs(
    set_: str,
    follow: bool,
    keys: tuple[str, ...],
    cases: tuple[str, ...],
    tail: int | None,
    has_log: bool,
    has_phases: bool,
    as_json: bool,
    debug: bool,
) -> int:
    """Print what happened in SET: what began, what ended how, what was retried, what went wrong.

    Cell by cell, each in the order of time; with --tail over all cells. With --follow what comes is
    printed as it comes, until the set has ended; the exit status is the set's. With --json each
    line is a document `evalset-log/1`.
    """
    from steelyard.cli.output import note
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.cell_choice import NothingMatches, check_each_matches, chosen_cells
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.happenings import Happenings, Wanted

    opened = find_set(set_, results_dir())
    happenings = Happenings(
        opened, chosen_cells(opened.cells, keys), Wanted(cases, has_phases, has_log)
    )
    status = 0
    if follow:
        try:
            status = _follow(opened, happenings, tail, as_json=as_json)
        except KeyboardInterrupt:
            note("no longer followed; the set goes on")
            return 130
    else:
        _emit(_last(happenings.read_on(), tail), as_json=as_json)
    for warning in happenings.warnings:
        note(f"warning: {warning}")
    try:
        check_each_matches(cases, happenings.cases, "case")
    except NothingMatches as error:
        if not follow:
            raise
        note(str(error))  # the status is the set's
    return status


def _follow(
    opened: OpenedSet,
    happenings: Happenings,
    tail: int | None,
    *,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Print what comes until the set has ended; give the set's exit status."""
    from steelyard.evalset.standing import exit_status_of
    from steelyard.evalset.state_following import StateFollower

    state = StateFollower(opened)
    is_first = True
    while True:
        began_s = time.monotonic()
        # Asked before it is read: what was written before the end is printed, too.
        status = exit_status_of(*state.look())
        found = happenings.read_on()
        if is_first:
            _emit(_last(found, tail), as_json=as_json)
        else:
            _emit(sorted(found, key=lambda one: one.at), as_json=as_json)
        is_first = False
        if status is not None:
            return status
        took_s = max(0.0, time.monotonic() - began_s)
        sleep(min(_MAX_INTERVAL_S, max(INTERVAL_S, took_s * _SHARE)))


def _last(found: Iterable[Happening], tail: int | None) -> Iterable[Happening]:
    """Give the last N in the order of time; all as they come without N."""
    if tail is None:
        return found
    if tail == 0:
        deque(found, maxlen=0)  # read all the same: what follows is what is new
        return ()
    numbered = ((one.at, number, one) for number, one in enumerate(found))
    return [one for _, _, one in sorted(heapq.nlargest(tail, numbered))]


def _emit(found: Iterable[Happening], *, as_json: bool) -> None:
    import json

    from steelyard.cli.evalset_watch import emit
    from steelyard.config import printable

    for one in found:
        if as_json:
            emit(printable.json_lines(json.dumps(one.as_json(), ensure_ascii=False, default=str)))
        else:
            emit(happening_line(one))


def happening_line(one: Happening) -> str:
    """Say in one line what happened; stable words, for grep."""
    from steelyard.config import printable

    if one.kind == "log":
        return printable.one_line(f"{one.matrix_key}  {one.data.get('text', '')}")
    what = _record_text(one.data) if one.kind == "record" else _event_text(one.data)
    case = "" if one.case is None else f"  {one.case} #{one.attempt}"
    return printable.one_line(f"{one.at or '-'}  {one.matrix_key}{case}  {what}")


def _record_text(data: Mapping[str, Any]) -> str:
    from steelyard.results.consumption import dollars
    from steelyard.results.documents import part
    from steelyard.results.figures import figure

    whole = dict(data)
    parts = [str(data.get("outcome"))]
    for name, value in part(whole, "metrics").items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        parts.append(f"{name}={figure(float(value)) if is_number else str(value).lower()}")
    issues = data.get("issues")
    said = [
        f"{issue.get('code')}: {_cut(issue.get('message'))}"
        for issue in (issues if isinstance(issues, list) else ())
        if isinstance(issue, dict) and issue.get("severity") != "WARNING"
    ]
    parts += dict.fromkeys(said)  # each execution says it once
    agent_s = part(whole, "timing").get("agent_s")
    if isinstance(agent_s, int | float):
        parts.append(f"{agent_s:.2f}s")
    cost = part(whole, "usage").get("cost_usd", 0.0)
    if cost != 0 and (cost is None or isinstance(cost, int | float)):
        parts.append(dollars(cost))
    if reused := part(whole, "reused_from"):
        parts.append(f"taken from {reused.get('run_id')}")
    return " ".join(parts)


def _event_text(data: Mapping[str, Any]) -> str:
    kind = str(data.get("kind"))
    execution = data.get("execution")
    match kind:
        case "planned":
            reuse = f", goes on from {data['reuse']}" if data.get("reuse") else ""
            return f"planned {data.get('tasks')} cases x {data.get('k')}{reuse}"
        case "started":
            again = f" again, execution {execution}" if execution not in (1, None) else ""
            return f"started{again}"
        case "retry":
            wait = data.get("wait_s")
            after = f", in {wait:.1f}s" if isinstance(wait, int | float) else ""
            return f"retried for {data.get('cause')}{after}"
        case "warning":
            return f"warning: {_cut(data.get('message'))}"
        case "request_stopped":
            return f"stopped: {_cut(data.get('reason'))}"
        case "control":
            return f"{data.get('action')} by {data.get('by')}"
        case "finished":
            reason = data.get("reason")
            return f"{data.get('outcome')}{f': {_cut(reason)}' if reason else ''}"
    rest = {
        name: value
        for name, value in data.items()
        if name not in ("seq", "at", "kind", "schema", "task_id", "attempt", "token")
    }
    return " ".join([kind, *(f"{name}={_cut(value)}" for name, value in rest.items())])


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]}…"
