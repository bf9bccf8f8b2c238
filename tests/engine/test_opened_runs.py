"""Which request is opened next, by itself: no folder, no loop."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from steelyard.engine.opened_runs import AHEAD, ALL_AT_ONCE, BESIDE, OpenedRuns
from steelyard.engine.plan import Plan
from steelyard.engine.run_state import RunState


def plan(providers: list[str], at_most: int | None = None) -> Plan:
    """As much of a plan as is looked at."""
    requests = [
        SimpleNamespace(
            request=SimpleNamespace(name=f"r{number}"),
            spec=SimpleNamespace(environment=SimpleNamespace(id=provider)),
        )
        for number, provider in enumerate(providers)
    ]
    runtime = SimpleNamespace(max_concurrent_requests=at_most)
    whole = SimpleNamespace(requests=requests, orchestration=SimpleNamespace(runtime=runtime))
    return cast(Plan, whole)


def open_all(runs: OpenedRuns, ready: set[int], slots: int = 32) -> list[int]:
    """Open what is due; what is opened is ready to start until it is taken out of `ready`."""
    opened = []
    while (index := runs.next_to_open(ready.__contains__, slots)) is not None:
        runs._opening.pop(index)
        running: Any = SimpleNamespace(ended=False, stop=None, tasks=())
        runs.going[index] = cast(RunState, running)
        ready.add(index)
        opened.append(index)
    return opened


def test_a_few_are_opened_ahead_in_declaration_order() -> None:
    runs = OpenedRuns(plan(["docker"] * 100))
    assert open_all(runs, set()) == list(range(AHEAD))


def test_whoever_has_nothing_left_to_start_makes_room_for_the_next() -> None:
    runs, ready = OpenedRuns(plan(["docker"] * 100)), set[int]()
    open_all(runs, ready)
    ready -= {0, 3}
    assert open_all(runs, ready) == [AHEAD, AHEAD + 1]


def test_what_waits_for_one_provider_does_not_hold_back_another() -> None:
    runs, ready = OpenedRuns(plan(["docker"] * 50 + ["modal"] * 2 + ["docker"])), set[int]()
    assert open_all(runs, ready) == [*range(AHEAD), 50, 51]


def test_a_request_that_was_stopped_or_has_ended_is_not_at_hand() -> None:
    runs, ready = OpenedRuns(plan(["docker"] * 100)), set[int]()
    open_all(runs, ready)
    going = cast(dict[int, Any], runs.going)
    going[0].stop, going[1].ended = "why", True
    assert open_all(runs, ready) == [AHEAD, AHEAD + 1]


def test_few_requests_without_a_bound_are_not_opened_late() -> None:
    assert not OpenedRuns(plan(["docker"] * ALL_AT_ONCE)).opens_late
    assert OpenedRuns(plan(["docker"] * (ALL_AT_ONCE + 1))).opens_late
    assert OpenedRuns(plan(["docker"], at_most=1)).opens_late


@given(
    providers=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=150),
    at_most=st.none() | st.integers(1, 20),
    slots=st.integers(1, 12),
    data=st.data(),
)
def test_no_bound_is_passed_and_all_are_opened_in_the_end(
    providers: list[str], at_most: int | None, slots: int, data: st.DataObject
) -> None:
    runs, ready = OpenedRuns(plan(providers, at_most)), set[int]()
    seen: list[int] = []
    for _ in range(10 * len(providers)):
        seen += open_all(runs, ready, slots)
        going = runs.going
        assert len(going) <= slots + BESIDE
        assert at_most is None or len(going) <= at_most
        at_hand = Counter(providers[index] for index in going if index in ready)
        assert all(count <= AHEAD for count in at_hand.values())
        if not going:
            break
        # Something starts its last attempt, or a request ends.
        index = data.draw(st.sampled_from(sorted(going)))
        if index in ready and data.draw(st.booleans()):
            ready.discard(index)
        else:
            ready.discard(index)
            del going[index]
    else:
        raise AssertionError("they never end")
    assert sorted(seen) == list(range(len(providers)))
    for name in set(providers):
        of = [index for index in seen if providers[index] == name]
        assert of == sorted(of), "of one provider, in declaration order"
