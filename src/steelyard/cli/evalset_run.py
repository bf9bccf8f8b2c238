"""Run a planned submission for the command line: what is shown while it runs and at its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from steelyard.cli.evalset_status import standing_lines
from steelyard.cli.followed import followed
from steelyard.cli.output import note, print_json, say
from steelyard.cli.streams import redact_with
from steelyard.evalset.following import standing_of
from steelyard.evalset.states import EXIT_STATUS, SetState
from steelyard.evalset.submission import run_set

if TYPE_CHECKING:
    from steelyard.evalset.resuming import NothingToDo
    from steelyard.evalset.set_plan import SetPlan
    from steelyard.evalset.set_reader import OpenedSet
    from steelyard.evalset.standing import SetStanding


def execute_set(plan: SetPlan, *, as_json: bool, reap: bool) -> int:
    """Run it and print what came of it; return the exit status.

    Raises:
        BadInput: its folder is taken, or another process runs it; nothing has started.
    """
    redactor = plan.prepared.redactor
    redact_with(redactor.text)
    runtime = plan.prepared.plan.orchestration.runtime
    is_silent = runtime.progress == "none"
    with followed(plan.prepared, runtime) as shown:
        news = shown.news

        def begun(opened: OpenedSet) -> None:
            count = f"{len(plan.cells)} of {len(plan.document.cells)} cells"
            news.notice(None, f"the set {opened.set_id}: {count}, in {opened.root}")

        result = asyncio.run(
            run_set(
                plan,
                observer=news,
                controls=shown.controls,
                handle_signals=True,
                reap=reap,
                on_begun=begun,
            )
        )
    standing = standing_of(result.opened)
    if as_json:
        print_json(redactor.tree(result_json(standing, result.exit_status)))
    elif not is_silent:
        _print_end(standing)
    return result.exit_status


def nothing_to_do(opened: OpenedSet, error: NothingToDo, *, as_json: bool) -> int:
    """Say that a set has nothing of what was asked for; return how the set ended."""
    standing = standing_of(opened)
    status = EXIT_STATUS[standing.state]
    if as_json:
        print_json(result_json(standing, status))
        return status
    for problem in error.problems:
        note(str(problem))
    for line in standing_lines(standing):
        say(line)
    return status


def result_json(standing: SetStanding, exit_status: int) -> dict[str, Any]:
    """The one document of `evalset submit|resume|retry --json`."""
    return {
        "schema": "evalset-result/1",
        "exit_status": exit_status,
        "standing": standing.as_json(),
    }


def _print_end(standing: SetStanding) -> None:
    for line in standing_lines(standing):
        say(line)
    say("")
    name = standing.set_id
    say(f"figures: steelyard evalset report {name}")
    if standing.state is SetState.BUDGET_EXCEEDED:
        say(f"go on:   steelyard evalset resume {name} --budget-usd USD")
    elif standing.state in (SetState.CANCELLED, SetState.TIMED_OUT, SetState.INTERRUPTED):
        say(f"go on:   steelyard evalset resume {name}")
    elif standing.state is not SetState.COMPLETED:
        say(f"again:   steelyard evalset retry {name}")
