"""Money and tokens: what is left, what an execution reserves, what it really cost.

Pure. Amounts are integers inside (billionths of a dollar, tokens), so that what was reserved and
given back leaves nothing behind.

Whenever something starts, `spent + reserved <= limit`. So what is spent in the end passes the
limit by no more than the executions in flight at that time cost above their reservations.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from typing import Final

from steelyard.engine.capacity import PrefixSums, WaitList

PILOT_EXECUTIONS: Final = 4
"""Executions that may start before anything is known of their cost."""

SAMPLE_SIZE: Final = 256
"""Costs an estimate looks back on."""

_NANO: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """What may be spent, by the orchestration or by one request; None for no limit."""

    usd: float | None = None
    tokens: int | None = None
    reserve_usd: float | None = None
    """US dollars an execution reserves before any cost is known; None for a pilot."""


NO_BUDGET: Final = BudgetLimits()


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """What is spent of a budget; a limit of None is none."""

    spent_usd: float = 0.0
    limit_usd: float | None = None
    spent_tokens: int = 0
    limit_tokens: int | None = None


NO_SPENDING: Final = BudgetStanding()


def nano_usd(usd: float) -> int:
    """US dollars as whole billionths, to the nearest."""
    return round(usd * _NANO)


def as_usd(nano: int) -> float:
    """Whole billionths of a dollar as US dollars."""
    return nano / _NANO


class Pool:
    """An amount that executions share: dollars or tokens."""

    __slots__ = ("ahead", "limit", "reserved", "spent", "waiting")

    def __init__(self, name: str, limit: int | None) -> None:
        self.limit = limit
        self.spent = 0
        self.reserved = 0
        self.waiting = WaitList(name)
        self.ahead = PrefixSums()
        """What the next execution of each request needs, by declaration order."""

    def allows(self, need: int, ahead: int = 0) -> bool:
        """True where `need` is left after what is spent, reserved, and `ahead` in the queue."""
        if self.limit is None:
            return True
        left = self.limit - self.spent - self.reserved - ahead
        return left > 0 and need <= left

    def could_allow(self, need: int) -> bool:
        """True where `need` would be left if all that is in flight cost nothing."""
        if self.limit is None:
            return True
        left = self.limit - self.spent
        return left > 0 and need <= left

    def settle(self, reserved: int, spent: int) -> None:
        """Turn a reservation into what was really spent."""
        self.reserved -= reserved
        self.spent += spent


def standing_of(usd: Pool, tokens: Pool) -> BudgetStanding:
    """Say what is spent of a pool of dollars and one of tokens."""
    limit_usd = None if usd.limit is None else as_usd(usd.limit)
    return BudgetStanding(as_usd(usd.spent), limit_usd, tokens.spent, tokens.limit)


class CostEstimate:
    """What an execution of one request may cost: the 95th percentile of the latest costs.

    Nearest rank: the smallest cost that at least 95% of the sample do not exceed. The sample is
    the last 256 costs, so memory is bounded and the estimate follows a model that grows dear.
    What cost nothing is left out: a failed set-up says nothing of what a model call will cost.
    """

    __slots__ = ("_by_age", "_by_size", "_initial")

    def __init__(self, initial: int | None) -> None:
        self._initial = initial
        self._by_age: deque[int] = deque()
        self._by_size: list[int] = []

    def add(self, cost: int) -> None:
        """Learn what one execution cost."""
        if cost == 0:
            return
        if len(self._by_age) == SAMPLE_SIZE:
            oldest = self._by_age.popleft()
            del self._by_size[bisect_left(self._by_size, oldest)]
        self._by_age.append(cost)
        insort(self._by_size, cost)

    def value(self) -> int | None:
        """The estimate; before any cost is known the initial one, or None."""
        if not self._by_size:
            return self._initial
        rank = -(-95 * len(self._by_size) // 100)
        return self._by_size[rank - 1]


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one execution holds of every pool it draws on."""

    nano_usd: int
    tokens: int
    is_pilot: bool


NO_RESERVATION: Final = Reservation(0, 0, is_pilot=False)


class RequestMoney:
    """The pools one request draws on, and what its executions are expected to cost."""

    __slots__ = (
        "_is_known",
        "_pilots_running",
        "_pilots_started",
        "_shared_tokens",
        "_shared_usd",
        "_tokens",
        "_tokens_estimate",
        "_usd",
        "_usd_estimate",
        "need_tokens",
        "need_usd",
        "own",
    )

    def __init__(self, name: str, limits: BudgetLimits, usd: Pool, tokens: Pool) -> None:
        self.own = WaitList(f"budget of {name}")
        """Where the request waits for what only itself can free: its pilot, its own pools."""
        self._usd = Pool("", None if limits.usd is None else nano_usd(limits.usd))
        self._tokens = Pool("", limits.tokens)
        self._shared_usd = usd
        self._shared_tokens = tokens
        reserve = None if limits.reserve_usd is None else nano_usd(limits.reserve_usd)
        counts_usd = usd.limit is not None or limits.usd is not None
        counts_tokens = tokens.limit is not None or limits.tokens is not None
        self._usd_estimate = CostEstimate(reserve) if counts_usd else None
        self._tokens_estimate = CostEstimate(None) if counts_tokens else None
        self._pilots_started = 0
        self._pilots_running = 0
        self._is_known = False
        self.need_usd = 0
        self.need_tokens = 0
        self._estimate()

    def blocked_on(self, request: int) -> WaitList | None:
        """What a next execution would wait for; None where all it reserves is left.

        What heads declared before it need counts as taken, so nobody passes.
        """
        usd, tokens = self._shared_usd, self._shared_tokens
        if usd.limit is not None and not usd.allows(self.need_usd, usd.ahead.before(request)):
            return usd.waiting
        if tokens.limit is not None and not tokens.allows(
            self.need_tokens, tokens.ahead.before(request)
        ):
            return tokens.waiting
        if not (self._usd.allows(self.need_usd) and self._tokens.allows(self.need_tokens)):
            return self.own
        if self._pilots_running and (self._is_known or self._pilots_started >= PILOT_EXECUTIONS):
            return self.own
        return None

    @property
    def is_hopeless(self) -> bool:
        """True where a next execution can't be paid, whatever is given back."""
        return not (
            self._shared_usd.could_allow(self.need_usd)
            and self._usd.could_allow(self.need_usd)
            and self._shared_tokens.could_allow(self.need_tokens)
            and self._tokens.could_allow(self.need_tokens)
        )

    def reserve(self) -> Reservation:
        """Take what a next execution needs; `blocked_on` must have said that it is left."""
        is_pilot = not self._is_known
        if is_pilot:
            self._pilots_started += 1
            self._pilots_running += 1
        for pool in (self._shared_usd, self._usd):
            pool.reserved += self.need_usd
        for pool in (self._shared_tokens, self._tokens):
            pool.reserved += self.need_tokens
        return Reservation(self.need_usd, self.need_tokens, is_pilot)

    def settle(
        self, reservation: Reservation, spent_usd: float | None, spent_tokens: int | None
    ) -> None:
        """Give a reservation back and book the real cost; an unknown one counts as reserved."""
        usd = reservation.nano_usd if spent_usd is None else nano_usd(spent_usd)
        tokens = reservation.tokens if spent_tokens is None else spent_tokens
        for pool in (self._shared_usd, self._usd):
            pool.settle(reservation.nano_usd, usd)
        for pool in (self._shared_tokens, self._tokens):
            pool.settle(reservation.tokens, tokens)
        self._pilots_running -= reservation.is_pilot
        if self._usd_estimate is not None:
            self._usd_estimate.add(usd)
        if self._tokens_estimate is not None:
            self._tokens_estimate.add(tokens)
        self._estimate()

    @property
    def standing(self) -> BudgetStanding:
        """What is spent of the request's own limits."""
        return standing_of(self._usd, self._tokens)

    def _estimate(self) -> None:
        usd = 0 if self._usd_estimate is None else self._usd_estimate.value()
        tokens = 0 if self._tokens_estimate is None else self._tokens_estimate.value()
        pilot_is_over = self._pilots_started >= PILOT_EXECUTIONS and not self._pilots_running
        self._is_known = pilot_is_over or (usd is not None and tokens is not None)
        self.need_usd, self.need_tokens = usd or 0, tokens or 0
