"""Run a planned submission for the command line: what is shown while it runs and at its end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.cli.evalset_scan import ShownScan, print_result, scan_left
from steelyard.cli.evalset_status import standing_lines
from steelyard.cli.followed import followed
from steelyard.cli.output import note, print_json, say, table_lines
from steelyard.cli.streams import redact_with
from steelyard.engine.events import RunOutcome
from steelyard.evalset.comparison_text import comparison_sections
from steelyard.evalset.following import standing_of
from steelyard.evalset.gates import Held
from steelyard.evalset.report.report_text import gate_section
from steelyard.evalset.scan_asked import scan_asked
from steelyard.evalset.standing import exit_status_of
from steelyard.evalset.states import SetState
from steelyard.evalset.submission import run_set
from steelyard.results.comparison_text import text_lines
from steelyard.results.gates import GATE_NOT_MET

if TYPE_CHECKING:
    from steelyard.evalset.resuming import NothingToDo
    from steelyard.evalset.scan_values import ScanResult
    from steelyard.evalset.set_plan import SetPlan
    from steelyard.evalset.set_reader import OpenedSet
    from steelyard.evalset.standing import SetStanding
    from steelyard.evalset.submission import SetResult
    from steelyard.evalset.surroundings import Surroundings

_COMPARED: Final = 10
"""Rows of a comparison with the baseline that are shown at the end."""
_SCANNED: Final = (RunOutcome.COMPLETED, RunOutcome.PARTIAL_FAILURE, RunOutcome.FAILED)


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
    scan = _scanned(plan, result)
    held = result.held
    status = result.exit_status
    if scan is not None and status in (0, GATE_NOT_MET):
        status = scan.exit_status or status
    standing = standing_of(result.opened)
    if as_json:
        print_json(redactor.tree(result_json(standing, status, scan, held)))
    elif not is_silent:
        _print_end(standing, scan, held)
    elif held is not None:
        for missed in (gate for gate in held.results if not gate.is_met):
            note(redactor.text(missed.line))  # no table says it
    return status


def _scanned(plan: SetPlan, result: SetResult) -> ScanResult | None:
    """Let the manifest's scanners read what came of the set, where it ran to its end.

    What a stop or a budget cut off is scanned when it has been gone on with.
    """
    names = plan.read.manifest.scanners
    if not names or result.outcome not in _SCANNED:
        return None
    opened = result.opened
    file = opened.document.manifest_file
    folder = plan.project.folder if file is None else Path(file).parent
    runtime = plan.prepared.plan.orchestration.runtime
    shown = ShownScan(is_silent=runtime.progress == "none")
    try:
        return asyncio.run(
            scan_asked(
                opened,
                names,
                plan.project,
                folder,
                redact=plan.prepared.redactor.text,
                on_progress=shown.progress,
                on_wait=shown.waits,
            )
        )
    finally:
        shown.close()


def nothing_to_do(
    opened: OpenedSet, error: NothingToDo, settings: Surroundings, *, kind: str, as_json: bool
) -> int:
    """Say that a set has nothing of what was asked for; return how the set ended.

    `resume` lets its scanners read what they have not: the closing scan may have been cut off.
    """
    standing = standing_of(opened)
    status = exit_status_of(standing.state, standing.submission) or 0
    scan = None
    if kind == "resume" and standing.state.value in _SCANNED:
        scan = scan_left(opened, settings)
    if scan is not None and status in (0, GATE_NOT_MET):
        status = scan.exit_status or status
    if as_json:
        print_json(result_json(standing, status, scan))
        return status
    for problem in error.problems:
        note(str(problem))
    for line in standing_lines(standing):
        say(line)
    if scan is not None and (scan.read or scan.exit_status):
        say("")
        print_result(scan)
    return status


def result_json(
    standing: SetStanding,
    exit_status: int,
    scan: ScanResult | None = None,
    held: Held | None = None,
) -> dict[str, Any]:
    """The one document of `evalset submit|resume|retry --json`."""
    return {
        "schema": "evalset-result/1",
        "exit_status": exit_status,
        "standing": standing.as_json(),
        "scan": None if scan is None else scan.as_json(),
        "gates": [] if held is None else [result.as_json() for result in held.results],
    }


def _print_end(standing: SetStanding, scan: ScanResult | None, held: Held | None) -> None:
    for line in standing_lines(standing):
        say(line)
    if scan is not None:
        say("")
        print_result(scan)
    if held is not None:
        say("")
        sections = [gate_section(held.results)] if held.results else []
        if held.comparison is not None:
            sections = comparison_sections(held.comparison, held.results, limit=_COMPARED)
        for line in text_lines(sections, table_lines):
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
