"""The floor: an agent that does nothing. A task that it passes measures nothing."""

from __future__ import annotations

from typing import ClassVar

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits

_NOTHING = HarnessResult(None)


class Nop(Harness):
    """Answers nothing and touches nothing: neither model nor environment."""

    id: ClassVar[str] = "nop"
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=False)

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Return no answer."""
        return _NOTHING
