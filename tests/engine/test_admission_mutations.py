"""The model's property can fail: each of these wrong admissions gives it a counterexample."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings

from steelyard.engine.admission import Admission, Start
from steelyard.engine.attempt_queue import Queued
from steelyard.engine.capacity import WaitList
from steelyard.engine.turns import Turns
from tests.engine.admission_replay import Replay, Workload, workloads


class HoldsASlotWhileItsProviderIsFull(Admission):
    def start_next(self, now: float) -> Start | None:
        requests = self._requests.values()
        held = sum(request.waits_on is request.provider.slots for request in requests)
        self._task_concurrency -= held
        try:
            return super().start_next(now)
        finally:
            self._task_concurrency += held


class PassesAHeadThatIsBlockedOnDollars(Admission):
    def _update_need(self, state: Any) -> None:
        pass


class ForgetsTheProviderSlotOnRetry(Admission):
    def retry(self, start: Start, ready_at: float, now: float, **cost: Any) -> bool:
        waits = super().retry(start, ready_at, now, **cost)
        self._requests[start.request].provider.running += 1
        return waits


class IgnoresDeclarationOrderOnWake(Admission):
    def __init__(self, *limits: Any, **budget: Any) -> None:
        super().__init__(*limits, **budget)
        self._turns = LastFirst()


class LastFirst(Turns):
    def wake_first(self, waiting: WaitList) -> None:
        waiting._heap.sort(reverse=True)
        super().wake_first(waiting)


class SendsARetryToTheBack(Admission):
    def _release(self, start: Start) -> Any:
        state = super()._release(start)
        put_back = type(state.queue).put_back

        class Last(type(state.queue)):  # type: ignore[misc]
            __slots__ = ()

            def put_back(self, queued: Queued) -> None:
                place = queued.task + 1_000 * (queued.task < 1_000)
                put_back(self, queued._replace(task=place))

            def has_next(self) -> bool:
                return bool(self._fresh.left or self._due)

            def take(self) -> Queued:
                if self._fresh.left:
                    self.pending -= 1
                    return Queued(*self._fresh.take(), 1, self._fresh.since)
                queued = super().take()
                return queued._replace(task=queued.task % 1_000)

        if hasattr(state.queue, "_due") and not isinstance(state.queue, Last):
            state.queue.__class__ = Last
        return state


class SettlesNothing(Admission):
    def finish(self, start: Start, now: float, **cost: Any) -> None:
        super().finish(start, now)


class KeepsReservations(Admission):
    def _give_back(self, state: Any, start: Start, *cost: Any) -> None:
        super()._give_back(state, start, *cost)
        self._usd.reserved += round(start.reserved_usd * 1e9)


class ReservesTheMedian(Admission):
    def _give_back(self, state: Any, start: Start, *cost: Any) -> None:
        super()._give_back(state, start, *cost)
        if state.money is not None and state.money._usd_estimate is not None:
            costs = state.money._usd_estimate._by_size or [state.money.need_usd]
            state.money.need_usd = costs[len(costs) // 2]


class IgnoresTheCreationRate(Admission):
    def open_request(self, request: int, **settings: Any) -> None:
        super().open_request(request, **{**settings, "opens_environment": False})


class OverlapsAttemptsThatAreNotIsolated(Admission):
    def open_request(self, request: int, **settings: Any) -> None:
        super().open_request(request, **{**settings, "overlap": True})


class ForgetsToWakeAfterABackoff(Admission):
    def next_wake(self, now: float) -> float | None:
        self._backoff_ends.clear()
        return super().next_wake(now)


class HoldsASlotDuringBackoff(Admission):
    def start_next(self, now: float) -> Start | None:
        waiting = len(self._backoff_ends)
        self._task_concurrency -= waiting
        try:
            return super().start_next(now)
        finally:
            self._task_concurrency += waiting


class ForgetsToWakeWhenALimitIsRaised(Admission):
    def set_provider_limit(self, provider: str, limit: int) -> None:
        self._provider(provider).limit = limit


class ForgetsThatItIsPaused(Admission):
    def retry(self, start: Start, ready_at: float, now: float, **cost: Any) -> bool:
        self.resume()
        return super().retry(start, ready_at, now, **cost)


class ForgetsARequestsOwnBound(Admission):
    def open_request(self, request: int, **settings: Any) -> None:
        super().open_request(request, **{**settings, "max_running": None})


class CountsItsOwnBoundOneTooHigh(Admission):
    def open_request(self, request: int, **settings: Any) -> None:
        bound = settings.pop("max_running")
        super().open_request(request, **settings, max_running=bound and bound + 1)


class HoldsASlotForARequestAtItsOwnBound(Admission):
    def start_next(self, now: float) -> Start | None:
        requests = self._requests.values()
        held = sum(request.is_at_bound and request.queue.pending > 0 for request in requests)
        self._task_concurrency -= held
        try:
            return super().start_next(now)
        finally:
            self._task_concurrency += held


class PromisesMoneyToARequestAtItsOwnBound(Admission):
    def _start(self, state: Any, now: float) -> Start:
        bound, state.max_running = state.max_running, None
        try:
            return super()._start(state, now)
        finally:
            state.max_running = bound

    def _update_need(self, state: Any) -> None:
        if not state.is_at_bound:
            super()._update_need(state)


class ForgetsARequestThatWasAtItsOwnBound(Admission):
    def _give_back(self, state: Any, start: Start, *cost: Any) -> None:
        was_at_bound = state.is_at_bound
        super()._give_back(state, start, *cost)
        if was_at_bound and state.is_ready and state.index != self._turns._ready[0]:
            self._turns._ready.remove(state.index)


MUTATIONS = (
    ForgetsARequestsOwnBound,
    CountsItsOwnBoundOneTooHigh,
    HoldsASlotForARequestAtItsOwnBound,
    PromisesMoneyToARequestAtItsOwnBound,
    ForgetsARequestThatWasAtItsOwnBound,
    ForgetsToWakeWhenALimitIsRaised,
    ForgetsThatItIsPaused,
    HoldsASlotWhileItsProviderIsFull,
    PassesAHeadThatIsBlockedOnDollars,
    ForgetsTheProviderSlotOnRetry,
    IgnoresDeclarationOrderOnWake,
    SendsARetryToTheBack,
    SettlesNothing,
    KeepsReservations,
    ReservesTheMedian,
    IgnoresTheCreationRate,
    OverlapsAttemptsThatAreNotIsolated,
    ForgetsToWakeAfterABackoff,
    HoldsASlotDuringBackoff,
)


def property_of(make: type[Admission], examples: int = 1_500) -> Any:
    """The very property that the real admission passes, over the same draws each time."""

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
    )
    @given(workloads())
    def decides_as_the_model(workload: Workload) -> None:
        Replay(workload, make).run()

    return decides_as_the_model


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_model_tells_a_wrong_admission_from_the_right_one(mutation: type[Admission]) -> None:
    with pytest.raises(AssertionError):
        property_of(mutation)()


def test_the_right_admission_passes_on_the_same_draws() -> None:
    property_of(Admission, examples=150)()
