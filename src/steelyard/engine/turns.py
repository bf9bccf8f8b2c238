"""Who is looked at next, and who waits for which resource.

Pure. A request is in one place: among the ready, in the wait list of the one thing it lacks, or
in neither since nothing of it could start. It is woken when what it waits for is given back, the
earliest declared first, one at a time: who is woken and can't use it wakes the next.
"""

from __future__ import annotations

from heapq import heappop, heappush

from steelyard.engine.attempt_queue import AttemptQueue
from steelyard.engine.budget import RequestMoney
from steelyard.engine.capacity import Provider, WaitList


class RequestState:
    """One request's place in the order, and what of it runs."""

    __slots__ = (
        "index",
        "is_closed",
        "is_loaded",
        "is_ready",
        "max_running",
        "money",
        "opens_environment",
        "provider",
        "queue",
        "running",
        "waits_on",
        "woken_by",
    )

    def __init__(
        self,
        index: int,
        provider: Provider,
        queue: AttemptQueue,
        money: RequestMoney | None,
        *,
        opens_environment: bool,
        max_running: int | None = None,
    ) -> None:
        self.index = index
        self.provider = provider
        self.queue = queue
        self.money = money
        """None where it draws on no limited pool."""
        self.opens_environment = opens_environment
        self.max_running = max_running
        """How many of it may run at once; None for no bound of its own."""
        self.running = 0
        self.is_closed = False
        self.is_loaded = False
        self.is_ready = False
        self.waits_on: WaitList | None = None
        self.woken_by: WaitList | None = None

    @property
    def is_at_bound(self) -> bool:
        """True where as many of it run as may: until one ends, it has nothing that could start."""
        return self.max_running is not None and self.running >= self.max_running

    def has_next(self) -> bool:
        """True where something of it could start, were there room."""
        return not self.is_at_bound and self.queue.has_next()

    @property
    def is_hopeless(self) -> bool:
        """True where its next execution can't be paid, whatever is given back.

        While something of it runs there is hope: its cost may lower the estimate.
        """
        return (
            self.money is not None
            and self.running == 0
            and self.queue.pending > 0
            and self.money.is_hopeless
        )

    @property
    def lacks(self) -> str | None:
        """What its next execution waits for, in words; None where nothing waits."""
        if self.queue.pending == 0:
            return None
        if self.is_at_bound:
            return "max_concurrent_attempts"
        if self.queue.has_next():
            return self.waits_on.name if self.waits_on else "task concurrency"
        return "another attempt" if self.queue.next_ready_at() is None else "backoff"


class Turns:
    """The ready requests in declaration order, and the way back for those that wait."""

    __slots__ = ("_ready", "_states", "_tokens_due", "waiting_for_themselves")

    def __init__(self) -> None:
        self._states: dict[int, RequestState] = {}
        self._ready: list[int] = []
        self._tokens_due: list[tuple[float, str, Provider]] = []
        self.waiting_for_themselves: set[int] = set()
        """Requests whose own budget or pilot is what they wait for."""

    def add(self, state: RequestState) -> None:
        """Make a request known; it is not ready yet."""
        self._states[state.index] = state

    def first(self) -> RequestState | None:
        """The earliest declared of the ready."""
        return self._states[self._ready[0]] if self._ready else None

    def enter(self, state: RequestState) -> None:
        """Have a request looked at, unless what it waits for is still missing."""
        if not state.is_ready and state.waits_on is None:
            state.is_ready = True
            heappush(self._ready, state.index)

    def end_first(self, missing: WaitList | None) -> None:
        """Take the first of the ready away: it lacks `missing`, or has nothing to start.

        What woke it, if that is not what it lacks, is handed on.
        """
        state = self._states[heappop(self._ready)]
        woken_by, state.woken_by = state.woken_by, None
        state.is_ready = False
        state.waits_on = missing
        if missing is not None:
            missing.add(state.index)
            if missing is state.provider.pacing:
                self.expect_token(state.provider)
            elif state.money is not None and missing is state.money.own:
                self.waiting_for_themselves.add(state.index)
        if woken_by is not None and woken_by is not missing:
            self.wake_first(woken_by)
        self.wake_for_slots(state.provider)

    def wake_first(self, waiting: WaitList) -> None:
        """Have the earliest request that waits here looked at again."""
        if waiting:
            state = self._states[waiting.pop()]
            self._stand_up(state)
            state.woken_by = waiting
            state.is_ready = True
            heappush(self._ready, state.index)

    def wake_for_slots(self, provider: Provider) -> None:
        """Wake the first who waits for a slot of this provider, if it has one."""
        if provider.slots and not provider.is_full:
            self.wake_first(provider.slots)

    def stop_waiting(self, state: RequestState) -> None:
        """Take a request that lost its next execution out of its wait list."""
        waited_on = state.waits_on
        if waited_on is not None:
            waited_on.remove(state.index)
            self._stand_up(state)
            self.wake_first(waited_on)

    def expect_token(self, provider: Provider) -> None:
        """Have the first who waits for a creation token woken when it comes."""
        if provider.pacing:
            heappush(self._tokens_due, (provider.next_open, provider.name, provider))

    def take_tokens(self, now: float) -> None:
        """Wake those whose creation token has come."""
        while self._tokens_due and self._tokens_due[0][0] <= now:
            provider = heappop(self._tokens_due)[2]
            if now >= provider.next_open:
                self.wake_first(provider.pacing)

    def next_token_at(self) -> float | None:
        """When the first awaited creation token comes."""
        while self._tokens_due:
            at, _, provider = self._tokens_due[0]
            if provider.pacing and at >= provider.next_open:
                return at
            heappop(self._tokens_due)
        return None

    def _stand_up(self, state: RequestState) -> None:
        state.waits_on = None
        self.waiting_for_themselves.discard(state.index)
