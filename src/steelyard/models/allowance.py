"""What one attempt may spend on model calls: `attempt_usd` and `attempt_tokens`.

The gateway, driver-side clients and the scorer's own models hold their calls to the same object,
so that an attempt which uses several of them cannot spend twice.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from steelyard.components.clock import AgentTimer
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import NO_USAGE, Usage
from steelyard.models.token_counts import TokenCounts

if TYPE_CHECKING:
    import asyncio

BYTES_A_TOKEN: Final = 4
UNSEEN_TOKENS: Final = 1000
"""Of an answer of which nothing came, where the request names no bound."""
MOST_ASSUMED_TOKENS: Final = 1_000_000

HELD_BYTES_A_TOKEN: Final = 2
"""Of a request, for what is held before it is sent: fewer than most texts have."""
HELD_TOKENS: Final = 4096
"""Held for an answer to a request that names no bound, until a longer one has been seen."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What budgets count: tokens and dollars, those of calls whose usage never came included."""

    usd: float = 0.0
    tokens: int = 0
    is_whole: bool = True
    """False where something was spent of which not even the size is known."""

    def __add__(self, other: Charge) -> Charge:
        is_whole = self.is_whole and other.is_whole
        return Charge(self.usd + other.usd, self.tokens + other.tokens, is_whole)

    @classmethod
    def of(cls, usage: Usage) -> Charge:
        """Charge what is known to have been used."""
        tokens = usage.input_tokens + usage.output_tokens
        return cls(usage.cost_usd or 0.0, tokens, usage.cost_usd is not None)


NO_CHARGE: Final = Charge()


def asked_tokens(data: Mapping[str, Any]) -> int:
    """Give the most that a request lets the model say, in all choices; 0 where it names none."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    bounds = [data[name] for name in names if type(data.get(name)) is int and data[name] > 0]
    choices = data.get("n")
    return max(bounds, default=0) * (choices if type(choices) is int and choices > 1 else 1)


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

    A call is settled when it ends. While it is under way what it may consume is held, and a call
    for which not enough is left waits until others of the attempt have ended; with none under way
    it goes alone. So what is spent passes a bound by no more than what the calls under way consume
    above what was held for them: where they name their bounds, by one call.

    A call whose usage never came, as when the agent hung up, counts as what its size lets one
    assume: an agent that reads no answer to its end must not spend without end.
    """

    usd: float | None = None
    """US dollars; None for no bound."""
    tokens: int | None = None
    """Input and output tokens; None for no bound."""
    spent_usd: float = 0.0
    spent_tokens: int = 0
    held_usd: float = 0.0
    held_tokens: int = 0
    under_way: int = 0
    """Calls for which something is held."""
    is_whole: bool = True
    """False once a call's cost was not known, and could not be told by its size either."""
    uncounted: int = 0
    """Calls that were answered, and whose usage never came or cannot be right."""
    _longest: int = HELD_TOKENS
    """Output tokens of the longest answer, or what is held until a longer one came."""
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque, compare=False)

    @property
    def is_bounded(self) -> bool:
        """False where nothing need be held."""
        return self.usd is not None or self.tokens is not None

    @property
    def charge(self) -> Charge:
        """What is spent so far."""
        return Charge(self.spent_usd, self.spent_tokens, self.is_whole)

    def charge_earlier(self, earlier: Charge) -> None:
        """Count what the attempt had spent before it began to use this object."""
        self.spent_usd += earlier.usd
        self.spent_tokens += earlier.tokens

    def most_of(self, sent_bytes: int, asked_tokens: int = 0) -> TokenCounts:
        """Give what to hold for a call.

        Args:
            sent_bytes: of the request.
            asked_tokens: the most that the request asks for, 0 where it names no bound.
        """
        said = min(asked_tokens or self._longest, MOST_ASSUMED_TOKENS)
        return TokenCounts(math.ceil(sent_bytes / HELD_BYTES_A_TOKEN), said)

    async def hold(self, most: Usage, timer: AgentTimer) -> Charge:
        """Hold what a call may consume, once that is left or no other call is under way.

        Args:
            most: what it may consume.
            timer: stands still while the call waits.

        Returns:
            What to `release` when the call has ended and is settled.

        Raises:
            AttemptFault: ATTEMPT_BUDGET, a bound is reached.
        """
        self.check()
        held = Charge(most.cost_usd or 0.0, most.input_tokens + most.output_tokens)
        if self._waiting or not self._has_room(held):
            with timer.waiting():
                await self._turn(held)
        self.held_usd += held.usd
        self.held_tokens += held.tokens
        self.under_way += 1
        self._wake()  # there may be room for the next one as well
        return held

    def release(self, held: Charge) -> None:
        """Let go of what was held for a call; settle it before."""
        self.under_way -= 1
        self.held_tokens -= held.tokens
        # Sums of floats leave noise behind, which must not add up.
        self.held_usd = self.held_usd - held.usd if self.under_way else 0.0
        self._wake()

    def spend(self, usage: Usage, assumed: Usage = NO_USAGE) -> None:
        """Settle a call that has ended.

        Args:
            usage: what it consumed.
            assumed: what it may have consumed, for where nothing is known.
        """
        if usage.cost_usd is None and not usage.input_tokens + usage.output_tokens:
            usage = assumed
        self.is_whole &= usage.cost_usd is not None
        self.spent_usd += usage.cost_usd or 0.0
        self.spent_tokens += usage.input_tokens + usage.output_tokens
        self._longest = max(self._longest, usage.output_tokens)

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

    def _has_room(self, held: Charge) -> bool:
        if not self.under_way:
            return True
        usd = self.spent_usd + self.held_usd + held.usd
        tokens = self.spent_tokens + self.held_tokens + held.tokens
        return (self.usd is None or usd <= self.usd) and (
            self.tokens is None or tokens <= self.tokens
        )

    async def _turn(self, held: Charge) -> None:
        """Wait until there is room, in the order of asking."""
        import asyncio  # a dry run needs none

        place = self._waiting.append
        while True:
            turn = asyncio.get_running_loop().create_future()
            place(turn)
            try:
                await turn
                self.check()
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                else:
                    self._wake()
                raise
            except AttemptFault:
                self._wake()  # those behind are refused, too
                raise
            if self._has_room(held):
                return
            place = self._waiting.appendleft

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
