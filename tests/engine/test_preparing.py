"""A harness is prepared once a run; what an environment cannot give is refused before it opens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from steelyard.components.benchmark import EnvironmentNeeds
from steelyard.components.environment import ImageBuild, Mount, NoParams
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.engine.preparing import Preparation, cannot_open
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.nop import Nop

MOUNT = Mount(Path("/opt/agents/x"), "/opt/agent")


class Installing(Nop):
    """Takes a while to prepare, and counts."""

    def __init__(self, fault: AttemptFault | None = None) -> None:
        super().__init__(NoParams())
        self.times = 0
        self.let_through = asyncio.Event()
        self._fault = fault

    async def prepare(self) -> None:
        self.times += 1
        await self.let_through.wait()
        if self._fault is not None:
            raise self._fault

    def mounts(self) -> Sequence[Mount]:
        return (MOUNT,)


def test_attempts_that_ask_at_once_prepare_a_harness_once() -> None:
    async def asked() -> tuple[int, list[Sequence[Mount]]]:
        harness = Installing()
        preparation = Preparation(harness)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(preparation.mounts()) for _ in range(5)]
            await asyncio.sleep(0)
            harness.let_through.set()
        return harness.times, [task.result() for task in tasks]

    times, mounts = asyncio.run(asked())
    assert times == 1
    assert mounts == [(MOUNT,)] * 5


def test_who_is_cancelled_while_preparing_leaves_it_to_the_next() -> None:
    async def asked() -> int:
        harness = Installing()
        preparation = Preparation(harness)
        first = asyncio.ensure_future(preparation.mounts())
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        harness.let_through.set()
        assert await preparation.mounts() == (MOUNT,)
        return harness.times

    assert asyncio.run(asked()) == 2


def test_a_fault_of_the_preparation_is_every_attempts_and_is_not_tried_again() -> None:
    async def asked() -> int:
        harness = Installing(AttemptFault(IssueCode.CONFIGURATION, "no such version"))
        harness.let_through.set()
        preparation = Preparation(harness)
        for _ in range(3):
            with pytest.raises(AttemptFault, match="no such version"):
                await preparation.mounts()
        return harness.times

    assert asyncio.run(asked()) == 1


@pytest.mark.parametrize(
    ("needs", "mounts", "said"),
    [
        (EnvironmentNeeds(image="debian:12"), (), "the image 'debian:12'"),
        (EnvironmentNeeds(build=ImageBuild(Path("x"), "0" * 64)), (), "an image of its own"),
        (EnvironmentNeeds(network="allowlist"), (), "named hosts alone"),
    ],
)
def test_what_a_provider_cannot_give_is_said_with_the_remedy(
    needs: EnvironmentNeeds, mounts: Sequence[Mount], said: str
) -> None:
    refused = cannot_open(HostProcess(NoParams()), needs, mounts)
    assert refused is not None
    assert said in refused
    assert "name " in refused


def test_mounts_are_refused_where_a_provider_has_none_and_nothing_else_is() -> None:
    class NoMounts(HostProcess):
        offers_mounts = False

    provider = NoMounts(NoParams())
    assert "mounts nothing" in (cannot_open(provider, EnvironmentNeeds(), (MOUNT,)) or "")
    assert cannot_open(provider, EnvironmentNeeds(), ()) is None
