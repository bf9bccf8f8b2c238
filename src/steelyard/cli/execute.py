"""Run a resolved orchestration for the command line: progress while it runs, tables at its end."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, Final

from steelyard.cli.asked import NOTHING, Asked, Ending, concluded, ending_lines, write_files
from steelyard.cli.followed import followed, prepared_aloud
from steelyard.cli.json_log import JsonNews
from steelyard.cli.news import News
from steelyard.cli.output import note, print_json, say
from steelyard.config.resolve import Resolution
from steelyard.engine.budget import NO_BUDGET, BudgetLimits
from steelyard.engine.events import RequestResult
from steelyard.engine.launch import launch, prepare
from steelyard.engine.plan import Plan
from steelyard.results.consumption import spending

log = logging.getLogger(__name__)

_NARROWEST: Final = 40
"""In a terminal narrower than this, lines are broken by the terminal."""


def execute(resolution: Resolution, *, as_json: bool, asked: Asked = NOTHING) -> int:
    """Run it and print what came of it; return the exit status.

    Raises:
        BadInput: nothing was created.
    """
    runtime = resolution.orchestration.runtime
    mode = runtime.progress
    with prepared_aloud(runtime):
        prepared = prepare(resolution)
    gates = asked.gates(prepared.plan)
    with followed(prepared, runtime) as shown:
        news = shown.news
        result = asyncio.run(
            launch(
                prepared,
                observer=news,
                controls=shown.controls,
                handle_signals=True,
                reap=asked.reap,
            )
        )
        ending = concluded(result, asked, gates)
        if mode == "none":
            # No table says it. The silent renderer would not either; JSON lines stay such.
            for missed in (gate for gate in ending.gates if not gate.is_met):
                if runtime.log_format == "json":
                    log.error("%s", missed.line)
                else:
                    note(prepared.redactor.text(missed.line))
    if as_json:
        print_json(prepared.redactor.tree(result_json(ending, prepared.plan)))
    elif mode != "none":
        _print_result(ending, prepared.plan, news, prepared.redactor.text)
    return write_files(ending, asked, prepared.redactor.text)


def result_json(ending: Ending, plan: Plan) -> dict[str, Any]:
    """The one document that `run --json` and `launch --json` print."""
    result = ending.result
    budgets = _budgets(plan)
    return {
        "schema": "launch-result/1",
        "outcome": result.outcome.value,
        "exit_status": result.exit_status,
        "elapsed_s": round(result.elapsed_s, 3),
        "loop_lag_p99_ms": result.loop_lag_p99_ms,
        "budget": _budget_json(result.requests, plan.budget()),
        "requests": [_request_json(request, budgets) for request in result.requests],
        "gates": [each.as_json() for each in ending.gates],
        "calibrations": list(ending.calibrations),
        "calibrating": [_request_json(request, budgets) for request in ending.calibrating],
    }


def _budgets(plan: Plan) -> dict[str, BudgetLimits]:
    return {planned.request.name: planned.budget for planned in plan.requests}


def _budget_json(requests: Sequence[RequestResult], limits: BudgetLimits) -> dict[str, Any]:
    spent = spending(request.metrics for request in requests)
    return {
        "spent_usd": spent.cost_usd,
        "known_spent_usd": spent.known_usd,
        "limit_usd": limits.usd,
        "spent_tokens": spent.tokens,
        "limit_tokens": limits.tokens,
    }


def _request_json(request: RequestResult, budgets: Mapping[str, BudgetLimits]) -> dict[str, Any]:
    return {
        "name": request.name,
        "outcome": request.outcome.value,
        "reason": request.reason,
        "run_dir": None if request.run_dir is None else str(request.run_dir),
        "planned": request.planned,
        "outcomes": {outcome.value: count for outcome, count in request.counts.items()},
        "reuse": request.reuse,
        "budget": _budget_json((request,), budgets.get(request.name, NO_BUDGET)),
        "metrics": request.metrics,
    }


def _print_result(
    ending: Ending, plan: Plan, news: News | JsonNews, redact: Callable[[str], str]
) -> None:
    from steelyard.cli.report import WIDTH, report_lines

    result = ending.result
    # Where both streams are one terminal, what was said a moment ago is not said again.
    is_one_terminal = sys.stdout.isatty() and sys.stderr.isatty() and len(result.requests) == 1
    said = [r.name for r in result.requests if is_one_terminal and news.has_said(r.reason)]
    budgets = _budgets(plan)
    width = (
        min(WIDTH, max(_NARROWEST, get_terminal_size().columns)) if sys.stdout.isatty() else WIDTH
    )
    lines = report_lines(
        result, without_reason=said, budget=plan.budget(), budgets=budgets, width=width
    )
    for line in lines:
        say(line)
    for line in ending_lines(ending):
        say(redact(line))
