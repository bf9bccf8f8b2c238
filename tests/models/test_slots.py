"""The slots of an endpoint: who waits, who is let go, what a cancelled wait leaves behind."""

from __future__ import annotations

import asyncio

from steelyard.models.adaptive import AdaptiveLimit
from steelyard.models.slots import Slots


def test_a_wait_cancelled_together_with_the_call_before_it_ends_as_cancelled() -> None:
    async def holds(slots: Slots) -> None:
        await slots.take()
        try:
            await asyncio.sleep(60)
        finally:
            slots.give_back()

    async def main() -> tuple[list[object], Slots]:
        slots = Slots(AdaptiveLimit(1))
        assert slots.take_now()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(holds(slots)) for _ in range(3)]
            await asyncio.sleep(0)
            slots.give_back()
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            ended: list[object] = list(await asyncio.gather(*tasks, return_exceptions=True))
        return ended, slots

    ended, slots = asyncio.run(main())
    assert [type(end) for end in ended] == [asyncio.CancelledError] * 3
    assert slots.in_use == 0
