"""One execution: every way it can end has one outcome, and nothing stays open."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.benchmark import (
    EnvironmentNeeds,
    Evaluation,
    Task,
    TaskInput,
    TaskLimits,
)
from steelyard.components.environment import EnvironmentFault, OpenRequest
from steelyard.components.harness import HarnessResult
from steelyard.components.issues import SEVERITY, AttemptFault, Issue, IssueCode, Outcome, Phase
from steelyard.components.values import Trust, Usage
from steelyard.engine.attempt import CRASH_CODE, TIMEOUT_CODE, execute
from steelyard.engine.deadlines import RunDeadline
from steelyard.engine.spec import ExecutionResult, TimeLimits
from tests.engine.fakes import (
    FakeBenchmark,
    FakeEnvironment,
    FakeHarness,
    FakeSession,
    Watch,
    services,
    spec,
)


def run(
    *parts: Any, limits: TimeLimits | None = None, watch: Watch | None = None
) -> ExecutionResult:
    made = services(
        next((part for part in parts if isinstance(part, FakeBenchmark)), None),
        next((part for part in parts if isinstance(part, FakeHarness)), None),
        next((part for part in parts if isinstance(part, FakeEnvironment)), None),
    )
    return asyncio.run(execute(spec(limits), made, watch or Watch()))


def raising(error: BaseException) -> Any:
    async def hook(_: Any) -> Any:
        raise error

    return hook


def sleeping(seconds: float) -> Any:
    async def hook(_: Any) -> Any:
        await asyncio.sleep(seconds)

    return hook


def codes(result: ExecutionResult) -> list[IssueCode]:
    return [issue.code for issue in result.issues]


def test_every_issue_code_has_a_severity() -> None:
    assert set(SEVERITY) == set(IssueCode)


def test_every_phase_says_what_a_crash_and_a_timeout_in_it_are() -> None:
    assert set(CRASH_CODE) == set(TIMEOUT_CODE) == set(Phase)


def test_a_right_answer_is_scored_and_opens_nothing() -> None:
    environment = FakeEnvironment()
    result = run(environment)
    assert result.outcome is Outcome.SCORED
    assert result.metrics == {"passed": True}
    assert environment.sessions == []
    assert result.trust is None  # nothing ran, so there is nothing to claim


def test_a_wrong_answer_is_scored_too() -> None:
    async def wrong(_: Any) -> str:
        return "wrong"

    assert run(FakeHarness(wrong)).metrics == {"passed": False}


def test_a_crashing_harness_is_fatal_and_is_not_scored() -> None:
    result = run(FakeHarness(raising(ValueError("boom"))))
    assert result.outcome is Outcome.FAILED_FATAL
    assert codes(result) == [IssueCode.HARNESS_CRASHED]
    assert result.metrics == {}


def test_a_crashing_scorer_is_fatal_never_a_zero() -> None:
    result = run(FakeBenchmark(on_evaluate=raising(KeyError("x"))))
    assert result.outcome is Outcome.FAILED_FATAL
    assert codes(result) == [IssueCode.SCORER_CRASHED]
    assert result.issues[0].phase is Phase.EVALUATE
    assert result.metrics == {}


def test_a_component_that_exits_ends_its_attempt_and_not_the_launch() -> None:
    result = run(FakeHarness(raising(SystemExit(3))))
    assert codes(result) == [IssueCode.HARNESS_CRASHED]


def test_an_answer_that_is_no_text_is_the_harnesss_fault() -> None:
    async def answers(_: Any) -> HarnessResult:
        return HarnessResult(42)  # type: ignore[arg-type]

    result = run(FakeHarness(answers))
    assert codes(result) == [IssueCode.HARNESS_CRASHED]
    assert result.answer is None


def test_details_that_are_no_mapping_are_the_scorers_fault() -> None:
    async def scores(_: Any) -> Evaluation:
        return Evaluation({"passed": True}, details=["no"])  # type: ignore[arg-type]

    assert codes(run(FakeBenchmark(on_evaluate=scores))) == [IssueCode.SCORER_CRASHED]


def test_a_metric_that_is_not_a_number_is_the_scorers_fault() -> None:
    async def nan(_: Any) -> Evaluation:
        return Evaluation({"passed": float("nan")})

    assert codes(run(FakeBenchmark(on_evaluate=nan))) == [IssueCode.SCORER_CRASHED]


def test_a_known_fault_keeps_its_code_and_stops_the_request_where_it_says_so() -> None:
    fault = AttemptFault(IssueCode.MODEL_ENDPOINT_REJECTED, "401", request_fault=True)
    result = run(FakeHarness(raising(fault)))
    assert codes(result) == [IssueCode.MODEL_ENDPOINT_REJECTED]
    assert result.request_fault == "401"


def test_an_agent_that_runs_out_of_time_is_timed_out() -> None:
    result = run(FakeHarness(sleeping(30)), limits=TimeLimits(run_s=0.01))
    assert result.outcome is Outcome.TIMED_OUT
    assert codes(result) == [IssueCode.AGENT_TIMED_OUT]


def test_the_tasks_own_limit_holds_where_the_request_names_none() -> None:
    benchmark = FakeBenchmark(limits=TaskLimits(run_seconds=0.01))
    assert run(benchmark, FakeHarness(sleeping(30))).outcome is Outcome.TIMED_OUT


def test_a_limit_of_zero_is_no_limit() -> None:
    benchmark = FakeBenchmark(limits=TaskLimits(run_seconds=0.01))
    result = run(benchmark, FakeHarness(sleeping(0.05)), limits=TimeLimits(run_s=0))
    assert result.outcome is Outcome.SCORED


def test_waiting_is_not_the_agents_time() -> None:
    async def waits(context: Any) -> str:
        with context.timer.waiting():
            await asyncio.sleep(0.15)
        return "right"

    result = run(FakeHarness(waits), limits=TimeLimits(run_s=0.1))
    assert result.outcome is Outcome.SCORED
    assert result.times.waited_s >= 0.15
    assert result.times.agent_s < 0.1


def test_the_agents_time_goes_on_after_a_wait() -> None:
    async def waits_then_works(context: Any) -> str:
        with context.timer.waiting():
            await asyncio.sleep(0.05)
        await asyncio.sleep(30)
        return "right"

    result = run(FakeHarness(waits_then_works), limits=TimeLimits(run_s=0.05))
    assert result.outcome is Outcome.TIMED_OUT


def test_a_wait_that_begins_when_the_time_is_up_changes_nothing() -> None:
    async def waits(context: Any) -> str:
        try:
            await asyncio.sleep(30)
        finally:
            with context.timer.waiting():  # as a second call under way would
                await asyncio.sleep(0)
        return "right"

    result = run(FakeHarness(waits), limits=TimeLimits(run_s=0.01))
    assert codes(result) == [IssueCode.AGENT_TIMED_OUT]


def test_a_timeout_error_of_the_harness_itself_is_not_the_agents_time() -> None:
    result = run(FakeHarness(raising(TimeoutError("socket"))), limits=TimeLimits(run_s=60))
    assert codes(result) == [IssueCode.HARNESS_CRASHED]


def test_a_scorer_that_hangs_is_fatal() -> None:
    result = run(FakeBenchmark(on_evaluate=sleeping(30)), limits=TimeLimits(evaluate_s=0.01))
    assert codes(result) == [IssueCode.SCORER_TIMED_OUT]
    assert result.outcome is Outcome.FAILED_FATAL


def test_an_environment_that_does_not_open_is_fatal_in_setup() -> None:
    environment = FakeEnvironment(on_open=raising(EnvironmentFault("no engine")))
    result = run(FakeBenchmark(needs=True), environment)
    assert codes(result) == [IssueCode.ENVIRONMENT_OPEN_FAILED]
    assert result.issues[0].phase is Phase.SETUP


def test_an_environment_that_hangs_while_opening_is_told_apart() -> None:
    environment = FakeEnvironment(on_open=sleeping(30))
    result = run(FakeBenchmark(needs=True), environment, limits=TimeLimits(setup_s=0.01))
    assert codes(result) == [IssueCode.ENVIRONMENT_OPEN_TIMED_OUT]


def test_a_scorers_environment_that_hangs_while_opening_is_told_apart() -> None:
    async def hangs_for_the_scorer(request: OpenRequest) -> None:
        if request.token.endswith("-s"):
            await asyncio.sleep(30)

    async def opens(context: Any) -> None:
        await context.session()

    environment = FakeEnvironment(on_open=hangs_for_the_scorer)
    benchmark = FakeBenchmark(on_evaluate=opens)
    result = run(benchmark, environment, limits=TimeLimits(setup_s=0.01))
    assert codes(result) == [IssueCode.ENVIRONMENT_OPEN_TIMED_OUT]
    (issue,) = result.issues
    assert issue.phase is Phase.EVALUATE  # the agent's work is at hand: only scoring is repeated
    assert result.work is not None


def test_a_collection_that_hangs_is_ended_and_is_no_fault_of_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hangs(session: FakeSession, path: str, target: Path) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(FakeSession, "download", hangs)
    benchmark = FakeBenchmark(needs=True)
    result = run(benchmark, limits=TimeLimits(collect_s=0.02, collect_factor=0.5))
    assert result.outcome is Outcome.FAILED_FATAL
    (issue,) = result.issues
    assert (issue.code, issue.phase) == (IssueCode.COLLECT_FAILED, Phase.COLLECT)
    assert "0.01 s" in issue.message
    assert result.times.collect_s >= 0.01


def test_the_agents_session_is_closed_before_the_scorers_opens() -> None:
    watch = Watch()

    async def scores(context: Any) -> None:
        await context.session()

    run(FakeBenchmark(needs=True, on_evaluate=scores), watch=watch)
    assert watch.sessions == [
        ("tok-a", "opened"),
        ("tok-a", "closed"),
        ("tok-s", "opened"),
        ("tok-s", "closed"),
    ]


def test_what_was_collected_is_put_back_for_the_scorer() -> None:
    environment = FakeEnvironment()

    async def works(context: Any) -> str:
        await (await context.session()).write_file("out", b"made")
        return "right"

    async def scores(context: Any) -> None:
        await context.session()

    run(FakeBenchmark(needs=True, on_evaluate=scores), FakeHarness(works), environment)
    assert environment.uploads == [("tok-s", "out")]


def test_trust_is_the_weaker_of_what_the_sessions_and_the_scorer_say() -> None:
    async def scores(context: Any) -> Evaluation:
        await context.session()
        return Evaluation({"passed": True}, trust=Trust.CONTAINED)

    assert run(FakeBenchmark(on_evaluate=scores)).trust is Trust.CONTAINED
    on_host = FakeEnvironment(trust=Trust.HOST)
    assert run(FakeBenchmark(on_evaluate=scores), on_host).trust is Trust.HOST


def test_an_error_of_the_harness_keeps_the_answer_and_scores_nothing() -> None:
    async def short(_: Any) -> HarnessResult:
        issue = Issue.of(IssueCode.TURN_LIMIT, Phase.RUN, "30 turns")
        return HarnessResult("right", (issue,))

    result = run(FakeHarness(short))
    assert result.outcome is Outcome.FAILED_ERROR
    assert result.answer == "right"
    assert result.metrics == {}


def test_trouble_while_cleaning_up_is_a_warning_and_keeps_the_score() -> None:
    environment = FakeEnvironment(on_close=raising(OSError("busy")))

    async def scores(context: Any) -> None:
        await context.session()

    result = run(FakeBenchmark(on_evaluate=scores), environment)
    assert result.outcome is Outcome.SCORED
    assert codes(result) == [IssueCode.CLEANUP_FAILED]


def test_a_clean_up_that_hangs_is_given_up_after_the_grace() -> None:
    environment = FakeEnvironment(on_close=sleeping(60))

    async def scores(context: Any) -> None:
        await context.session()

    made = services(FakeBenchmark(on_evaluate=scores), None, environment)
    result = asyncio.run(execute(spec(grace_s=0.05), made, Watch()))
    assert codes(result) == [IssueCode.CLEANUP_FAILED]


@pytest.mark.parametrize("needs", [False, True])
def test_cancelled_it_cleans_up_and_returns_cancelled(needs: bool) -> None:
    environment = FakeEnvironment()

    async def main() -> ExecutionResult:
        made = services(FakeBenchmark(needs=needs), FakeHarness(sleeping(60)), environment)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(execute(spec(), made, Watch()))
            await asyncio.sleep(0.01)
            task.cancel()
            return await task

    assert asyncio.run(main()).outcome is Outcome.CANCELLED
    assert all(session.closed for session in environment.sessions)


def test_cancelled_twice_it_gives_up_the_clean_up() -> None:
    environment = FakeEnvironment(on_close=sleeping(60))

    async def main() -> ExecutionResult:
        made = services(FakeBenchmark(needs=True), FakeHarness(sleeping(60)), environment)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(execute(spec(), made, Watch()))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.sleep(0.01)
            task.cancel()
            return await task

    result = asyncio.run(main())
    assert result.outcome is Outcome.CANCELLED
    assert codes(result) == [IssueCode.CLEANUP_FAILED]


def test_a_clean_up_that_is_given_up_loses_neither_score_nor_cost() -> None:
    async def scores(context: Any) -> Evaluation:
        await context.session()
        return Evaluation({"passed": True}, usage=Usage(requests=1, cost_usd=0.5))

    async def main() -> ExecutionResult:
        environment = FakeEnvironment(on_close=sleeping(60))
        made = services(FakeBenchmark(on_evaluate=scores), None, environment)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(execute(spec(), made, Watch()))
            for _ in range(2):
                await asyncio.sleep(0.01)
                task.cancel()
            return await task

    result = asyncio.run(main())
    assert (result.outcome, result.metrics) == (Outcome.SCORED, {"passed": True})
    assert result.usage.cost_usd == 0.5
    assert codes(result) == [IssueCode.CLEANUP_FAILED]


def test_cancelled_during_the_clean_up_it_keeps_the_score() -> None:
    closing = asyncio.Event()

    async def slow(_: Any) -> None:
        closing.set()
        await asyncio.sleep(0.05)

    async def scores(context: Any) -> None:
        await context.session()

    async def main() -> ExecutionResult:
        made = services(FakeBenchmark(on_evaluate=scores), None, FakeEnvironment(on_close=slow))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(execute(spec(), made, Watch()))
            await closing.wait()
            task.cancel()
            return await task

    assert asyncio.run(main()).outcome is Outcome.SCORED


def test_an_agents_environment_that_does_not_close_does_not_hold_up_the_score() -> None:
    environment = FakeEnvironment(on_close=sleeping(60))
    made = services(FakeBenchmark(needs=True), None, environment)
    result = asyncio.run(execute(spec(grace_s=0.05), made, Watch()))
    assert result.outcome is Outcome.SCORED
    assert codes(result) == [IssueCode.CLEANUP_FAILED]


def test_an_agents_environment_that_fails_to_close_costs_no_score_and_is_not_called_closed() -> (
    None
):
    watch = Watch()
    environment = FakeEnvironment(on_close=raising(EnvironmentFault("its folder stays")))
    result = run(FakeBenchmark(needs=True), environment, watch=watch)
    assert result.outcome is Outcome.SCORED
    assert codes(result) == [IssueCode.CLEANUP_FAILED]
    assert result.issues[0].phase is Phase.CLEANUP
    assert watch.sessions == [("tok-a", "opened")]


def test_a_task_that_asks_for_an_image_is_refused_where_there_are_none() -> None:
    """Else it would be scored on whatever this machine has, and nobody would know."""

    class Imaged(FakeBenchmark):
        def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
            shown = super().task_input(task, attempt=attempt, seed=seed)
            return replace(shown, needs=EnvironmentNeeds(image="python:3.12-slim"))

    result = run(Imaged(needs=True))
    assert codes(result) == [IssueCode.ENVIRONMENT_OPEN_FAILED]
    assert result.request_fault is not None
    assert "python:3.12-slim" in result.request_fault
    assert run(Imaged()).outcome is Outcome.SCORED  # nothing runs anywhere, so nothing is missing


def test_a_deadline_that_is_taken_away_can_still_be_moved() -> None:
    async def left_s() -> float:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(50) as scope:
            deadline = RunDeadline(scope)
            deadline.pause()
            deadline.extend(100)
            assert scope.when() is None
            deadline.resume()
            at = scope.when()
            assert at is not None
            return at - loop.time()

    assert 140 < asyncio.run(left_s()) <= 150
