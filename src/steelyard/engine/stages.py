"""A task of several stages: the agent is sent to work again and again, scored after each time.

The agent works in one environment, within the phase `run`; what is between two stages is not its
time. A stage is scored there, or, where it asks for that, in an environment of the scorer's that is
opened for this stage alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import Evaluation, Task, TaskInput
from steelyard.components.harness import HarnessResult
from steelyard.components.issues import Issue, Phase
from steelyard.engine.collecting import collect
from steelyard.engine.deadlines import RunDeadline, TimeUp
from steelyard.engine.keeping import close_or_say
from steelyard.engine.work import SCORER_SUFFIX, Work

Score = Callable[[Work, Task], Awaitable[Evaluation]]


async def work_on_stages(work: Work, deadline: RunDeadline, score: Score) -> HarnessResult:
    """Let the agent work on one stage after another, as far as the benchmark lets it.

    An agent whose time runs out in a stage is cancelled there, and `all_scored` does the rest.

    Args:
        work: the execution.
        deadline: the agent's, which every stage gets anew.
        score: scores one stage in the agent's environment, within its limit.

    Raises:
        AttemptFault, EnvironmentFault, TimeUp: as from working on a task, or scoring it.
    """
    whole, whole_input, benchmark = work.spec, work.input, work.services.benchmark
    result = HarnessResult(None)
    issues: list[Issue] = []
    for stage in whole_input.stages:
        stage_input = benchmark.task_input(stage, attempt=whole.attempt, seed=whole.seed)
        with work.timer.waiting():
            work.begin(Phase.SETUP)
            await benchmark.begin(stage, await work.session())
            work.begin(Phase.RUN)
            deadline.restart(whole.request.limits.run(stage_input.limits.run_seconds))
        work.unscored_stage = stage
        work.spec, work.input = replace(whole, task=stage), stage_input
        try:
            result = await work.services.harness.run(work)
        finally:
            work.spec, work.input = whole, whole_input
        issues += result.issues
        with work.timer.waiting():
            evaluation = await _scored(work, stage, score)
            work.begin(Phase.RUN)
        if not benchmark.goes_on(stage, evaluation):
            break
    return replace(result, issues=tuple(issues))


async def all_scored(work: Work, score: Score) -> Evaluation:
    """Score the stage that the agent's time ran out in, then make one evaluation of all.

    Raises:
        AttemptFault: the evaluations do not add up.
    """
    if work.unscored_stage is not None:
        await _scored(work, work.unscored_stage, score)
    return work.services.benchmark.combined(work.spec.task, work.stage_evaluations)


async def _scored(work: Work, stage: Task, score: Score) -> Evaluation:
    session = await work.session()
    await session.end_programs()
    spec = work.spec
    own = work.services.benchmark.task_input(stage, attempt=spec.attempt, seed=spec.seed)
    if own.mode is EvaluationMode.FRESH:
        evaluation = await _scored_elsewhere(work, stage, own, score)
    else:
        evaluation = await _scored_in_time(work, stage, score)
    work.stage_evaluations.append(evaluation)
    work.unscored_stage = None
    return evaluation


async def _scored_elsewhere(work: Work, stage: Task, own: TaskInput, score: Score) -> Evaluation:
    """Score a stage in a session of the scorer's; the agent's stays open for the next one."""
    whole, work.input = work.input, own
    try:
        await _carried(work)
        return await _scored_in_time(work, stage, score)
    finally:
        work.input, work.inputs = whole, {}
        scorer, work.scorer = work.scorer, None
        if scorer is not None:
            try:
                await close_or_say(work, scorer, SCORER_SUFFIX, "scorer")
            except asyncio.CancelledError:
                work.scorer = scorer  # the clean-up's to close
                raise


async def _carried(work: Work) -> None:
    """Take what scoring a stage needs out of the agent's environment, within its limit."""
    limit_s = work.spec.request.limits.collect()
    began = work.services.clock.monotonic()
    try:
        async with asyncio.timeout(limit_s) as scope:
            await collect(work)
    except TimeoutError as error:
        if limit_s is not None and scope.expired():
            raise TimeUp(f"not all was taken out within {limit_s:g} s") from error
        raise
    finally:
        work.collect_s += work.services.clock.monotonic() - began


async def _scored_in_time(work: Work, stage: Task, score: Score) -> Evaluation:
    began = work.begin(Phase.EVALUATE)
    try:
        return await score(work, stage)
    finally:
        work.evaluate_s += work.services.clock.monotonic() - began
