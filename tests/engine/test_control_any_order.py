"""Whatever is asked of a running launch, in whatever order, its ledger closes."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.components.issues import Outcome
from steelyard.engine.control import Controls, LaunchState, NotRunning
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.engine.launch import launch, prepare
from steelyard.results.reader import RunReader
from tests.engine.launching import request, resolved

Step = tuple[str, int, int]
"""What, a number, and after how many milliseconds."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("pause", "resume", "concurrency", "provider", "drain", "cancel")),
        st.integers(1, 6),
        st.integers(0, 30),
    ),
    max_size=8,
)


def act(controls: Controls, name: str, number: int) -> None:
    match name:
        case "pause":
            controls.pause()
        case "resume":
            controls.resume()
        case "concurrency":
            controls.set_concurrency(number)
        case "provider":
            controls.set_provider_limit("host_process", number)
        case "drain":
            controls.drain()
        case "cancel":
            controls.cancel()


async def play(controls: Controls, steps: Sequence[Step]) -> None:
    try:
        for name, number, after_ms in steps:
            await asyncio.sleep(after_ms / 1000)
            act(controls, name, number)
            if controls.state is LaunchState.RUNNING:
                status = controls.status()
                assert status.running == sum(one.running for one in status.providers)
        controls.resume()
    except NotRunning:
        assert controls.state in (LaunchState.ENDED, LaunchState.STARTING)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_every_order_of_controls_ends_with_every_attempt_accounted_for(
    steps: list[Step],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared = prepare(
            resolved(
                folder,
                request("a", benchmark={"tasks": 12}, harness={"sleep_s": 0.005}),
                request("b", benchmark={"tasks": 12}, harness={"sleep_s": 0.01}),
                task_concurrency=3,
            )
        )

        async def go() -> LaunchResult:
            controls = Controls()
            async with asyncio.TaskGroup() as group:
                launched = group.create_task(launch(prepared, controls=controls))
                while controls.state is LaunchState.STARTING:
                    await asyncio.sleep(0)
                group.create_task(play(controls, steps))
            return launched.result()

        result = asyncio.run(go())
        names = {name for name, _, _ in steps}
        for one in result.requests:
            assert sum(one.counts.values()) == one.planned
            run = RunReader(one.run_dir)
            assert run.finished is not None
            assert len(list(run.records())) == one.planned - one.counts[Outcome.NOT_STARTED]
            if not names & {"drain", "cancel"}:
                assert one.outcome is RunOutcome.COMPLETED
            if "cancel" not in names:
                assert one.counts[Outcome.CANCELLED] == 0, "a drain ends nothing that runs"
