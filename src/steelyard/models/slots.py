"""Wait for one of an endpoint's slots, first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from steelyard.models.adaptive import AdaptiveLimit


class Slots:
    """Holds calls back while as many as the limit allows are under way."""

    def __init__(self, limit: AdaptiveLimit) -> None:
        self.limit = limit
        self.in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_now(self) -> bool:
        """Take a slot where one is free and nobody waits for it."""
        if self._waiting or self.in_use >= self.limit.allowed:
            return False
        self.in_use += 1
        return True

    async def take(self) -> None:
        """Wait for a slot; a cancelled wait leaves nothing behind."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            else:
                with suppress(ValueError):  # whoever was cancelled with us has passed us over
                    self._waiting.remove(turn)
            raise

    def give_back(self) -> None:
        """Free a slot and let those go who now may."""
        self.in_use -= 1
        self.let_go()

    def let_go(self) -> None:
        """Let waiting calls go while slots are free."""
        while self._waiting and self.in_use < self.limit.allowed:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_use += 1
                turn.set_result(None)
