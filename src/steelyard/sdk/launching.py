"""The calls `run`, `launch` and `resolve`, each also as a coroutine: `arun`, `alaunch`, `aresolve`.

The coroutine is the thing itself, the plain call waits for it. Settings, planning and running are
the command line's own; nothing of their rules is here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from steelyard.sdk.blocking import run_to_end
from steelyard.sdk.builders import BenchmarkLike, HarnessLike, ModelLike, Orchestration, Request
from steelyard.sdk.hiding import hiding
from steelyard.sdk.options import (
    Controls,
    LaunchOptions,
    PathLike,
    RunOptions,
    check_options,
    takes,
)

if TYPE_CHECKING:
    from steelyard.config.errors import Problem
    from steelyard.config.redaction import Redactor
    from steelyard.config.resolve import Resolution
    from steelyard.engine.launch import Prepared
    from steelyard.sdk.preview import ResolvedLaunch
    from steelyard.sdk.resolving import Asked
    from steelyard.sdk.results import LaunchResult, RunResult

log = logging.getLogger(__name__)

Source = PathLike | Mapping[str, Any] | Orchestration | Request
"""A file, what such a file holds, or the same as values."""


@takes(RunOptions)
async def arun(
    benchmark: BenchmarkLike,
    harness: HarnessLike,
    model: ModelLike = None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Evaluate a model with a harness on a benchmark; as `run`, on the running loop.

    Cancelled, it stops in order (what runs is ended and cleaned up, records are kept) before
    `CancelledError` leaves it; cancelled again it gives up the clean-up.
    """
    check_options("run", RunOptions, options)
    from steelyard.sdk.resolving import resolved_run

    result = await _launched(lambda: resolved_run(benchmark, harness, model, options), options)
    return result.runs[0]


@takes(RunOptions)
def run(
    benchmark: BenchmarkLike,
    harness: HarnessLike,
    model: ModelLike = None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Evaluate a model with a harness on a benchmark: `steelyard run`, as a call.

    Args:
        benchmark: an id, a pack's folder, `{"id": …}` with fields, a class, or an instance.
        harness: likewise.
        model: an id, a `Model`, `{"id": …}` with fields; None for a harness that calls none.
        **options: settings over those of files; see `RunOptions`.

    Returns:
        How it ended. A run that failed is a result, too: `require_completed()` raises.

    Raises:
        BadInput: everything that is wrong with what was given; nothing was created.
        KeyboardInterrupt: on SIGINT, after it stopped in order; `reuse=True` goes on.
    """
    return run_to_end(lambda: arun(benchmark, harness, model, **options))


@takes(LaunchOptions)
async def alaunch(source: Source, **options: Unpack[LaunchOptions]) -> LaunchResult:
    """Run the requests of an orchestration over one pool; as `launch`, on the running loop.

    Cancelled, it stops in order (what runs is ended and cleaned up, records are kept) before
    `CancelledError` leaves it; cancelled again it gives up the clean-up.
    """
    check_options("launch", LaunchOptions, options)
    from steelyard.sdk.resolving import resolved_launch

    return await _launched(lambda: resolved_launch(source, options), options)


@takes(LaunchOptions)
def launch(source: Source, **options: Unpack[LaunchOptions]) -> LaunchResult:
    """Run the requests of an orchestration over one pool: `steelyard launch`, as a call.

    Args:
        source: the path of a file, a mapping of the same form, an `Orchestration` or a `Request`.
        **options: settings over those of files; see `LaunchOptions`.

    Raises:
        BadInput: everything that is wrong with what was given; nothing was created.
        KeyboardInterrupt: on SIGINT, after it stopped in order; `reuse=True` goes on.
    """
    return run_to_end(lambda: alaunch(source, **options))


@takes(Controls)
async def aresolve(source: Source, **options: Unpack[Controls]) -> ResolvedLaunch:
    """Say what would run; as `resolve`, on the running loop."""
    check_options("resolve", Controls, options)
    from steelyard.engine.loading import in_daemon

    return await in_daemon(_previewed, source, options)


@takes(Controls)
def resolve(source: Source, **options: Unpack[Controls]) -> ResolvedLaunch:
    """Say what `launch` would run: `--dry-run`, as a call. Creates and spends nothing.

    Args:
        source: as `launch` takes it.
        **options: settings over those of files; see `Controls`.

    Raises:
        BadInput: everything that is wrong with what was given.
    """
    check_options("resolve", Controls, options)
    return _previewed(source, options)


# -- running -----------------------------------------------------------------------------------


async def _launched(resolve: Callable[[], Asked], options: Mapping[str, Any]) -> LaunchResult:
    from steelyard.engine.launch import launch as engine_launch
    from steelyard.engine.loading import in_daemon
    from steelyard.sdk.following import Followers
    from steelyard.sdk.logs import logging_for
    from steelyard.sdk.results import LaunchResult, run_result

    # Reads files, imports components, probes the machine: not on a loop that others share.
    prepared = await in_daemon(lambda: _prepared(resolve()))
    redact = prepared.redactor.text
    with ExitStack() as stack:
        stack.enter_context(hiding(redact))
        stack.enter_context(logging_for(prepared.redactor))
        followers = stack.enter_context(Followers(prepared, options))
        for extra in prepared.installed:
            followers.observer.notice(None, f"installed the extra {extra}")
        for warning in prepared.plan.warnings:
            followers.observer.notice(None, f"warning: {redact(str(warning))}")
        result = await followers.follow(engine_launch(prepared, observer=followers.observer))
    return LaunchResult(
        result.outcome,
        result.exit_status,
        tuple(run_result(request, redact) for request in result.requests),
        result.elapsed_s,
        result.loop_lag_p99_ms,
    )


def _prepared(asked: Asked) -> Prepared:
    from steelyard.components.clock import SystemClock
    from steelyard.engine.launch import prepare

    clock = SystemClock()
    maker = asked.lending.maker(asked.resolution, clock)
    with hiding(_redactor(asked.resolution).text):
        return prepare(asked.resolution, clock=clock, maker=maker)


# -- resolving ---------------------------------------------------------------------------------


def _previewed(source: Source, options: Mapping[str, Any]) -> ResolvedLaunch:
    from steelyard.cli.dry_run import endpoint_host, results_path, settings_json
    from steelyard.components.clock import SystemClock
    from steelyard.engine.plan import make_plan
    from steelyard.sdk.preview import ResolvedLaunch, ResolvedRequest
    from steelyard.sdk.resolving import resolved_launch

    asked = resolved_launch(source, options)
    resolution, clock = asked.resolution, SystemClock()
    redactor = _redactor(resolution)
    with hiding(redactor.text):
        plan = make_plan(resolution, clock=clock, maker=asked.lending.maker(resolution, clock))
    whole = redactor.tree(settings_json(resolution))
    requests = tuple(
        ResolvedRequest(
            planned.request.name,
            planned.request.benchmark.id,
            planned.request.harness.id,
            planned.spec.environment.id,
            planned.request.model.id,
            endpoint_host(planned.request.model, resolution.secrets),
            planned.k,
            planned.request.execution.attempts.strategy,
            planned.early_stop,
            shown,
        )
        for planned, shown in zip(plan.requests, whole["requests"], strict=True)
    )
    warnings = [_redacted(problem, redactor) for problem in (*plan.warnings, *plan.lacking)]
    orchestration = resolution.orchestration
    return ResolvedLaunch(
        orchestration.name,
        orchestration.task_concurrency,
        results_path(resolution),
        requests,
        tuple(warnings),
        whole,
    )


def _redactor(resolution: Resolution) -> Redactor:
    from steelyard.config.redaction import Redactor

    secret_env = resolution.orchestration.runtime.secret_env
    return Redactor(resolution.secrets, secret_env=secret_env)


def _redacted(problem: Problem, redactor: Redactor) -> Problem:
    remedy = redactor.text(problem.remedy) if problem.remedy else None
    return replace(problem, message=redactor.text(problem.message), remedy=remedy)
