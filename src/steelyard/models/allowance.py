"""What one attempt may spend on model calls: `attempt_usd` and `attempt_tokens`. Pure.

The gateway and driver-side clients hold calls to the same object, so that an attempt which uses
both cannot spend twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import Usage


@dataclass(slots=True)
class Allowance:
    """What an attempt may consume, and what it has consumed so far.

    A call is settled when it ends: one under way may overshoot. Calls of unknown usage or cost
    count as what is known of them.
    """

    usd: float | None = None
    """US dollars; None for no bound."""
    tokens: int | None = None
    """Input and output tokens; None for no bound."""
    spent_usd: float = 0.0
    spent_tokens: int = 0

    def spend(self, usage: Usage) -> None:
        """Settle a call that has ended."""
        self.spent_usd += usage.cost_usd or 0.0
        self.spent_tokens += usage.input_tokens + usage.output_tokens

    def overrun(self) -> str | None:
        """Say which bound is reached, None while none is."""
        if self.usd is not None and self.spent_usd >= self.usd:
            return f"attempt_usd: {self.spent_usd:.6g} of {self.usd:g} US dollars are spent"
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            return f"attempt_tokens: {self.spent_tokens} of {self.tokens} tokens are spent"
        return None

    def check(self) -> None:
        """Refuse a call once nothing is left.

        Raises:
            AttemptFault: ATTEMPT_BUDGET, a bound is reached.
        """
        reached = self.overrun()
        if reached is not None:
            raise AttemptFault(IssueCode.ATTEMPT_BUDGET, reached)
