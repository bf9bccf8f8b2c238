"""Cancelled, a launch stops in order: nothing is left running, records are kept, reuse goes on."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import psutil
import pytest

import steelyard as sy
from steelyard.results.reader import RunReader, RunState
from tests.sdk.parts import Say, Sums


class Sleeping(Say):
    """Starts a program in the environment and waits for it."""

    api = 1
    id = "sleeping"

    async def run(self, context: sy.HarnessContext) -> sy.HarnessResult:
        session = await context.session()
        await session.exec(["sleep", "61"])
        return sy.HarnessResult("1")


def _sleepers() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.cmdline()[-1:] == ["61"] and child.status() != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.integration
def test_a_timeout_of_the_caller_ends_programs_too() -> None:
    before = set(threading.enumerate())
    seen: list[int] = []

    async def work() -> None:
        async def look() -> None:
            while not seen:
                await asyncio.sleep(0.05)
                seen.extend([1] * len(_sleepers()))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(look())
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(sy.arun(Sums, Sleeping, environment="host_process"), 1.5)
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    asyncio.run(work())
    assert seen
    assert _sleepers() == []
    # The pool that starts programs is the process's: 8 threads at most, whatever is launched.
    left = {thread for thread in threading.enumerate() if "steelyard-start" not in thread.name}
    for thread in left - before:
        thread.join(5)
        assert not thread.is_alive(), thread.name


def test_what_was_done_is_kept_and_reuse_goes_on(own_folder: Path) -> None:
    harness = Say(Say.Params(text="1", sleep_s=0.05))
    benchmark = Sums(Sums.Params(tasks=12))
    events: list[sy.Event] = []

    async def cut_short() -> None:
        async with asyncio.timeout(0.35):
            await sy.arun(benchmark, harness, task_concurrency=1, on_event=events.append)

    with pytest.raises(TimeoutError):
        asyncio.run(cut_short())
    first = sy.load_run(own_folder / "results" / "none_Sums_Say")
    assert first.outcome is sy.RunOutcome.CANCELLED
    assert RunReader(first.run_dir).state is RunState.FINISHED
    done = first.counts[sy.Outcome.SCORED]
    assert 1 <= done < 12
    # The handler has been told how it ended, although the call was cancelled.
    assert isinstance(events[-1], sy.RunFinished)
    assert events[-1].outcome is sy.RunOutcome.CANCELLED

    before = len(harness.seen)
    second = sy.run(benchmark, harness, reuse=True)
    assert second.is_complete
    assert len(harness.seen) - before == 12 - done
    assert sum(record.reused_from is not None for record in second.attempts()) == done


def test_a_launch_that_is_cancelled_while_it_is_planned_makes_nothing(own_folder: Path) -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            launch = tasks.create_task(sy.arun(Sums, Say))
            await asyncio.sleep(0)
            launch.cancel()

    asyncio.run(work())
    assert not (own_folder / "results").exists()
