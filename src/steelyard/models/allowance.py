"""What one attempt may spend on model calls: `attempt_usd` and `attempt_tokens`. Pure.

The gateway and driver-side clients hold calls to the same object, so that an attempt which uses
both cannot spend twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import NO_USAGE, Usage
from steelyard.models.protocols.form import TokenCounts

BYTES_A_TOKEN: Final = 4
UNSEEN_TOKENS: Final = 1000
"""Of an answer of which nothing came, where the request names no bound."""
MOST_ASSUMED_TOKENS: Final = 1_000_000


def assumed_counts(sent_bytes: int, said_bytes: int | None, asked_tokens: int = 0) -> TokenCounts:
    """Give what a call may have consumed, by its size; for its attempt's allowance alone.

    Args:
        sent_bytes: of the request.
        said_bytes: of the answer, as far as it came; None where nothing came.
        asked_tokens: the most that the request asked for, 0 where it named no bound.
    """
    if said_bytes is None:
        said = min(asked_tokens or UNSEEN_TOKENS, MOST_ASSUMED_TOKENS)
    else:
        said = math.ceil(said_bytes / BYTES_A_TOKEN)
    return TokenCounts(math.ceil(sent_bytes / BYTES_A_TOKEN), said)


@dataclass(slots=True)
class Allowance:
    """What an attempt may consume, and what it has consumed so far.

    A call is settled when it ends: those under way may overshoot. One whose usage never came, as
    when the agent hung up, counts as what its size lets one assume: an agent that reads no answer
    to its end must not spend without end.
    """

    usd: float | None = None
    """US dollars; None for no bound."""
    tokens: int | None = None
    """Input and output tokens; None for no bound."""
    spent_usd: float = 0.0
    spent_tokens: int = 0

    def spend(self, usage: Usage, assumed: Usage = NO_USAGE) -> None:
        """Settle a call that has ended.

        Args:
            usage: what it consumed.
            assumed: what it may have consumed, for where nothing is known.
        """
        if usage.cost_usd is None and not usage.input_tokens + usage.output_tokens:
            usage = assumed
        self.spent_usd += usage.cost_usd or 0.0
        self.spent_tokens += usage.input_tokens + usage.output_tokens

    def overrun(self) -> str | None:
        """Say which bound is reached, None while none is."""
        if self.usd is not None and self.spent_usd >= self.usd:
            return f"attempt_usd: {self.spent_usd:.6g} of {self.usd:g} US dollars are spent"
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            return f"attempt_tokens: {self.spent_tokens} of {self.tokens} tokens are spent"
        return None

    def beyond(self) -> str | None:
        """Say which bound is passed, as a last call may have done; None where each is kept."""
        is_beyond = (self.usd is not None and self.spent_usd > self.usd) or (
            self.tokens is not None and self.spent_tokens > self.tokens
        )
        return self.overrun() if is_beyond else None

    def check(self) -> None:
        """Refuse a call once nothing is left.

        Raises:
            AttemptFault: ATTEMPT_BUDGET, a bound is reached.
        """
        reached = self.overrun()
        if reached is not None:
            raise AttemptFault(IssueCode.ATTEMPT_BUDGET, reached)
