"""One execution of one attempt: a function per phase over what the execution has gathered.

    setup → run → collect → close the agent's session → evaluate → clean up

Phases raise; one boundary in `execute` turns what they raise into issues by a table. Nothing
here knows of admission, records or retries.
"""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import Evaluation, Task
from steelyard.components.environment import EnvironmentFault
from steelyard.components.harness import HarnessResult
from steelyard.components.issues import AttemptFault, IssueCode, Outcome, Phase
from steelyard.config.errors import BadInput
from steelyard.engine.checkpointing import precedes_scoring
from steelyard.engine.collecting import collect, save_artifacts
from steelyard.engine.deadlines import RunDeadline, TimeUp
from steelyard.engine.keeping import LEFT, close_or_say, part_with
from steelyard.engine.scoring import Scoring
from steelyard.engine.services import Services
from steelyard.engine.spec import ExecutionObserver, ExecutionResult, ExecutionSpec
from steelyard.engine.stages import all_scored, work_on_stages
from steelyard.engine.summing_up import outcome_of, result_of
from steelyard.engine.work import Work
from steelyard.results.session_tokens import AGENT_SUFFIX, SCORER_SUFFIX

log = logging.getLogger(__name__)

CRASH_CODE: Final[Mapping[Phase, IssueCode]] = MappingProxyType(
    {
        Phase.SETUP: IssueCode.UNKNOWN,
        Phase.RUN: IssueCode.HARNESS_CRASHED,
        Phase.COLLECT: IssueCode.COLLECT_FAILED,
        Phase.EVALUATE: IssueCode.SCORER_CRASHED,
        Phase.CLEANUP: IssueCode.CLEANUP_FAILED,
    }
)
"""What an exception that nobody foresaw is called, by phase."""

TIMEOUT_CODE: Final[Mapping[Phase, IssueCode]] = MappingProxyType(
    {
        Phase.SETUP: IssueCode.ENVIRONMENT_OPEN_TIMED_OUT,
        Phase.RUN: IssueCode.AGENT_TIMED_OUT,
        Phase.COLLECT: IssueCode.COLLECT_FAILED,
        Phase.EVALUATE: IssueCode.SCORER_TIMED_OUT,
        Phase.CLEANUP: IssueCode.CLEANUP_FAILED,
    }
)


async def execute(
    spec: ExecutionSpec, services: Services, observer: ExecutionObserver
) -> ExecutionResult:
    """Run one execution to its end; see `Executor` for what cancelling does.

    Never raises for what happens to the attempt.
    """
    work = Work(spec, services, observer)
    cancelled = False
    try:
        await _phases(work)
    except asyncio.CancelledError:
        cancelled = True
        _absorb_cancellation()
    except TimeUp as error:
        work.add_issue(TIMEOUT_CODE[work.phase], str(error))
    except AttemptFault as fault:
        work.add_issue(fault.code, fault.message, retry_after_s=fault.retry_after_s)
        if fault.request_fault:
            work.request_fault = fault.message
    except EnvironmentFault as fault:
        work.add_issue(IssueCode.ENVIRONMENT_LOST, str(fault))
    except BadInput as error:
        work.add_issue(IssueCode.TASK_INVALID, str(error))
    except ModuleNotFoundError as error:
        log.exception("%s attempt %d: %s", spec.task.id, spec.attempt, work.phase)
        what = f"the Python package {error.name!r}" if error.name else "a Python package"
        work.add_issue(IssueCode.DEPENDENCY_MISSING, f"{what} is not installed: {error}")
    except (Exception, SystemExit) as error:  # a component that exits must not end the launch
        log.exception("%s attempt %d: %s crashed", spec.task.id, spec.attempt, work.phase)
        work.add_issue(CRASH_CODE[work.phase], f"{type(error).__name__}: {error}")
    await _end(work, is_cancelled=cancelled)
    result = result_of(work, Outcome.CANCELLED if cancelled else outcome_of(work))
    work.let_go()
    return result


async def _end(work: Work, *, is_cancelled: bool) -> None:
    """Clean up; the first cancellation leaves it the time it needs, the next one gives it up.

    What was scored and spent is kept either way.
    """
    for is_last in (True,) if is_cancelled else (False, True):
        try:
            await _clean_up(work)
            return
        except asyncio.CancelledError:
            _absorb_cancellation()
            if is_last:
                work.add_issue(IssueCode.CLEANUP_FAILED, "the clean-up was given up: cancelled")


def _absorb_cancellation() -> None:
    """Tell asyncio that the request to cancel has been met by ending the execution."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


async def _phases(work: Work) -> None:
    saved = work.spec.saved
    if saved is not None:
        _render(work)
        work.answer = saved.answer
        work.steps = list(saved.steps)
        work.inputs = {path: Path(source) for path, source in saved.inputs.items()}
        await _evaluate(work)
        return
    await _set_up(work)
    await _run_agent(work)
    if work.agent is not None:
        await _take_out(work)
    if work.fell_short:
        return
    if work.input.mode is not EvaluationMode.REUSE:
        if precedes_scoring(work):
            # Before the agent's session is closed: that may take long, and its work is all there.
            await work.checkpointing.written()
        await _close_agent_session(work)
    await _evaluate(work)


async def _set_up(work: Work) -> None:
    """Render the task; open and fill the environment where the agent must find one."""
    _render(work)
    if work.input.needs_environment:
        await work.session()


def _render(work: Work) -> None:
    work.begin(Phase.SETUP)
    work.input = work.services.benchmark.task_input(
        work.spec.task, attempt=work.spec.attempt, seed=work.spec.seed
    )


async def _run_agent(work: Work) -> None:
    began = work.begin(Phase.RUN)
    limit_s = work.spec.request.limits.run(work.input.limits.run_seconds)
    deadline: RunDeadline | None = None
    try:
        if limit_s is None and not work.input.stages:
            work.start_timer(began, None)
            result = await _harness_result(work, None)
        else:
            async with asyncio.timeout(limit_s) as scope:
                deadline = RunDeadline(scope, limit_s)
                work.start_timer(began, deadline)
                result = await _harness_result(work, deadline)
    except TimeoutError:
        if deadline is None or deadline.limit_s is None or not scope.expired():
            raise
        # What it has done stays: the user may want it, the benchmark may score it.
        granted = f"the agent's time of {deadline.limit_s:g} s ran out"
        work.add_issue(IssueCode.AGENT_TIMED_OUT, granted)
        return
    finally:
        work.stop_timer()
    if not isinstance(result.answer, str | None):
        kind = type(result.answer).__name__
        raise AttemptFault(IssueCode.HARNESS_CRASHED, f"the harness's answer is {kind}, not text")
    work.answer = work.without_token(result.answer)
    for issue in result.issues:
        work.add_issue(issue.code, issue.message, retry_after_s=issue.retry_after_s)
    if (beyond := work.passed_bound()) is not None:
        # Its last call took it there: no further one was left to be refused.
        work.add_issue(IssueCode.ATTEMPT_BUDGET, beyond)


async def _harness_result(work: Work, deadline: RunDeadline | None) -> HarnessResult:
    if work.input.stages and deadline is not None:
        run = work_on_stages(work, deadline, _score)
    else:
        run = work.services.harness.run(work)
    return await (run if work.gateway is None else work.gateway.held(run))


async def _take_out(work: Work) -> None:
    """Take what scoring and the user want out of the agent's environment, within its limit."""
    limit_s = work.spec.request.limits.collect()
    began = work.services.clock.monotonic()
    try:
        async with asyncio.timeout(limit_s) as scope:
            if not work.fell_short:
                await collect(work)
            await save_artifacts(work)
            if not work.fell_short and work.input.mode is EvaluationMode.REUSE:
                await _end_agent_programs(work)
    except TimeoutError as error:
        if limit_s is not None and scope.expired():
            raise TimeUp(f"not all was taken out within {limit_s:g} s") from error
        raise
    finally:
        work.collect_s += work.services.clock.monotonic() - began


async def _evaluate(work: Work) -> None:
    began = work.begin(Phase.EVALUATE)
    before_s = work.evaluate_s
    if work.answer is not None or work.steps:  # else there is nothing that could be kept
        work.checkpointing.before_scoring()
    try:
        if work.input.stages:
            evaluation = await all_scored(work, _score)
        else:
            evaluation = await _score(work, work.spec.task)
    finally:
        work.evaluate_s = before_s + work.services.clock.monotonic() - began
        if work.has_checkpointing:
            await work.checkpointing.ended()
    for name, value in evaluation.metrics.items():
        if not isinstance(value, bool | int | float) or not math.isfinite(value):
            raise AttemptFault(
                IssueCode.SCORER_CRASHED, f"the scorer gave {name} = {value!r}, not a number"
            )
    if not isinstance(evaluation.details, Mapping):
        kind = type(evaluation.details).__name__
        raise AttemptFault(
            IssueCode.SCORER_CRASHED, f"the scorer's details are {kind}, not a mapping"
        )
    for issue in evaluation.issues:
        work.add_issue(issue.code, issue.message)
    work.evaluation = evaluation
    if work.has_checkpointing:
        work.checkpointing.scored()


async def _score(work: Work, task: Task) -> Evaluation:
    """Score the task, or one of its stages, within the limit that it has."""
    benchmark, limits = work.services.benchmark, work.input.limits
    if task is not work.spec.task:
        spec = work.spec
        limits = benchmark.task_input(task, attempt=spec.attempt, seed=spec.seed).limits
    limit_s = work.spec.request.limits.evaluate(limits.evaluation_seconds)
    if limit_s is None:
        return await benchmark.evaluate(task, Scoring(work))
    try:
        async with asyncio.timeout(limit_s) as scope:
            return await benchmark.evaluate(task, Scoring(work))
    except TimeoutError as error:
        if scope.expired():
            raise TimeUp(f"scoring took longer than {limit_s:g} s") from error
        raise


async def _end_agent_programs(work: Work) -> None:
    """Leave the agent's environment to the scorer, without the programs that worked in it."""
    session = await work.session()
    work.begin(Phase.COLLECT)
    await session.end_programs()


async def _close_agent_session(work: Work) -> None:
    """End the agent's environment before scoring; what cannot be ended does not hold it up.

    The scorer has a session of its own, so a stuck one harms nothing but the machine.
    """
    session = work.agent
    if session is None:
        return
    work.agent = None
    try:
        await close_or_say(work, session, AGENT_SUFFIX, "agent")
    except asyncio.CancelledError:
        work.agent = session  # the clean-up's to close
        raise


async def _clean_up(work: Work) -> None:
    """Close what is open and remove what was written, within the grace."""
    if work.agent is None and work.scorer is None and work.scratch is None:
        return
    work.begin(Phase.CLEANUP)
    grace_s = work.spec.request.cleanup_grace_s
    try:
        async with asyncio.timeout(grace_s or None):
            if work.agent is not None:
                await part_with(work, work.agent, AGENT_SUFFIX)
                work.agent = None
            if work.scorer is not None:
                await part_with(work, work.scorer, SCORER_SUFFIX)
                work.scorer = None
            if work.scratch is not None:
                await asyncio.to_thread(shutil.rmtree, work.scratch, ignore_errors=True)
                work.scratch = None
    except TimeoutError:
        work.add_issue(IssueCode.CLEANUP_FAILED, f"not cleaned up within {grace_s:g} s{LEFT}")
    except Exception as error:
        log.exception("%s attempt %d: clean-up failed", work.spec.task.id, work.spec.attempt)
        work.add_issue(IssueCode.CLEANUP_FAILED, f"{type(error).__name__}: {error}{LEFT}")
