"""Limits are fair: a full provider costs the others nothing, a large claim has its turn.

Real admission, a simulated clock. The same figures of the whole product: `benchmarks/fairness.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from steelyard.engine.admission import Admission, BudgetLimits, Limits, Start
from tests.engine.test_admission_mutations import (
    HoldsASlotDuringBackoff,
    HoldsASlotWhileItsProviderIsFull,
    IgnoresDeclarationOrderOnWake,
    PassesAHeadThatIsBlockedOnDollars,
)

Make = Callable[..., Admission]
MOST_LOST = 0.02
RETRIES = 3


# -- one provider is limited -------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """One request's."""

    provider: str
    tasks: int
    retried: float = 0.0
    """The share of its executions that run again, after a backoff."""


@dataclass(frozen=True)
class Shared:
    """Some that share a limited provider, and others that do not."""

    slots: int
    limit: int
    limited: tuple[Work, ...]
    others: tuple[Work, ...]
    limited_first: bool
    seed: int


def works(provider: str, tasks: tuple[int, int], most: int) -> Any:
    return st.lists(
        st.builds(
            Work,
            st.just(provider),
            st.integers(*tasks),
            st.sampled_from((0.0, 0.0, 0.5)),
        ),
        min_size=1,
        max_size=most,
    ).map(tuple)


SHARED = st.integers(2, 12).flatmap(
    lambda slots: st.builds(
        Shared,
        st.just(slots),
        st.integers(1, slots - 1),
        works("limited", (1, 60), 3),
        works("free", (20, 60), 3),
        st.booleans(),
        st.integers(0, 10_000),
    )
)


def took_s(
    requests: list[tuple[int, Work]], slots: int, limits: dict[str, int], seed: int, make: Make
) -> dict[int, float]:
    """Play requests to their end: by number, how long each took."""
    admission = make(Limits(slots, limits))
    for place, (_, work) in enumerate(requests):
        admission.open_request(place, provider=work.provider, opens_environment=True,
                               overlap=True, k=1)  # fmt: skip
        admission.add_tasks(place, work.tasks, 0.0)
    ended: dict[int, float] = {}
    running: list[tuple[float, int, Start]] = []
    now, begun = 0.0, 0
    while True:
        while (start := admission.start_next(now)) is not None:
            begun += 1
            number = requests[start.request][0]
            chance = Random(f"{seed}/{number}/{start.task}/{start.execution}")
            heappush(running, (now + chance.uniform(0.5, 3), begun, start))
        wake = admission.next_wake(now)
        times = [at for at in (wake, *(one[0] for one in running[:1])) if at is not None]
        times = [at for at in times if at > now]
        if not times:
            return ended  # or stuck: then the others never end
        now = min(times)
        while running and running[0][0] <= now:
            start = heappop(running)[2]
            number, work = requests[start.request]
            chance = Random(f"{seed}/{number}/{start.task}/{start.execution}/again")
            if start.execution <= RETRIES and chance.random() < work.retried:
                admission.retry(start, now + chance.uniform(0, 20), now)
            else:
                admission.finish(start, now)
                ended[number] = now


def lost(shared: Shared, make: Make = Admission) -> float:
    """What share of their throughput the others lose to those of the limited provider.

    Alone they have the slots that the limited provider leaves them: what it may use is its own.
    """
    limited = [(100 + number, work) for number, work in enumerate(shared.limited)]
    others = list(enumerate(shared.others))
    both = [*limited, *others] if shared.limited_first else [*others, *limited]
    limits = {"limited": shared.limit}
    alone = took_s(others, shared.slots - shared.limit, limits, shared.seed, Admission)
    together = took_s(both, shared.slots, limits, shared.seed, make)
    alone_s = max(alone.values())
    together_s = max(together.get(number, float("inf")) for number, _ in others)
    return 1 - alone_s / together_s


def fair(make: Make, examples: int) -> Any:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=make is not Admission,
        database=None,
        phases=(Phase.generate,) if make is not Admission else tuple(Phase),
        report_multiple_bugs=False,
    )
    @given(SHARED)
    def others_lose_nothing(shared: Shared) -> None:
        assert lost(shared, make) < MOST_LOST

    return others_lose_nothing


def test_a_limited_provider_costs_the_others_less_than_a_fiftieth_of_their_throughput() -> None:
    fair(Admission, 60)()


@pytest.mark.parametrize(
    "mutation",
    [HoldsASlotWhileItsProviderIsFull, HoldsASlotDuringBackoff],
    ids=lambda mutation: mutation.__name__,
)
def test_an_unfair_admission_costs_them_more(mutation: type[Admission]) -> None:
    with pytest.raises(AssertionError):
        fair(mutation, 200)()


def test_others_whose_own_limits_leave_slots_over_lose_nothing_at_all() -> None:
    """Compared at the very same number of slots."""
    others = [(0, Work("free", 300)), (1, Work("modal", 200, 0.3))]
    limited = [(9, Work("limited", 400, 0.5))]
    limits = {"limited": 2, "free": 6, "modal": 6}
    alone = took_s(others, 16, limits, 1, Admission)
    together = took_s([*limited, *others], 16, limits, 1, Admission)
    assert {number: together[number] for number in alone} == alone


# -- a large claim -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Behind:
    """A request declared after the one with the large claim; it never runs dry."""

    provider: str
    reserves: int
    spends: bool


@dataclass(frozen=True)
class LargeClaim:
    usd: int
    """Of nine."""
    slots: int
    provider_limit: int
    behind: tuple[Behind, ...]
    asked_after: int
    """Releases before it is asked for."""
    seed: int


CLAIMS = st.builds(
    LargeClaim,
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(1, 3),
    st.lists(
        st.builds(Behind, st.sampled_from(("docker", "modal")), st.integers(1, 5), st.booleans()),
        min_size=1,
        max_size=4,
    ).map(tuple),
    st.integers(0, 12),
    st.integers(0, 10_000),
)


@dataclass
class Waited:
    """What had to be given back before the claim started."""

    in_flight: int
    """When it was asked for."""
    releases: int = 0
    """Of those."""
    late: int = 0
    """After all of them: of what it lacked then, a slot of its provider or of the pool."""
    order: list[Start] = field(default_factory=list)


def waited_for(claim: LargeClaim, make: Make = Admission) -> Waited:
    """Play until the claim starts; fails where it has not after a thousand releases."""
    random = Random(claim.seed)
    admission = make(Limits(claim.slots, {"docker": claim.provider_limit}),
                     budget=BudgetLimits(usd=9))  # fmt: skip
    admission.open_request(
        0, provider="docker", opens_environment=True, overlap=True, k=1,
        budget=BudgetLimits(reserve_usd=claim.usd),
    )  # fmt: skip
    for number, one in enumerate(claim.behind, start=1):
        admission.open_request(
            number, provider=one.provider, opens_environment=True, overlap=True, k=1,
            budget=BudgetLimits(reserve_usd=one.reserves), spends=one.spends,
        )  # fmt: skip
        admission.add_tasks(number, 100_000, 0.0)
    running: list[Start] = []
    before: list[Start] | None = None
    waited = Waited(0)
    for released in range(1_000):
        if released == claim.asked_after:
            admission.add_tasks(0, 1, 0.0)
            before = list(running)
            waited.in_flight = len(before)
        while (start := admission.start_next(0.0)) is not None:
            if start.request == 0:
                return waited
            running.append(start)
        if not running:
            break
        # Whoever was there before, or whoever came later: in any order.
        ended = running.pop(random.randrange(len(running)))
        if before is not None:
            docker = {n for n, one in enumerate(claim.behind, 1) if one.provider == "docker"}
            full = sum(one.request in docker for one in running) + (ended.request in docker)
            if ended in before:
                before.remove(ended)
                waited.releases += 1
            elif not before and (ended.request in docker or full < claim.provider_limit):
                waited.late += 1
        admission.finish(ended, 0.0, spent_usd=0.0)
    raise AssertionError(f"it has not started after {released} releases")


def bounded(make: Make, examples: int) -> Any:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=make is not Admission,
        database=None,
        phases=(Phase.generate,) if make is not Admission else tuple(Phase),
        report_multiple_bugs=False,
    )
    @given(CLAIMS)
    def starts_in_time(claim: LargeClaim) -> None:
        waited = waited_for(claim, make)
        assert waited.releases <= waited.in_flight
        assert waited.late <= 1

    return starts_in_time


def test_a_large_claim_starts_once_those_in_flight_have_ended_and_one_slot_more_is_free() -> None:
    """n + 1 releases, n of them executions in flight when it was asked for, whatever comes
    behind it. Those that can start without what it waits for may do so meanwhile."""
    bounded(Admission, 200)()


class PromisesNothingWhileItsProviderIsFull(Admission):
    """The alternative that `docs/design/admission.md` rejects."""

    def _missing(self, state: Any, now: float) -> Any:
        missing = super()._missing(state, now)
        if state.money is not None and missing is state.provider.slots:
            self._usd.ahead.set(state.index, 0)
        return missing


@pytest.mark.parametrize(
    "mutation",
    [
        PassesAHeadThatIsBlockedOnDollars,
        IgnoresDeclarationOrderOnWake,
        PromisesNothingWhileItsProviderIsFull,
    ],
    ids=lambda mutation: mutation.__name__,
)
def test_an_admission_that_lets_others_pass_makes_it_wait_longer(
    mutation: type[Admission],
) -> None:
    with pytest.raises(AssertionError):
        bounded(mutation, 1_500)()
