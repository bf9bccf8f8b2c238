"""A launch that stops, pauses or drains while attempts wait for their retry."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import Outcome
from steelyard.engine.control import Controls, LaunchState
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.engine.launch import launch, prepare
from steelyard.models.backoff import Backoff
from steelyard.results.executions import earlier_executions
from steelyard.results.reader import RunReader
from tests.engine.flaky import LONG_WAIT, NO_WAIT, agent_ran, events, flaky, run_flaky
from tests.engine.launching import records, resolved

Script = Callable[[Controls], Awaitable[None]]


def steered(
    tmp_path: Path,
    *requests: dict[str, Any],
    script: Script,
    backoff: Backoff = LONG_WAIT,
    **top: Any,
) -> LaunchResult:
    prepared = prepare(resolved(tmp_path, *requests, **top))

    async def go() -> LaunchResult:
        controls = Controls()

        async def steer() -> None:
            while controls.state is LaunchState.STARTING:
                await asyncio.sleep(0)
            await script(controls)

        async with asyncio.TaskGroup() as group:
            launched = group.create_task(launch(prepared, controls=controls, backoff=backoff))
            group.create_task(steer())
        return launched.result()

    return asyncio.run(go())


async def until(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not claim():
            await asyncio.sleep(0.002)


def waiting(controls: Controls) -> int:
    return sum(request.progress.waiting for request in controls.status().requests)


def cancelling(controls: Controls) -> None:
    controls.cancel()


def draining(controls: Controls) -> None:
    controls.drain()


@pytest.mark.parametrize("stop", [cancelling, draining])
def test_what_waits_ends_as_its_last_execution_did(
    tmp_path: Path, stop: Callable[[Controls], None]
) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: waiting(controls) == 2)
        (request,) = controls.status().requests
        assert (request.progress.running, request.progress.queued) == (0, 2)
        assert request.waits_for == "backoff"
        stop(controls)

    one = flaky(tmp_path, tasks=3, fails={"t0": 9, "t1": 9})
    result = steered(tmp_path, one, script=script)
    assert result.outcome is RunOutcome.CANCELLED
    ends = {record.task_id: record for record in records(result)}
    assert ends["t0"].outcome is ends["t1"].outcome is Outcome.FAILED_FATAL
    assert ends["t2"].outcome is Outcome.SCORED
    assert ends["t0"].executions == 1
    assert [issue.message for issue in ends["t0"].issues] == ["as scripted"]
    counts = result.requests[0].counts
    assert (counts[Outcome.FAILED_FATAL], counts[Outcome.SCORED], sum(counts.values())) == (2, 1, 3)
    # Its files are where its record says, though it was thought to be replaced.
    path = str((ends["t0"].trajectory or {})["path"])
    assert (result.requests[0].run_dir / path).exists()


def test_a_deadline_ends_what_waits(tmp_path: Path) -> None:
    one = flaky(tmp_path, fails={"t0": 9})
    result = run_flaky(tmp_path, one, backoff=LONG_WAIT, runtime={"timeout_seconds": 0.6})
    assert (result.outcome, result.exit_status) == (RunOutcome.TIMED_OUT, 5)
    (record,) = records(result)
    assert (record.outcome, record.executions) == (Outcome.FAILED_FATAL, 1)


def test_a_stop_during_the_second_execution_cancels_it_and_keeps_the_first(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        await until(lambda: len(agent_ran(tmp_path)) == 2)
        controls.cancel()

    # The first execution sleeps as well, but not for as long as the stop takes.
    one = flaky(tmp_path, fails={"t0": 1}, script={"sleep_s": 0.2})
    result = steered(tmp_path, one, script=script, backoff=NO_WAIT)
    (record,) = records(result)
    assert (record.outcome, record.executions) == (Outcome.CANCELLED, 2)
    assert [issue.execution for issue in record.issues] == [1]
    assert len(earlier_executions(result.requests[0].run_dir, record)) == 1


def test_a_request_whose_fault_stops_it_ends_what_waits(tmp_path: Path) -> None:
    """One attempt waits for its retry when another finds the endpoint's door shut."""

    one = flaky(tmp_path, tasks=2, fails={"t0": 9})
    one["harness"]["id"] = one["harness"]["id"].replace(":Flaky", ":Refused")
    result = run_flaky(tmp_path, one, backoff=LONG_WAIT, task_concurrency=1)
    assert result.outcome is RunOutcome.FAILED
    ends = {record.task_id: record.outcome for record in records(result)}
    assert ends == {"t0": Outcome.FAILED_FATAL, "t1": Outcome.FAILED_FATAL}
    assert "shut" in (result.requests[0].reason or "")


def test_nothing_is_retried_while_paused_and_all_of_it_after(tmp_path: Path) -> None:
    async def script(controls: Controls) -> None:
        controls.pause()
        await until(lambda: waiting(controls) == 1 or not controls.status().running)
        resumes = controls.status().requests[0].progress.retries
        for _ in range(20):
            await asyncio.sleep(0.002)
        assert controls.status().requests[0].progress.retries == resumes
        controls.resume()

    one = flaky(tmp_path, fails={"t0": 2}, script={"sleep_s": 0.02})
    result = steered(tmp_path, one, script=script, backoff=NO_WAIT)
    (record,) = records(result)
    assert (record.outcome, record.executions) == (Outcome.SCORED, 3)


def test_a_waiting_attempt_holds_no_slot(tmp_path: Path) -> None:
    """With one slot, all other attempts end while the first one waits."""

    async def script(controls: Controls) -> None:
        await until(lambda: controls.status().requests[0].progress.ended == 7)
        assert waiting(controls) == 1
        controls.cancel()

    one = flaky(tmp_path, tasks=8, fails={"t0": 9})
    result = steered(tmp_path, one, script=script, task_concurrency=1)
    assert result.requests[0].counts[Outcome.SCORED] == 7


def test_the_wait_is_recorded_apart_from_the_queue(tmp_path: Path) -> None:
    wait = Backoff(base_s=0.0, cap_s=0.0)
    one = flaky(tmp_path, fails={"t0": 1}, script={"retry_after_s": 0.15})
    result = run_flaky(tmp_path, one, backoff=wait)
    (record,) = records(result)
    assert record.timing.backoff_s == pytest.approx(0.15, abs=0.01)
    (retry,) = events(result.requests[0].run_dir, "retry")
    assert retry["wait_s"] == pytest.approx(0.15)
    assert record.timing.queued_s < 10


def test_a_reader_knows_what_a_waiting_attempt_has_spent(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def script(controls: Controls) -> None:
        await until(lambda: waiting(controls) == 1)
        (root,) = controls.roots
        (flight,) = RunReader(root).in_flight
        seen.append((flight.is_waiting, flight.execution, flight.earlier_usage is not None))
        controls.cancel()

    steered(tmp_path, flaky(tmp_path, fails={"t0": 9}), script=script)
    assert seen == [(True, 1, True)]


@pytest.mark.integration
def test_ctrl_c_while_an_attempt_waits_ends_at_once_with_its_record(tmp_path: Path) -> None:
    one = flaky(tmp_path, fails={"t0": 9}, script={"retry_after_s": 120.0})
    document = {"requests": [one], "runtime": {"results_dir": str(tmp_path / "results")}}
    (tmp_path / "o.json").write_text(json.dumps(document))
    child = subprocess.Popen(
        [sys.executable, "-m", "steelyard", "launch", "o.json", "--progress", "plain"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    root = _run_that_waits(tmp_path, child)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said.decode()
    (record,) = RunReader(root).records()
    assert (record.outcome, record.executions) == (Outcome.FAILED_FATAL, 1)
    assert b"tried again in 12" in said


def _run_that_waits(tmp_path: Path, child: subprocess.Popen[bytes]) -> Path:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None:
        for path in (tmp_path / "results").glob("r/*/events.jsonl"):
            if '"kind":"retry"' in path.read_text():
                return path.parent
        time.sleep(0.02)
    child.kill()
    raise AssertionError(f"no attempt came to wait: {child.communicate()[1].decode()}")
