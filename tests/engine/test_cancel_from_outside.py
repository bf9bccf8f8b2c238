"""A launch whose caller cancels it stops in order, whenever that happens."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.engine.events import LaunchResult, RequestResult, Unobserved
from steelyard.engine.launch import launch, prepare
from steelyard.results.lock import is_alive
from steelyard.results.reader import RunReader, RunState
from tests.engine.launching import COMPONENTS, request, resolved

STUCK = {"id": f"{COMPONENTS}:Stuck"}


class Ended(Unobserved):
    def __init__(self) -> None:
        self.results: list[RequestResult] = []

    def request_ended(self, result: RequestResult) -> None:
        self.results.append(result)


def runs_below(tmp_path: Path) -> list[RunReader]:
    return [RunReader(path.parent) for path in (tmp_path / "results").rglob("run.json")]


def assert_nothing_is_left(tmp_path: Path) -> None:
    for run in runs_below(tmp_path):
        assert run.state is RunState.FINISHED
        assert not is_alive(run.root / "lock")
        assert sum(run.ledger.outcomes.values()) == run.ledger.planned
        assert run.ledger.in_flight == 0
        assert (run.root / "summary.md").is_file()


async def cancelled_after(turns: int, task: asyncio.Task[LaunchResult]) -> bool:
    """Cancel a task after so many turns of the loop; True where it ended by that."""
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


def slow_request(name: str, **rest: Any) -> dict[str, Any]:
    return request(name, benchmark={"tasks": 4}, harness={"sleep_s": 30, "opens": True}, **rest)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 7, 10, 15, 25, 60, 200])
def test_cancelling_at_any_turn_of_the_loop_leaves_nothing_behind(
    tmp_path: Path, turns: int
) -> None:
    prepared = prepare(resolved(tmp_path, slow_request("a"), slow_request("b")))

    async def go() -> set[asyncio.Task[Any]]:
        task = asyncio.get_running_loop().create_task(launch(prepared))
        assert await cancelled_after(turns, task)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(go()) == set()
    assert_nothing_is_left(tmp_path)
    for run in runs_below(tmp_path):
        assert run.finished is not None
        assert run.finished["outcome"] == "cancelled"


@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.02, 0.05, 0.1])
def test_cancelling_short_attempts_keeps_every_record_that_was_made(
    tmp_path: Path, after_s: float
) -> None:
    one = request(benchmark={"tasks": 300}, harness={"sleep_s": 0.001})
    prepared = prepare(resolved(tmp_path, one, task_concurrency=4))

    async def go() -> None:
        task = asyncio.get_running_loop().create_task(launch(prepared))
        await asyncio.sleep(after_s)
        await cancelled_after(0, task)

    asyncio.run(go())
    assert_nothing_is_left(tmp_path)


def test_a_time_limit_of_the_caller_is_kept_after_the_clean_up(tmp_path: Path) -> None:
    prepared = prepare(resolved(tmp_path, slow_request("a"), task_concurrency=2))
    ended = Ended()

    async def go() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(launch(prepared, observer=ended), 0.3)

    asyncio.run(go())
    assert_nothing_is_left(tmp_path)
    (result,) = ended.results
    assert result.outcome == "cancelled"
    assert result.reason is not None
    assert "by its caller" in result.reason
    assert result.counts[Outcome.CANCELLED] == 2
    assert result.counts[Outcome.NOT_STARTED] == 2


def test_a_second_cancel_gives_up_a_clean_up_that_hangs(tmp_path: Path) -> None:
    prepared = prepare(
        resolved(
            tmp_path,
            slow_request("a", environment=STUCK),
            runtime={"cleanup_grace_seconds": 60},
        )
    )

    async def go() -> float:
        task = asyncio.get_running_loop().create_task(launch(prepared))
        await asyncio.sleep(0.3)
        task.cancel()
        done, _ = await asyncio.wait((task,), timeout=0.3)
        assert not done, "the clean-up has its grace"
        began_s = time.monotonic()
        assert await cancelled_after(0, task)
        return time.monotonic() - began_s

    assert asyncio.run(go()) < 10
    assert_nothing_is_left(tmp_path)


def test_a_caller_that_never_cancels_gets_its_result(tmp_path: Path) -> None:
    prepared = prepare(resolved(tmp_path, request(benchmark={"tasks": 3})))
    result = asyncio.run(launch(prepared))
    assert result.outcome == "completed"


def test_a_cancel_that_comes_when_all_has_ended_leaves_the_outcome_as_it_was(
    tmp_path: Path,
) -> None:
    prepared = prepare(resolved(tmp_path, request(benchmark={"tasks": 2})))

    class CancelsAtTheEnd(Unobserved):
        task: asyncio.Task[LaunchResult]

        def request_ended(self, result: RequestResult) -> None:
            self.task.cancel()

    async def go() -> None:
        observer = CancelsAtTheEnd()
        observer.task = asyncio.get_running_loop().create_task(launch(prepared, observer=observer))
        with pytest.raises(asyncio.CancelledError):
            await observer.task

    asyncio.run(go())
    (run,) = runs_below(tmp_path)
    assert run.finished is not None
    assert run.finished["outcome"] == "completed"


def test_a_launch_that_is_cancelled_before_its_first_turn_starts_no_attempt(
    tmp_path: Path,
) -> None:
    prepared = prepare(resolved(tmp_path, slow_request("a")))

    async def cancelled_already() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await launch(prepared)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_already())
    (run,) = runs_below(tmp_path)
    assert run.finished is not None
    assert run.finished["outcome"] == "cancelled"
    assert b'"started"' not in (run.root / "events.jsonl").read_bytes()


def test_ctrl_c_in_a_program_that_runs_a_launch_stops_it_in_order(tmp_path: Path) -> None:
    prepared = prepare(resolved(tmp_path, slow_request("a")))

    async def go() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.2, signal.raise_signal, signal.SIGINT)
        await launch(prepared)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(go())
    assert_nothing_is_left(tmp_path)


def test_a_caller_that_cancels_again_and_again_still_gets_its_records(tmp_path: Path) -> None:
    """As a cancel scope of anyio does, at every turn, until its task has ended."""
    prepared = prepare(resolved(tmp_path, slow_request("a", environment=STUCK)))

    async def go() -> None:
        task = asyncio.get_running_loop().create_task(launch(prepared))
        await asyncio.sleep(0.2)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        assert task.cancelled()

    asyncio.run(go())
    assert_nothing_is_left(tmp_path)
