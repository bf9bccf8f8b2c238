"""`steelyard ctl RUN [ACTION]`: look at a launch that runs in another terminal, and steer it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from steelyard.cli.options import output_options
from steelyard.config.errors import Fault
from steelyard.results.consumption import dollars
from steelyard.results.figures import usd

_OPERANDS: Final = {
    "status": (),
    "pause": (),
    "resume": (),
    "drain": (),
    "cancel": (),
    "concurrency": ("N",),
    "provider": ("NAME", "N"),
}
_SHOWN: Final = 5
"""Of those that run longest."""
_DONE: Final = {
    "pause": "paused: what runs goes on, nothing starts before `resume`",
    "resume": "resumed",
    "drain": "draining: what runs ends and counts, nothing more starts",
    "cancel": "cancelled: what runs is being ended and cleaned up, its records are kept",
}
_NOT_DONE: Final = {
    "pause": "it was paused already",
    "resume": "it was not paused",
    "drain": "nothing was left to hold back",
}


@click.command("ctl")
@click.argument("run")
@click.argument("action", metavar="[ACTION]", default="status")
@click.argument("operands", metavar="[NAME] [N]", nargs=-1)
@output_options
def ctl(run: str, action: str, operands: tuple[str, ...], as_json: bool, debug: bool) -> int:
    """Look at the launch that RUN belongs to, while it runs, or steer it.

    RUN is a run directory, a folder of runs, a run's id, a request's name, or `latest`; of several
    runs the last to have begun of those that go on. All runs of one launch are steered together.

    \b
    status             where it stands (the default)
    pause              start nothing; what runs goes on
    resume             start again
    drain              start nothing more at all: what runs ends and counts,
                       the launch ends `cancelled` (130), --reuse goes on from it
    cancel             end what runs, as Ctrl-C does; again: give up the clean-up
    concurrency N      run at most N attempts at once
    provider NAME N    at most N through an environment provider; 0: no limit
    """
    from steelyard.cli.output import print_json, say
    from steelyard.engine.control_client import ask

    value, provider = _operands(action, operands)
    root = find_run(run)
    found = ask(root, action, value=value, provider=provider)
    if as_json:
        print_json(
            {"schema": "ctl/1", "run": str(root), "action": action, "changed": found["changed"]}
            | {"status": found["status"]}
        )
        return 0
    if action != "status":
        say(_what_came_of_it(action, found["changed"], value, provider))
    try:
        lines = status_lines(found["status"])
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise Fault(
            f"{root}: the status that its process gave makes no sense",
            remedy="use the steelyard that runs the launch",
        ) from error
    for line in lines:
        say(line)
    return 0


def _operands(action: str, operands: Sequence[str]) -> tuple[int | None, str | None]:
    """Read what follows the action.

    Raises:
        UsageError: an unknown action, too few, too many, or no number where one belongs.
    """
    if action not in _OPERANDS:
        near = difflib.get_close_matches(action, _OPERANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"actions: {', '.join(_OPERANDS)}"
        raise click.UsageError(f"no such action {action!r}; {hint}")
    wanted = _OPERANDS[action]
    if len(operands) != len(wanted):
        form = " ".join(("steelyard ctl RUN", action, *wanted))
        raise click.UsageError(f"{action} takes {len(wanted) or 'no'} more words: {form}")
    if not wanted:
        return None, None
    try:
        value = int(operands[-1])
    except ValueError:
        raise click.UsageError(f"{operands[-1]!r} is no whole number") from None
    return value, operands[0] if len(wanted) > 1 else None


def find_run(text: str) -> Path:
    """Give the run directory that RUN means; of several, the newest that goes on.

    Raises:
        BadInput: there is none.
    """
    from steelyard.cli.run_argument import chosen

    return chosen(Path(text), _begun)


def _begun(root: Path) -> tuple[bool, int]:
    """Order what goes on after what does not, then by when it began."""
    from steelyard.results.layout import RunFiles
    from steelyard.results.lock import is_alive

    try:
        return is_alive(RunFiles(root).lock), RunFiles(root).document.stat().st_mtime_ns
    except OSError:
        return False, 0


def _what_came_of_it(
    action: str, changed: bool | None, value: int | None, provider: str | None
) -> str:
    if action in _DONE:
        return _DONE[action] if changed else _NOT_DONE[action]
    verb = "is now" if changed else "was already"
    if provider is None:
        return f"task concurrency {verb} {value}"
    return f"the limit of {provider} {verb} {value or 'none'}"


def status_lines(status: dict[str, Any]) -> list[str]:
    """Lay out the status of a launch for people."""
    from steelyard.cli.output import table_lines
    from steelyard.cli.pace import duration

    providers = ", ".join(
        f"{name} {_of_limit(use['running'], use['limit'])}"
        for name, use in status["providers"].items()
    )
    running = _of_limit(status["running"], status["task_concurrency"], "at most ")
    lines = [f"{status['state']}: {running} run ({providers})"]
    uses = [(status["running"], status["task_concurrency"])]
    uses += [(use["running"], use["limit"]) for use in status["providers"].values()]
    if any(limit and running > limit for running, limit in uses):
        lines.append("what is above a limit began before it was lowered, and goes on to its end")
    spent = budget_text(status["budget"])
    if spent:
        lines.append(f"budget: {spent}")
    lines += ["", *table_lines(_COLUMNS, [_row(request) for request in status["requests"]])]
    underway = [
        (request["name"], one) for request in status["requests"] for one in request["slowest"]
    ]
    underway.sort(key=lambda pair: -pair[1]["age_s"])
    if underway:
        rows = [
            (duration(one["age_s"]), name, one["task_id"], one["attempt"], one["phase"],
             duration(one["phase_s"]))
            for name, one in underway[:_SHOWN]
        ]  # fmt: skip
        titles = ("age", "request", "task", "attempt", "phase", "for")
        lines += ["", "running longest:", *table_lines(titles, rows)]
    return lines


def _of_limit(running: int, limit: int, most: str = "") -> str:
    if not limit:
        return str(running)
    return f"{running} (limit {limit})" if running > limit else f"{running} of {most}{limit}"


_COLUMNS: Final = ("request", "state", "ended", "running", "queued", "failed", "cost", "waits for")
_FAILED: Final = ("failed_fatal", "failed_error", "timed_out")


def _row(request: dict[str, Any]) -> tuple[object, ...]:
    planned = "?" if request["planned"] is None else request["planned"]
    cost = dollars(request["cost_usd"])
    spent = budget_text(request["budget"])
    return (
        request["name"],
        request["state"],
        f"{request['ended']}/{planned}",
        request["running"],
        request["queued"],
        sum(request["outcomes"].get(word, 0) for word in _FAILED),
        f"{cost} ({spent})" if spent else cost,
        request["waits_for"],
    )


def budget_text(budget: dict[str, Any]) -> str:
    """Say what is spent of a budget's limits; empty where it has none."""
    parts = []
    if budget["limit_usd"] is not None:
        parts.append(f"${usd(budget['spent_usd'], 2)} of ${usd(budget['limit_usd'], 2)}")
    if budget["limit_tokens"] is not None:
        parts.append(f"{budget['spent_tokens']} of {budget['limit_tokens']} tokens")
    return ", ".join(parts)
