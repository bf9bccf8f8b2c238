"""A launch that is steered while it runs: nothing that runs is ended, and the journal says who."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.engine.control import (
    Controls,
    LaunchState,
    LimitOutOfRange,
    NotRunning,
    UnknownProvider,
)
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.engine.launch import launch, prepare
from steelyard.results.reader import RunReader
from tests.engine.launching import records, request, resolved

Script = Callable[[Controls], Awaitable[None]]


def steered(tmp_path: Path, *requests: dict[str, Any], script: Script, **top: Any) -> LaunchResult:
    """Launch these requests while a script steers them."""
    prepared = prepare(resolved(tmp_path, *requests, **top))

    async def go() -> LaunchResult:
        controls = Controls()
        async with asyncio.TaskGroup() as group:
            launched = group.create_task(launch(prepared, controls=controls))
            group.create_task(_after_start(controls, script))
        return launched.result()

    return asyncio.run(go())


async def _after_start(controls: Controls, script: Script) -> None:
    while controls.state is LaunchState.STARTING:
        await asyncio.sleep(0)
    await script(controls)


async def until(claim: Callable[[], bool], within_s: float = 10.0) -> None:
    async with asyncio.timeout(within_s):
        while not claim():
            await asyncio.sleep(0.005)


def running(controls: Controls) -> int:
    """Executions that have begun; admission has let them start a turn of the loop earlier."""
    return sum(one.progress.running for one in controls.status().requests)


def ended(controls: Controls) -> int:
    return sum(one.progress.ended for one in controls.status().requests)


def controls_of(result: LaunchResult, index: int = 0) -> list[dict[str, Any]]:
    events = RunReader(result.requests[index].run_dir).events()
    return [event for event in events if event["kind"] == "control"]


SLOW = request(benchmark={"tasks": 12}, harness={"sleep_s": 0.05})


def test_a_paused_launch_starts_nothing_and_goes_on_where_it_was(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: running(controls) == 2)
        assert controls.pause(by="a test")
        assert not controls.pause(by="a test"), "it is paused already"
        assert controls.state is LaunchState.PAUSED
        await until(lambda: running(controls) == 0)
        before = ended(controls)
        await asyncio.sleep(0.2)
        assert ended(controls) == before
        (one,) = controls.status().requests
        assert one.waits_for == "paused"
        assert controls.resume(by="a test")
        assert not controls.resume(by="a test")

    result = steered(tmp_path, SLOW, script=script, task_concurrency=2)
    assert result.outcome is RunOutcome.COMPLETED
    assert [(event["action"], event["by"]) for event in controls_of(result)] == [
        ("pause", "a test"),
        ("resume", "a test"),
    ]


def test_a_drained_launch_keeps_what_ran_and_starts_no_more(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: running(controls) == 3)
        assert controls.drain(by="a test")
        assert controls.state is LaunchState.DRAINING
        assert not controls.drain(by="a test")

    result = steered(tmp_path, SLOW, script=script, task_concurrency=3)
    (one,) = result.requests
    assert one.outcome is RunOutcome.CANCELLED
    assert result.exit_status == 130
    assert one.reason is not None
    assert "drained by a test" in one.reason
    assert one.counts[Outcome.SCORED] >= 3
    assert one.counts[Outcome.CANCELLED] == 0
    assert one.counts[Outcome.SCORED] + one.counts[Outcome.NOT_STARTED] == 12
    assert len(records(result)) == one.counts[Outcome.SCORED]
    assert [event["action"] for event in controls_of(result)] == ["drain"]


def test_what_was_drained_is_continued_by_reuse(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: ended(controls) >= 2)
        controls.drain()

    async def nothing(controls: Controls) -> None: ...

    first = steered(tmp_path, SLOW, script=script, task_concurrency=2)
    kept = first.requests[0].counts[Outcome.SCORED]
    again = {**SLOW, "runtime": {"reuse": True}}
    second = steered(tmp_path, again, script=nothing, task_concurrency=4)
    assert second.outcome is RunOutcome.COMPLETED
    assert sum(record.reused_from is not None for record in records(second)) == kept


def test_a_drain_when_all_has_started_changes_no_outcome(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: running(controls) == 4)
        assert not controls.drain()

    one = request(benchmark={"tasks": 4}, harness={"sleep_s": 0.1})
    result = steered(tmp_path, one, script=script, task_concurrency=4)
    assert result.outcome is RunOutcome.COMPLETED


def test_a_drain_can_still_be_cancelled(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: running(controls) == 2)
        assert controls.drain()
        controls.cancel(by="a test")
        assert controls.state is LaunchState.STOPPING

    one = request(benchmark={"tasks": 4}, harness={"sleep_s": 60})
    result = steered(tmp_path, one, script=script, task_concurrency=2)
    assert result.requests[0].counts[Outcome.CANCELLED] == 2
    assert result.requests[0].counts[Outcome.NOT_STARTED] == 2
    assert "cancelled by a test" in (result.requests[0].reason or "")


def test_a_drain_while_tasks_are_loading_ends_their_request(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def script(controls: Controls) -> None:
        assert controls.drain()
        gate.touch()

    result = steered(tmp_path, request(benchmark={"loads_after": str(gate)}), script=script)
    assert result.requests[0].outcome is RunOutcome.CANCELLED
    assert result.requests[0].planned == 0


def test_a_drain_while_paused_ends_the_launch(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: running(controls) == 2)
        controls.pause()
        controls.drain()

    result = steered(tmp_path, SLOW, script=script, task_concurrency=2)
    assert result.outcome is RunOutcome.CANCELLED


def test_concurrency_is_raised_at_once_and_lowered_as_attempts_end(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def script(controls: Controls) -> None:
        await until(lambda: running(controls) == 1)
        assert controls.set_concurrency(5, by="a test")
        await until(lambda: running(controls) == 5)
        assert controls.set_concurrency(2)
        assert running(controls) == 5, "nothing that runs is ended"
        assert not controls.set_concurrency(2)
        await until(lambda: running(controls) == 2)
        gate.touch()

    one = request(benchmark={"tasks": 30}, harness={"sleep_s": 0.1})
    result = steered(tmp_path, one, script=script, task_concurrency=1)
    assert result.outcome is RunOutcome.COMPLETED
    assert [event["value"] for event in controls_of(result)] == [5, 2]


def test_a_providers_limit_that_is_raised_wakes_who_waits_for_it(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: running(controls) == 1)
        (provider,) = controls.status().providers
        assert (provider.name, provider.running, provider.limit) == ("host_process", 1, 1)
        assert controls.status().requests[1].waits_for == "provider host_process"
        assert controls.set_provider_limit("host_process", 4)
        await until(lambda: running(controls) == 4)
        assert controls.set_provider_limit("host_process", 0)
        await until(lambda: running(controls) > 4)

    result = steered(
        tmp_path,
        request("a", benchmark={"tasks": 12}, harness={"sleep_s": 0.05}),
        request("b", benchmark={"tasks": 12}, harness={"sleep_s": 0.05}),
        script=script,
        task_concurrency=10,
        runtime={"provider_limits": {"host_process": 1}},
    )
    assert result.outcome is RunOutcome.COMPLETED
    for index in (0, 1):
        assert [event["value"] for event in controls_of(result, index)] == [4, 0]


def test_a_control_that_makes_no_sense_changes_nothing(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        with pytest.raises(LimitOutOfRange, match="cannot be 0"):
            controls.set_concurrency(0)
        with pytest.raises(LimitOutOfRange, match="from 0"):
            controls.set_provider_limit("host_process", -1)
        with pytest.raises(UnknownProvider, match="providers in use: host_process"):
            controls.set_provider_limit("docker", 3)

    result = steered(tmp_path, SLOW, script=script)
    assert controls_of(result) == []


def test_without_a_launch_there_is_nothing_to_steer(tmp_path: Path) -> None:
    kept: list[Controls] = []

    async def script(controls: Controls) -> None:
        kept.append(controls)

    with pytest.raises(NotRunning, match="has not begun"):
        Controls().pause()
    steered(tmp_path, request(), script=script)
    assert kept[0].state is LaunchState.ENDED
    with pytest.raises(NotRunning, match="has ended"):
        kept[0].status()


def test_the_status_names_what_runs_longest_and_its_phase(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: running(controls) == 3)
        await asyncio.sleep(0.05)
        (one,) = controls.status().requests
        slowest = one.progress.slowest
        assert [under.task_id for under in slowest] == ["t0", "t1", "t2"]
        assert {under.phase for under in slowest} == {"run"}
        assert slowest[0].age_s >= slowest[-1].age_s > 0
        assert slowest[0].phase_s <= slowest[0].age_s
        assert one.progress.queued == 6
        json = controls.status().as_json()
        assert json["schema"] == "launch-status/1"
        assert json["requests"][0]["slowest"][0]["task_id"] == "t0"
        controls.cancel()

    one = request(benchmark={"tasks": 9}, harness={"sleep_s": 60})
    steered(tmp_path, one, script=script, task_concurrency=3)
