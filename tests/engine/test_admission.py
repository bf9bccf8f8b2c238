"""What starts next, rule by rule."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from steelyard.engine.admission import Admission, Misuse
from tests.engine.admitting import add, admission, places, start_all

# Order


def test_an_earlier_request_starts_first_and_a_later_one_uses_what_it_leaves() -> None:
    queue = admission(4)
    add(queue, 0, tasks=3)
    add(queue, 1, tasks=3)
    assert places(start_all(queue)) == [(0, 0, 1), (0, 1, 1), (0, 2, 1), (1, 0, 1)]


def test_declaration_order_counts_and_not_the_order_of_opening() -> None:
    queue = admission(1)
    add(queue, 1, tasks=1)
    add(queue, 0, tasks=1)
    assert places(start_all(queue)) == [(0, 0, 1)]


def test_unstarted_tasks_of_an_earlier_request_keep_coming_first() -> None:
    queue = admission(2)
    add(queue, 0, tasks=3)
    add(queue, 1, tasks=3)
    first, _ = start_all(queue)
    queue.finish(first, 1.0)
    assert places(start_all(queue, 1.0)) == [(0, 2, 1)]


def test_attempts_of_a_task_come_together_task_by_task() -> None:
    queue = admission()
    add(queue, 0, tasks=2, k=3)
    assert places(start_all(queue)) == [(0, t, a) for t in range(2) for a in (1, 2, 3)]


def test_a_request_whose_tasks_load_late_takes_its_place_once_they_are_there() -> None:
    queue = admission(1)
    queue.open_request(0, provider="docker", opens_environment=True, overlap=True, k=1)
    add(queue, 1, tasks=2)
    (start,) = start_all(queue)
    assert start.request == 1, "it does not hold up the others"
    queue.add_tasks(0, 1, now=3.0)
    queue.finish(start, 3.0)
    (start,) = start_all(queue, 3.0)
    assert (start.request, start.queued_since) == (0, 3.0)


def test_attempts_that_need_not_run_are_left_out() -> None:
    queue = admission()
    queue.open_request(0, provider="docker", opens_environment=True, overlap=True, k=2)
    wanted: list[list[int]] = [[], [2], [1, 2]]
    queue.add_tasks(0, 3, 0.0, attempts_of=wanted.__getitem__)
    assert queue.pending(0) == 3
    assert places(start_all(queue)) == [(0, 1, 2), (0, 2, 1), (0, 2, 2)]


# A request's own bound


def test_no_more_of_a_request_run_at_once_than_it_allows() -> None:
    queue = admission(4)
    add(queue, 0, tasks=5, max_running=2)
    first, _ = start_all(queue)
    assert queue.running(0) == 2
    queue.finish(first, 1.0)
    assert places(start_all(queue, 1.0)) == [(0, 2, 1)]


def test_a_request_at_its_own_bound_holds_back_nobody() -> None:
    queue = admission(4, providers={"docker": 4}, usd=4.0, reserve_usd=1.0)
    add(queue, 0, tasks=5, max_running=1)
    add(queue, 1, tasks=5)
    assert places(start_all(queue)) == [(0, 0, 1), (1, 0, 1), (1, 1, 1), (1, 2, 1)]


def test_a_request_below_its_own_bound_again_comes_first_again() -> None:
    queue = admission(2)
    add(queue, 0, tasks=5, max_running=1)
    add(queue, 1, tasks=5)
    first, other = start_all(queue)
    queue.finish(other, 1.0)
    assert places(start_all(queue, 1.0)) == [(1, 1, 1)]
    queue.finish(first, 2.0)
    assert places(start_all(queue, 2.0)) == [(0, 1, 1)]


def test_a_request_says_that_its_own_bound_is_what_it_waits_for() -> None:
    queue = admission(4)
    add(queue, 0, tasks=2, max_running=1)
    (start,) = start_all(queue)
    assert queue.blocked_on(0) == "max_concurrent_attempts"
    queue.finish(start, 1.0)
    start_all(queue, 1.0)
    assert queue.blocked_on(0) is None


def test_a_request_at_its_own_bound_does_not_wake_the_driver_before_it_can_start() -> None:
    queue = admission(4)
    add(queue, 0, tasks=2, max_running=1)
    (first,) = start_all(queue)
    queue.retry(first, 5.0, 1.0)
    (second,) = start_all(queue, 1.0)
    assert second.task == 1
    assert start_all(queue, 6.0) == [], "its backoff has ended, and it is at its bound"
    assert queue.next_wake(6.0) is None
    queue.finish(second, 7.0)
    assert places(start_all(queue, 7.0)) == [(0, 0, 1)]


# Attempts that may not overlap


def test_two_attempts_of_a_task_never_run_at_once_unless_isolated() -> None:
    queue = admission()
    add(queue, 0, tasks=2, k=2, overlap=False)
    assert places(start_all(queue)) == [(0, 0, 1), (0, 1, 1)]


def test_the_next_attempt_of_a_freed_task_comes_before_new_tasks() -> None:
    queue = admission(2)
    add(queue, 0, tasks=3, k=2, overlap=False)
    _, second = start_all(queue)
    queue.finish(second, 1.0)
    assert places(start_all(queue, 1.0)) == [(0, 1, 2)]


def test_a_retry_waits_for_its_sibling_where_attempts_may_not_overlap() -> None:
    queue = admission()
    add(queue, 0, tasks=1, k=2, overlap=False)
    (first,) = start_all(queue)
    queue.retry(first, ready_at=5.0, now=1.0)
    (second,) = start_all(queue, 1.0)
    assert second.attempt == 2
    assert start_all(queue, 6.0) == []
    assert queue.blocked_on(0) == "another attempt"
    queue.finish(second, 7.0)
    (again,) = start_all(queue, 7.0)
    assert (again.attempt, again.execution) == (1, 2)


# Slots


def test_a_full_provider_does_not_hold_back_the_next_request() -> None:
    queue = admission(3, providers={"docker": 1})
    add(queue, 0, tasks=3)
    add(queue, 1, tasks=3, provider="modal")
    assert places(start_all(queue)) == [(0, 0, 1), (1, 0, 1), (1, 1, 1)]
    assert queue.blocked_on(0) == "provider docker"


def test_a_freed_provider_slot_goes_to_the_earliest_that_waits_for_it() -> None:
    queue = admission(providers={"docker": 1})
    for request in range(3):
        add(queue, request, tasks=1)
    (first,) = start_all(queue)
    queue.finish(first, 1.0)
    assert places(start_all(queue, 1.0)) == [(1, 0, 1)]


def test_a_limit_of_zero_or_none_is_no_limit() -> None:
    queue = admission(providers={"docker": 0})
    add(queue, 0, tasks=40)
    add(queue, 1, tasks=40, provider="modal")
    assert len(start_all(queue)) == 80


def test_a_raised_provider_limit_starts_all_it_has_room_for() -> None:
    queue = admission(providers={"docker": 1})
    for request in range(4):
        add(queue, request, tasks=1)
    start_all(queue)
    queue.set_provider_limit("docker", 3)
    assert places(start_all(queue)) == [(1, 0, 1), (2, 0, 1)]


def test_a_lowered_limit_ends_nothing_and_starts_nothing_until_it_is_kept() -> None:
    queue = admission(3)
    add(queue, 0, tasks=9)
    first, second, third = start_all(queue)
    queue.set_task_concurrency(1)
    queue.finish(first, 1.0)
    queue.finish(second, 1.0)
    assert start_all(queue, 1.0) == []
    queue.finish(third, 2.0)
    assert len(start_all(queue, 2.0)) == 1


def test_nothing_starts_while_paused() -> None:
    queue = admission()
    add(queue, 0, tasks=1)
    queue.pause()
    assert (start_all(queue), queue.next_wake(0.0)) == ([], None)
    assert queue.blocked_on(0) == "paused"
    queue.resume()
    assert len(start_all(queue)) == 1


# Creation tokens


def test_environments_of_a_paced_provider_open_one_interval_apart() -> None:
    queue = admission(qps={"modal": 4.0})
    add(queue, 0, tasks=3, provider="modal")
    assert len(start_all(queue, 10.0)) == 1
    assert queue.next_wake(10.0) == 10.25
    assert start_all(queue, 10.2) == []
    assert len(start_all(queue, 10.25)) == 1


def test_idle_time_saves_up_no_burst() -> None:
    queue = admission(qps={"modal": 4.0})
    add(queue, 0, tasks=3, provider="modal")
    start_all(queue, 0.0)
    assert len(start_all(queue, 100.0)) == 1


def test_a_request_that_waits_for_a_creation_token_holds_nothing_back() -> None:
    queue = admission(2, qps={"modal": 1.0})
    add(queue, 0, tasks=2, provider="modal")
    add(queue, 1, tasks=2)
    assert places(start_all(queue)) == [(0, 0, 1), (1, 0, 1)]


def test_what_opens_no_environment_takes_no_creation_token() -> None:
    queue = admission(qps={"modal": 1.0})
    queue.open_request(0, provider="modal", opens_environment=False, overlap=True, k=1)
    queue.add_tasks(0, 5, 0.0)
    assert len(start_all(queue)) == 5


# Retries


def test_a_retry_waits_outside_any_slot() -> None:
    queue = admission(1, providers={"docker": 1})
    add(queue, 0, tasks=2)
    (first,) = start_all(queue)
    assert queue.retry(first, ready_at=9.0, now=1.0)
    assert places(start_all(queue, 1.0)) == [(0, 1, 1)]


def test_a_retry_keeps_its_place_before_what_its_request_has_not_begun() -> None:
    queue = admission(1)
    add(queue, 0, tasks=3)
    (first,) = start_all(queue)
    queue.retry(first, ready_at=1.5, now=1.0)
    (second,) = start_all(queue, 1.0)
    queue.finish(second, 2.0)
    (again,) = start_all(queue, 2.0)
    assert (again.task, again.execution, again.queued_since) == (0, 2, 1.5)


def test_the_end_of_a_backoff_is_a_time_to_wake() -> None:
    queue = admission()
    add(queue, 0, tasks=1)
    (first,) = start_all(queue)
    queue.retry(first, ready_at=7.0, now=1.0)
    assert (start_all(queue, 1.0), queue.next_wake(1.0)) == ([], 7.0)
    assert queue.blocked_on(0) == "backoff"
    queue.drop_attempts(0, 0)
    assert queue.next_wake(1.0) is None


def test_a_closed_request_takes_no_retry() -> None:
    queue = admission()
    add(queue, 0, tasks=1)
    (first,) = start_all(queue)
    queue.close_request(0)
    assert not queue.retry(first, ready_at=2.0, now=1.0)
    assert (queue.pending(0), queue.running(0)) == (0, 0)


# Dropping and closing


def test_dropping_a_task_takes_what_does_not_run_and_leaves_the_rest() -> None:
    queue = admission(2)
    add(queue, 0, tasks=2, k=3)
    start_all(queue)
    assert queue.drop_attempts(0, 0) == [3]
    assert queue.drop_attempts(0, 0) == []
    assert queue.pending(0) == 3


def test_a_task_not_reached_yet_can_be_dropped() -> None:
    queue = admission()
    add(queue, 0, tasks=3, k=1)
    assert queue.drop_attempts(0, 1) == [1]
    assert places(start_all(queue)) == [(0, 0, 1), (0, 2, 1)]


def test_closing_a_request_gives_what_will_not_start_and_lets_the_running_go_on() -> None:
    queue = admission(2)
    add(queue, 0, tasks=2, k=2)
    first, second = start_all(queue)
    queue.retry(first, ready_at=5.0, now=1.0)
    assert list(queue.close_request(0)) == [(0, 1), (1, 1), (1, 2)]
    assert list(queue.close_request(0)) == []
    assert start_all(queue, 9.0) == []
    queue.finish(second, 9.0)
    assert queue.running(0) == 0


def test_closing_before_the_tasks_are_loaded_lets_none_of_them_start() -> None:
    queue = admission()
    queue.open_request(0, provider="docker", opens_environment=True, overlap=True, k=1)
    queue.close_request(0)
    queue.add_tasks(0, 5, 1.0)
    assert (start_all(queue, 1.0), queue.pending(0)) == ([], 0)


# Costs of deciding


class Counting(Admission):
    looks = 0

    def _missing(self, state: Any, now: float) -> Any:
        self.looks += 1
        return super()._missing(state, now)


@pytest.mark.parametrize(
    "limit",
    [{"providers": {"docker": 1}}, {"usd": 1.0, "reserve_usd": 1.0}, {"qps": {"docker": 0.001}}],
    ids=["provider", "dollars", "creation rate"],
)
def test_a_decision_looks_at_none_of_the_requests_that_are_blocked(limit: Any) -> None:
    queue = admission(make=Counting, **limit)
    assert isinstance(queue, Counting)
    for request in range(500):
        add(queue, request, tasks=10)
    add(queue, 500, tasks=1_000, provider="modal", spends=False)
    running = start_all(queue)
    assert len(running) == 100
    queue.looks = 0
    for now in range(200):
        ended = running.pop(1 if running[0].request == 0 else 0)
        queue.finish(ended, now * 0.001)
        running += start_all(queue, now * 0.001)
    assert queue.looks <= 200 * 3


def test_a_hundred_thousand_planned_attempts_take_no_memory() -> None:
    import tracemalloc

    tracemalloc.start()
    queue = admission(32)
    for request in range(10):
        add(queue, request, tasks=2_000, k=5, overlap=request % 2 == 0)
    starts = start_all(queue)
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(queue.pending, range(10))) == 100_000 - len(starts)
    assert used_bytes < 200_000


def test_memory_does_not_grow_with_what_has_ended() -> None:
    queue = admission(2)
    add(queue, 0, tasks=500, k=2, overlap=False)
    while (start := queue.start_next(0.0)) is not None:
        queue.finish(start, 0.0)
    state = queue._requests[0].queue
    assert sys.getsizeof(state._open) < 2_000  # type: ignore[attr-defined]
    assert len(state._open) == 0  # type: ignore[attr-defined]


# Misuse


def test_an_execution_ends_only_once() -> None:
    queue = admission()
    add(queue, 0, tasks=1)
    (start,) = start_all(queue)
    queue.finish(start, 1.0)
    with pytest.raises(Misuse, match="does not run"):
        queue.finish(start, 1.0)


def test_a_request_is_opened_and_loaded_only_once() -> None:
    queue = admission()
    add(queue, 0, tasks=1)
    with pytest.raises(Misuse, match="opened before"):
        add(queue, 0, tasks=1)
    with pytest.raises(Misuse, match="loaded before"):
        queue.add_tasks(0, 1, 0.0)


def test_a_task_concurrency_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        admission(0)
