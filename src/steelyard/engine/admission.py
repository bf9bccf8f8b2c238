"""Choose which execution starts next.

Pure: no clock, no waiting; `engine/driver.py` waits. Requests have a queue each, in declaration
order. What may start takes all its claims at once (global slot, provider slot, creation token,
reservation of dollars and tokens) or none. A blocked request waits on the one thing it lacks and
is not looked at before that is given back, so a decision costs the requests that can start.

Slots and creation tokens may be passed: a request whose provider is full holds nothing back.
Dollars and tokens are promised in declaration order: what the next execution of every earlier
request needs counts as taken, so nobody passes and a large claim comes up in bounded time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from steelyard.engine.attempt_queue import AttemptsOf, Queued, queue_of
from steelyard.engine.budget import (
    NO_BUDGET,
    NO_RESERVATION,
    NO_SPENDING,
    BudgetLimits,
    BudgetStanding,
    Pool,
    RequestMoney,
    Reservation,
    as_usd,
    nano_usd,
    standing_of,
)
from steelyard.engine.capacity import Limits, Provider, WaitList
from steelyard.engine.turns import RequestState, Turns

__all__ = ["NO_BUDGET", "Admission", "BudgetLimits", "Limits", "Misuse", "Start"]


class Misuse(RuntimeError):
    """A caller broke the order of calls, as by ending one execution twice: our own bug."""


@dataclass(frozen=True, slots=True)
class Start:
    """An execution that has all its claims and must run now."""

    request: int
    task: int
    """Index, from 0."""
    attempt: int
    """From 1."""
    execution: int
    """From 1; above 1 for a retry."""
    queued_since: float
    """When it could have started but for limits, on the caller's clock."""
    reserved_usd: float = 0.0
    reserved_tokens: int = 0


class Admission:
    """The one place that decides what starts next.

    Times are seconds on one clock of the caller's; they must not run backwards.
    """

    def __init__(self, limits: Limits, *, budget: BudgetLimits = NO_BUDGET) -> None:
        _at_least_one(limits.task_concurrency)
        self._limits = limits
        self._budget = budget
        self._usd = Pool("budget (usd)", None if budget.usd is None else nano_usd(budget.usd))
        self._tokens = Pool("budget (tokens)", budget.tokens)
        self._task_concurrency = limits.task_concurrency
        self._is_paused = False
        self._requests: dict[int, RequestState] = {}
        self._providers: dict[str, Provider] = {}
        self._turns = Turns()
        self._backoff_ends: list[tuple[float, int]] = []
        self._running: dict[tuple[int, int, int], Reservation] = {}

    # Requests

    def open_request(
        self,
        request: int,
        *,
        provider: str,
        opens_environment: bool,
        overlap: bool,
        k: int,
        budget: BudgetLimits = NO_BUDGET,
        spends: bool = True,
        max_running: int | None = None,
    ) -> None:
        """Give a request its place; its number is its place in declaration order, from 0.

        Args:
            request: the number; unused so far.
            provider: whose slots its executions take.
            opens_environment: whether each execution takes a creation token.
            overlap: whether two attempts of one task may run at once.
            k: attempts a task, at least 1.
            budget: its own limits; `reserve_usd` falls back to the orchestration's.
            spends: False where it can cost nothing, so it needs no reservation.
            max_running: how many of it may run at once, at least 1; None for no bound of its own.

        Raises:
            Misuse: the number is taken.
        """
        if request in self._requests:
            raise Misuse(f"request {request} was opened before")
        money = self._money_of(request, budget) if spends else None
        state = self._requests[request] = RequestState(
            request,
            self._provider(provider),
            queue_of(k, overlap=overlap),
            money,
            opens_environment=opens_environment,
            max_running=max_running,
        )
        self._turns.add(state)

    def add_tasks(
        self, request: int, tasks: int, now: float, *, attempts_of: AttemptsOf | None = None
    ) -> None:
        """Fill a request's queue with the attempts of tasks 0 .. tasks - 1, once.

        `attempts_of` names the attempts of a task that are to run (some may be reused); without
        it all k are. It must give the same answer every time.

        Raises:
            Misuse: its tasks were loaded before.
        """
        state = self._requests[request]
        if state.is_loaded:
            raise Misuse(f"the tasks of request {request} were loaded before")
        state.is_loaded = True
        if not state.is_closed:
            state.queue.load(tasks, now, attempts_of)
            self._enter(state)

    def close_request(self, request: int) -> Iterator[tuple[int, int]]:
        """Let nothing more of a request start; what runs goes on.

        Returns:
            Every attempt that was neither running nor over, lazily, as (task, attempt); those
            that waited for a retry come first. Closing takes effect at once, read or not.
        """
        state = self._requests[request]
        state.is_closed = True
        left = state.queue.drain()
        self._lose(state)
        return left

    def drop_attempts(self, request: int, task: int) -> list[int]:
        """Take out the attempts of a task that do not run now, those awaiting a retry included."""
        state = self._requests[request]
        dropped = state.queue.drop_task(task)
        self._lose(state)
        return dropped

    # Executions

    def start_next(self, now: float) -> Start | None:
        """The execution to start now, its claims taken; None where nothing can start."""
        if self._is_paused or len(self._running) >= self._task_concurrency:
            return None
        self._advance(now)
        turns = self._turns
        while (state := turns.first()) is not None:
            if not state.has_next():
                turns.end_first(None)
                self._update_need(state)
            elif (missing := self._missing(state, now)) is not None:
                turns.end_first(missing)
            else:
                return self._start(state, now)
        return None

    def finish(
        self,
        start: Start,
        now: float,
        *,
        spent_usd: float | None = 0.0,
        spent_tokens: int | None = 0,
    ) -> None:
        """End an execution: give its claims back, book what it cost.

        A cost of None is unknown and counts as reserved.

        Raises:
            Misuse: it does not run.
        """
        state = self._release(start)
        self._give_back(state, start, spent_usd, spent_tokens)

    def retry(
        self,
        start: Start,
        ready_at: float,
        now: float,
        *,
        spent_usd: float | None = 0.0,
        spent_tokens: int | None = 0,
    ) -> bool:
        """End an execution whose attempt is to run again, from `ready_at` on.

        It holds nothing while it waits, and comes before what its request has not begun.

        Returns:
            False where the request is closed: then the attempt is over, as after `finish`.

        Raises:
            Misuse: it does not run.
        """
        state = self._release(start)
        if not state.is_closed:
            again = Queued(start.task, start.attempt, start.execution + 1, ready_at)
            state.queue.put_back(again)
            heappush(self._backoff_ends, (ready_at, start.request))
        self._give_back(state, start, spent_usd, spent_tokens)
        return not state.is_closed

    # Questions

    def next_wake(self, now: float) -> float | None:
        """When time alone lets something start (a backoff ends, a creation token comes).

        None where time alone lets nothing start. Ask after `start_next` said None.
        """
        if self._is_paused or len(self._running) >= self._task_concurrency:
            return None
        while self._backoff_ends and not self._is_due_then(*self._backoff_ends[0]):
            heappop(self._backoff_ends)
        token_at = self._turns.next_token_at()
        times = [] if token_at is None else [token_at]
        times += (at for at, _ in self._backoff_ends[:1])
        return max(now, min(times)) if times else None

    def skipped_by_budget(self) -> list[int]:
        """Requests whose rest can never be paid, whatever is in flight gives back.

        Ask after `start_next` said None; `close_request` them, then ask both again: what they
        held back may start. A request with something running is not among them, since what that
        costs may lower its estimate.
        """
        waiting = set(self._turns.waiting_for_themselves)
        for pool in (self._usd, self._tokens):
            first = pool.waiting.first()
            if first is not None:
                waiting.add(first)
        return sorted(index for index in waiting if self._requests[index].is_hopeless)

    def pending(self, request: int) -> int:
        """Attempts that neither run nor are over; 0 before the tasks are loaded."""
        return self._requests[request].queue.pending

    def running(self, request: int) -> int:
        """Executions that run now."""
        return self._requests[request].running

    def has_ready(self, request: int) -> bool:
        """True where a request could start something, were there room: a slot, a token, money.

        Not where it waits for what it has itself: its own bound, its own budget, its pilot.
        """
        state = self._requests[request]
        return state.has_next() and request not in self._turns.waiting_for_themselves

    def has_free_slot(self) -> bool:
        """True where fewer executions run than may, over all requests."""
        return len(self._running) < self._task_concurrency

    def is_running(self, request: int, task: int, attempt: int) -> bool:
        """True from the start of an execution of this attempt to its `finish` or `retry`."""
        return (request, task, attempt) in self._running

    def blocked_on(self, request: int) -> str | None:
        """What the next execution of a request waits for, in words; None where nothing waits.

        As of the last decision: a resource, `task concurrency`, `backoff`, or `paused`.
        """
        lacks = self._requests[request].lacks
        return "paused" if self._is_paused and lacks else lacks

    def standing(self, request: int | None = None) -> BudgetStanding:
        """What is spent of a request's own budget, or of the orchestration's."""
        if request is None:
            return standing_of(self._usd, self._tokens)
        money = self._requests[request].money
        return NO_SPENDING if money is None else money.standing

    def provider_use(self) -> dict[str, tuple[int, int]]:
        """Executions that run through each provider, and its limit; 0 for none."""
        return {name: (state.running, state.limit) for name, state in self._providers.items()}

    @property
    def task_concurrency(self) -> int:
        """How many executions may run at once."""
        return self._task_concurrency

    @property
    def is_paused(self) -> bool:
        """True from `pause` to `resume`."""
        return self._is_paused

    # Controls

    def set_task_concurrency(self, limit: int) -> None:
        """Change the global limit, at least 1; what runs above it goes on."""
        _at_least_one(limit)
        self._task_concurrency = limit

    def set_provider_limit(self, provider: str, limit: int) -> None:
        """Change a provider's limit, 0 for none; what runs above it goes on."""
        state = self._provider(provider)
        state.limit = limit
        self._turns.wake_for_slots(state)

    def pause(self) -> None:
        """Start nothing until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        """Start again what may."""
        self._is_paused = False

    # The decision

    def _missing(self, state: RequestState, now: float) -> WaitList | None:
        """The first thing that the next execution of a request lacks."""
        provider = state.provider
        if provider.is_full:
            return provider.slots
        if state.opens_environment and now < provider.next_open:
            return provider.pacing
        if state.money is not None:
            return state.money.blocked_on(state.index)
        return None

    def _start(self, state: RequestState, now: float) -> Start:
        queued = state.queue.take()
        provider = state.provider
        provider.running += 1
        state.running += 1
        if state.opens_environment and provider.interval_s:
            provider.take_token(now)
            self._turns.expect_token(provider)
        reservation = NO_RESERVATION
        if state.money is not None:
            reservation = state.money.reserve()
            self._update_need(state)
        self._turns.wake_for_slots(provider)
        self._running[state.index, queued.task, queued.attempt] = reservation
        return Start(
            state.index,
            queued.task,
            queued.attempt,
            queued.execution,
            queued.queued_since,
            as_usd(reservation.nano_usd),
            reservation.tokens,
        )

    def _enter(self, state: RequestState) -> None:
        if state.has_next():
            self._update_need(state)
            self._turns.enter(state)

    def _lose(self, state: RequestState) -> None:
        """Let a request that may have lost its next execution hold nothing back."""
        self._update_need(state)
        if not state.has_next():
            self._turns.stop_waiting(state)

    # Money

    def _money_of(self, request: int, budget: BudgetLimits) -> RequestMoney | None:
        pools = (self._usd.limit, self._tokens.limit, budget.usd, budget.tokens)
        if all(limit is None for limit in pools):
            return None
        if budget.reserve_usd is None:
            budget = BudgetLimits(budget.usd, budget.tokens, self._budget.reserve_usd)
        for pool in (self._usd, self._tokens):
            pool.ahead.grow(request + 1)
        return RequestMoney(f"request {request}", budget, self._usd, self._tokens)

    def _update_need(self, state: RequestState) -> None:
        """Promise a request what its next execution needs, or take the promise back."""
        money = state.money
        if money is None:
            return
        waits = state.has_next()
        for pool, need in ((self._usd, money.need_usd), (self._tokens, money.need_tokens)):
            promised = pool.ahead[state.index]
            pool.ahead.set(state.index, need if waits else 0)
            if promised > pool.ahead[state.index]:
                self._turns.wake_first(pool.waiting)

    # Giving back

    def _release(self, start: Start) -> RequestState:
        if not self.is_running(start.request, start.task, start.attempt):
            raise Misuse(f"{start} does not run")
        return self._requests[start.request]

    def _give_back(
        self, state: RequestState, start: Start, spent_usd: float | None, spent_tokens: int | None
    ) -> None:
        reservation = self._running.pop((start.request, start.task, start.attempt))
        state.running -= 1
        state.provider.running -= 1
        state.queue.end(start.task)
        if state.money is not None:
            state.money.settle(reservation, spent_usd, spent_tokens)
            self._update_need(state)
            self._turns.wake_first(self._usd.waiting)
            self._turns.wake_first(self._tokens.waiting)
            self._turns.wake_first(state.money.own)
        self._turns.wake_for_slots(state.provider)
        self._enter(state)

    # Time

    def _advance(self, now: float) -> None:
        while self._backoff_ends and self._backoff_ends[0][0] <= now:
            state = self._requests[heappop(self._backoff_ends)[1]]
            state.queue.advance(now)
            self._enter(state)
        self._turns.take_tokens(now)

    def _is_due_then(self, ready_at: float, request: int) -> bool:
        first = self._requests[request].queue.next_ready_at()
        return first is not None and first <= ready_at

    def _provider(self, name: str) -> Provider:
        provider = self._providers.get(name)
        if provider is None:
            provider = self._providers[name] = Provider(
                name,
                self._limits.provider_limits.get(name, 0),
                self._limits.env_open_qps.get(name, 0.0),
            )
        return provider


def _at_least_one(task_concurrency: int) -> None:
    if task_concurrency < 1:
        raise ValueError(f"task concurrency must be at least 1, not {task_concurrency}")
