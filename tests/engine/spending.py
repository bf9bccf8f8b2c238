"""Launches that spend, played on a simulated clock: real admission, allowance, retries, settlement.

The world here knows what everything truly costs and counts for itself; no network, no waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil
from random import Random
from typing import Any

from hypothesis import strategies as st

from steelyard.components.issues import AttemptFault, Issue, IssueCode, Outcome, Phase
from steelyard.components.values import Usage
from steelyard.engine.admission import Admission, BudgetLimits, Limits, Start
from steelyard.engine.retries import ATTEMPT_BACKOFF, RetryPolicy, has_allowance, wait_s
from steelyard.engine.settlement import settled
from steelyard.engine.spec import ExecutionResult
from steelyard.models.allowance import NO_CHARGE, Allowance, Charge

Settle = Callable[..., tuple[float, int]]
PILOTS = 4
REMEMBERED = 256


@dataclass(frozen=True)
class Spender:
    """One request: how much of it there is, what its attempts do, what they may spend."""

    provider: str
    tasks: int
    k: int
    overlap: bool
    budget: BudgetLimits
    attempt_usd: float | None
    attempt_tokens: int | None
    calls: int
    """Of the agent, at most, in an execution."""
    judge_calls: int
    fails: float
    """How likely an execution ends FATAL; what it spent is spent."""
    retries: int
    spends: bool = True


@dataclass(frozen=True)
class Spree:
    """A whole launch."""

    slots: int
    provider_limit: int
    budget: BudgetLimits
    requests: tuple[Spender, ...]
    dearest: int
    """The most that a call costs, in quarters of a dollar."""
    unknown: float
    """How likely a call's usage never comes."""
    priceless: float
    """How likely nobody can tell what a call costs, not even by its size."""
    seed: int


AMOUNTS = st.none() | st.integers(0, 60).map(lambda quarters: quarters / 4)
TOKENS = st.none() | st.integers(0, 400)
BUDGETS = st.builds(
    BudgetLimits,
    usd=AMOUNTS,
    tokens=TOKENS,
    reserve_usd=st.none() | st.sampled_from((0.0, 0.5, 2.0, 9.0)),
)
SPENDERS = st.builds(
    Spender,
    provider=st.sampled_from(("docker", "modal")),
    tasks=st.integers(0, 8),
    k=st.integers(1, 3),
    overlap=st.booleans(),
    budget=st.just(BudgetLimits()) | BUDGETS,
    attempt_usd=st.none() | st.sampled_from((0.0, 0.5, 3.0)),
    attempt_tokens=st.none() | st.sampled_from((0, 10, 40)),
    calls=st.integers(0, 4),
    judge_calls=st.integers(0, 3),
    fails=st.sampled_from((0.0, 0.3, 0.9)),
    retries=st.integers(0, 3),
    spends=st.sampled_from((True, True, True, False)),
)
SPREES = st.builds(
    Spree,
    slots=st.integers(1, 10),
    provider_limit=st.integers(0, 3),
    budget=BUDGETS,
    requests=st.lists(SPENDERS, min_size=1, max_size=4).map(tuple),
    dearest=st.sampled_from((1, 4, 12)),
    unknown=st.sampled_from((0.0, 0.2)),
    priceless=st.sampled_from((0.0, 0.1)),
    seed=st.integers(0, 10_000),
)


@dataclass
class Ledger:
    """One pool, as the world counts it."""

    limit: float | None
    booked: float = 0.0
    reserved: float = 0.0
    in_flight: dict[Start, tuple[float, float]] = field(default_factory=dict)
    """What each reserved, and what it will be booked with."""
    excess: float = 0.0
    """At the last start: by how much those then in flight cost above what they reserved."""

    def start(self, start: Start, reserved: float, cost: float) -> None:
        self.reserved += reserved
        self.in_flight[start] = (reserved, cost)
        if self.limit is not None:
            assert self.booked + self.reserved <= self.limit, "it starts beyond the limit"
            assert self.limit > self.booked, "it starts though all is spent"
        self.excess = sum(max(0.0, cost - held) for held, cost in self.in_flight.values())

    def end(self, start: Start, booked: float) -> None:
        self.reserved -= self.in_flight.pop(start)[0]
        self.booked += booked

    def could_pay(self, need: float) -> bool:
        """If all that is in flight cost nothing."""
        return self.limit is None or (self.limit > self.booked and need <= self.limit - self.booked)


def percentile_95(costs: list[float], initial: float | None) -> float:
    """By nearest rank, of the latest; nothing is known without any."""
    known = [cost for cost in costs if cost][-REMEMBERED:]
    if not known:
        return initial or 0.0
    return sorted(known)[ceil(0.95 * len(known)) - 1]


class Played:
    """One launch's way to its end; every check is an assertion."""

    def __init__(
        self,
        spree: Spree,
        make: Callable[..., Admission] = Admission,
        settle: Settle = settled,
    ) -> None:
        self.spree = spree
        self.settle = settle
        limits = Limits(spree.slots, {"docker": spree.provider_limit})
        self.admission = make(limits, budget=spree.budget)
        self.now = 0.0
        self.ends: list[tuple[float, int, Start, ExecutionResult]] = []
        self.numbers = 0
        self.ended: Counter[tuple[int, int, int]] = Counter()
        self.outcomes: Counter[Outcome] = Counter()
        self.before: dict[tuple[int, int, int], Charge] = {}
        self.costs: dict[int, list[tuple[float, float]]] = {}
        self.unpaid: set[int] = set()
        self.usd = [Ledger(spree.budget.usd)]
        self.tokens = [Ledger(spree.budget.tokens)]
        """The orchestration's first, then each request's own."""
        for number, one in enumerate(spree.requests):
            self.admission.open_request(
                number,
                provider=one.provider,
                opens_environment=True,
                overlap=one.overlap,
                k=one.k,
                budget=one.budget,
                spends=one.spends,
            )
            self.admission.add_tasks(number, one.tasks, 0.0)
            self.usd.append(Ledger(one.budget.usd))
            self.tokens.append(Ledger(one.budget.tokens))
            self.costs[number] = []
        self._run()
        self._check_the_end()

    # -- the world ---------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._start_all()
            while self._skip_hopeless():
                self._start_all()
            wake = self.admission.next_wake(self.now)
            times = [at for at in (wake, *(end[0] for end in self.ends[:1])) if at is not None]
            if not times:
                return
            self.now = max(self.now, min(times))
            while self.ends and self.ends[0][0] <= self.now:
                _, _, start, result = heappop(self.ends)
                self._end(start, result)

    def _start_all(self) -> None:
        while (start := self.admission.start_next(self.now)) is not None:
            result = self._executed(start)
            took_s = self._chance(start).choice((0.0, 0.5, 1.0, 7.0))
            self.numbers += 1
            heappush(self.ends, (self.now + took_s, self.numbers, start, result))
            if not self.spree.requests[start.request].spends:
                continue
            usd, tokens = settled(start, result.charged, unknown_is_free=False)
            for pool in (self.usd[0], self.usd[start.request + 1]):
                pool.start(start, start.reserved_usd, usd)
            for pool in (self.tokens[0], self.tokens[start.request + 1]):
                pool.start(start, start.reserved_tokens, tokens)
            self._check_pilot(start)

    def _executed(self, start: Start) -> ExecutionResult:
        """Make the calls of an execution: the agent's, then the judge's, one allowance for all."""
        one = self.spree.requests[start.request]
        chance = self._chance(start)
        earlier = self.before.get((start.request, start.task, start.attempt), NO_CHARGE)
        allowance = Allowance(one.attempt_usd, one.attempt_tokens)
        allowance.charge_earlier(earlier)
        issues: list[Issue] = []
        if one.spends:
            for phase, calls in ((Phase.RUN, one.calls), (Phase.EVALUATE, one.judge_calls)):
                try:
                    for _ in range(chance.randint(0, calls)):
                        self._call(allowance, chance)
                except AttemptFault as fault:
                    issues.append(Issue.of(fault.code, phase, fault.message))
                    break
        if chance.random() < one.fails:
            issues.append(Issue.of(IssueCode.HARNESS_CRASHED, Phase.RUN, "as drawn"))
        spent = allowance.charge
        charge = Charge(spent.usd - earlier.usd, spent.tokens - earlier.tokens, spent.is_whole)
        fatal = any(issue.code is IssueCode.HARNESS_CRASHED for issue in issues)
        outcome = (
            Outcome.FAILED_FATAL if fatal else Outcome.FAILED_ERROR if issues else Outcome.SCORED
        )
        return ExecutionResult(outcome, issues=tuple(issues), charge=charge)

    def _call(self, allowance: Allowance, chance: Random) -> None:
        allowance.check()
        usd = chance.randint(0, self.spree.dearest) / 4
        tokens = chance.choice((1, 5, 20))
        if chance.random() < self.spree.priceless:
            allowance.spend(Usage(tokens, requests=1, cost_usd=None))
        elif chance.random() < self.spree.unknown:
            unknown = Usage(requests=1, cost_usd=None)
            allowance.spend(unknown, Usage(tokens, cost_usd=usd))
        else:
            allowance.spend(Usage(tokens, requests=1, cost_usd=usd))

    def _end(self, start: Start, result: ExecutionResult) -> None:
        one = self.spree.requests[start.request]
        place = (start.request, start.task, start.attempt)
        usd, tokens = self.settle(start, result.charged, unknown_is_free=False)
        if one.spends:
            true_usd, true_tokens = settled(start, result.charged, unknown_is_free=False)
            for pool in (self.usd[0], self.usd[start.request + 1]):
                pool.end(start, true_usd)
            for pool in (self.tokens[0], self.tokens[start.request + 1]):
                pool.end(start, true_tokens)
            self.costs[start.request].append((true_usd, true_tokens))
            self._check_attempt(one, place, result)
        else:
            usd, tokens = 0.0, 0
        ready_at = self._retry_at(start, result)
        if ready_at is None:
            self.admission.finish(start, self.now, spent_usd=usd, spent_tokens=tokens)
        elif self.admission.retry(start, ready_at, self.now, spent_usd=usd, spent_tokens=tokens):
            self.before[place] = self.before.get(place, NO_CHARGE) + result.charged
            return
        self.before.pop(place, None)
        self.ended[place] += 1
        self.outcomes[result.outcome] += 1

    def _retry_at(self, start: Start, result: ExecutionResult) -> float | None:
        """As the driver decides, by the same functions."""
        one = self.spree.requests[start.request]
        policy = RetryPolicy(one.retries)
        if not policy.may_retry(result, start.execution, stops_request=False):
            return None
        place = (start.request, start.task, start.attempt)
        spent = self.before.get(place, NO_CHARGE) + result.charged
        if not has_allowance(spent, one.attempt_usd, one.attempt_tokens):
            return None
        if policy.cause(result) is None:
            return None
        seed = f"{self.spree.seed}/{place}/{start.execution}"
        return self.now + wait_s(ATTEMPT_BACKOFF, result, start.execution, seed=seed)

    def _skip_hopeless(self) -> bool:
        hopeless = self.admission.skipped_by_budget()
        for number in hopeless:
            self._check_hopeless(number)
            self.unpaid.add(number)
            for task, attempt in self.admission.close_request(number):
                self.ended[number, task, attempt] += 1
                is_retry = self.before.pop((number, task, attempt), None) is not None
                outcome = Outcome.FAILED_FATAL if is_retry else Outcome.SKIPPED_BUDGET
                self.outcomes[outcome] += 1
        return bool(hopeless)

    def _chance(self, start: Start) -> Random:
        place = f"{start.request}/{start.task}/{start.attempt}/{start.execution}"
        return Random(f"{self.spree.seed}/{place}")

    # -- what must hold ----------------------------------------------------------------------

    def _check_pilot(self, start: Start) -> None:
        """While nothing is known of a request's costs, few of it run unreserved."""
        one, number = self.spree.requests[start.request], start.request
        for limit, own, reserve, pool in (
            (self.spree.budget.usd, one.budget.usd, self._reserve(number), self.usd),
            (self.spree.budget.tokens, one.budget.tokens, None, self.tokens),
        ):
            known = any(cost[pool is self.tokens] for cost in self.costs[number])
            if (limit is None and own is None) or known or reserve is not None:
                continue
            if len(self.costs[number]) < PILOTS:
                begun = len(pool[number + 1].in_flight) + len(self.costs[number])
                assert begun <= PILOTS, "nothing is known of its costs, and nothing reserved"

    def _check_attempt(
        self, one: Spender, place: tuple[int, int, int], result: ExecutionResult
    ) -> None:
        """An attempt passes its own bound by its last call and no more, retries and judge in."""
        spent = self.before.get(place, NO_CHARGE) + result.charged
        if one.attempt_usd is not None:
            assert spent.usd <= one.attempt_usd + self.spree.dearest / 4
        if one.attempt_tokens is not None:
            assert spent.tokens <= one.attempt_tokens + 20

    def _check_hopeless(self, number: int) -> None:
        """What is skipped could not be paid if all in flight cost nothing, and nothing of its own
        is in flight, whose cost could lower what it needs."""
        assert not any(end[2].request == number for end in self.ends), "its own may lower its need"
        assert self.spree.requests[number].spends, "it costs nothing"
        need_usd = percentile_95([cost[0] for cost in self.costs[number]], self._reserve(number))
        need_tokens = percentile_95([cost[1] for cost in self.costs[number]], None)
        could = all(pool.could_pay(need_usd) for pool in (self.usd[0], self.usd[number + 1]))
        could &= all(
            pool.could_pay(need_tokens) for pool in (self.tokens[0], self.tokens[number + 1])
        )
        assert not could, f"request {number} could still be paid"

    def _reserve(self, number: int) -> float | None:
        own = self.spree.requests[number].budget.reserve_usd
        return self.spree.budget.reserve_usd if own is None else own

    def _check_the_end(self) -> None:
        for pool in (*self.usd, *self.tokens):
            assert pool.reserved == 0
            if pool.limit is not None:
                # The bound that docs/budgets.md states.
                assert pool.booked <= pool.limit + pool.excess or pool.booked == 0
        for number in range(len(self.spree.requests)):
            assert self.admission.pending(number) == 0, "it waits for nothing, for ever"
            assert self.admission.running(number) == 0
        planned = Counter(
            (number, task, attempt)
            for number, one in enumerate(self.spree.requests)
            for task in range(one.tasks)
            for attempt in range(1, one.k + 1)
        )
        assert self.ended == planned, "every planned attempt ends exactly once"
        assert self.outcomes.total() == planned.total()
        self._check_admissions_own()

    def _check_admissions_own(self) -> None:
        """Nothing is reserved or promised any more, and what is spent is what was spent."""
        admission: Any = self.admission
        assert not admission._running
        for pool, ledger in ((admission._usd, self.usd[0]), (admission._tokens, self.tokens[0])):
            assert pool.reserved == 0
            assert pool.ahead.before(len(pool.ahead._values)) == 0
            if any(one.spends for one in self.spree.requests) and pool.limit is not None:
                assert pool.spent == (
                    round(ledger.booked * 10**9) if pool is admission._usd else ledger.booked
                )
        for number in range(len(self.spree.requests)):
            money = admission._requests[number].money
            if money is None:
                continue
            for pool, ledger in (
                (money._usd, self.usd[number + 1]),
                (money._tokens, self.tokens[number + 1]),
            ):
                assert pool.reserved == 0
                is_usd = pool is money._usd
                assert pool.spent == (round(ledger.booked * 10**9) if is_usd else ledger.booked)
