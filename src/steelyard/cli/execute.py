"""Run a resolved orchestration for the command line: progress while it runs, tables at its end."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from steelyard.cli.output import print_json, say, table_lines
from steelyard.cli.progress import Renderer, make_renderer
from steelyard.config.redaction import RedactingFormatter, Redactor
from steelyard.config.resolve import Resolution
from steelyard.engine.events import LaunchResult, RequestResult
from steelyard.engine.launch import launch, prepare
from steelyard.engine.run_log import listening


def execute(resolution: Resolution, *, as_json: bool) -> int:
    """Run it and print what came of it; return the exit status.

    Raises:
        BadInput: nothing was created.
    """
    prepared = prepare(resolution)
    runtime = resolution.orchestration.runtime
    renderer = make_renderer(runtime.progress)
    handler = _terminal_log(prepared.redactor, runtime.log_level, renderer)
    for warning in prepared.plan.warnings:
        renderer.notice(None, f"warning: {prepared.redactor.text(str(warning))}")
    try:
        with listening(handler):
            result = asyncio.run(launch(prepared, observer=renderer, handle_signals=True))
    finally:
        renderer.close()
    if as_json:
        print_json(prepared.redactor.tree(result_json(result)))
    elif runtime.progress != "none":
        print_result(result)
    return result.exit_status


def result_json(result: LaunchResult) -> dict[str, Any]:
    """The one document that `run --json` and `launch --json` print."""
    return {
        "schema": "launch-result/1",
        "outcome": result.outcome.value,
        "exit_status": result.exit_status,
        "elapsed_s": round(result.elapsed_s, 3),
        "loop_lag_p99_ms": result.loop_lag_p99_ms,
        "requests": [_request_json(request) for request in result.requests],
    }


def _request_json(request: RequestResult) -> dict[str, Any]:
    return {
        "name": request.name,
        "outcome": request.outcome.value,
        "reason": request.reason,
        "run_dir": str(request.run_dir),
        "planned": request.planned,
        "outcomes": {outcome.value: count for outcome, count in request.counts.items()},
        "reuse": request.reuse,
        "metrics": request.metrics,
    }


def print_result(result: LaunchResult) -> None:
    """Print the final table: every figure with how sure it is, and where the rest lies."""
    from steelyard.results.summary import TABLE_COLUMNS, request_table

    for request in result.requests:
        say()
        say(f"{request.name}: {request.outcome}")
        if request.reason:
            for line in request.reason.split("\n"):
                say(f"  {line}")
        if request.metrics is not None:
            for line in table_lines(TABLE_COLUMNS, request_table(dict(request.metrics))):
                say(f"  {line}")
        ended = ", ".join(
            f"{count} {outcome}" for outcome, count in request.counts.items() if count
        )
        say(f"  attempts: {ended or 'none'} (of {request.planned})")
        say(f"  {request.run_dir}")
    say()
    say(f"{result.outcome} in {result.elapsed_s:.1f} s")


class _ToRenderer(logging.Handler):
    """Hands log lines to the renderer, so that a live view and a log line never mix."""

    def __init__(self, renderer: Renderer) -> None:
        super().__init__()
        self._renderer = renderer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._renderer.notice(None, self.format(record))
        except Exception:  # noqa: BLE001 — logging must never end a run
            self.handleError(record)


def _terminal_log(redactor: Redactor, level: str, renderer: Renderer) -> logging.Handler:
    handler = _ToRenderer(renderer)
    handler.setLevel(level)
    handler.setFormatter(
        RedactingFormatter(logging.Formatter("%(levelname)s %(message)s"), redactor)
    )
    logger = logging.getLogger("steelyard")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return handler
