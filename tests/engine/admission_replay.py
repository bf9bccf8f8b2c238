"""Plays a workload through an admission and through the model, side by side.

It knows nothing of how either works, nor of what might be wrong: it compares every decision,
counts every limit for itself, and adds the ledger up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from steelyard.engine.admission import Admission, BudgetLimits, Limits, Start
from tests.engine.admission_model import AdmissionModel


@dataclass(frozen=True)
class PlannedRequest:
    provider: str
    opens_environment: bool
    overlap: bool
    k: int
    tasks: int
    loaded_at: float
    budget: BudgetLimits
    spends: bool
    stops_at_success: bool
    skips: frozenset[tuple[int, int]]
    """Attempts that need not run, as (task, attempt): reused ones."""
    max_running: int | None = None

    def attempts_of(self, task: int) -> list[int]:
        return [a for a in range(1, self.k + 1) if (task, a) not in self.skips]

    @property
    def attempts(self) -> list[tuple[int, int]]:
        return [(task, a) for task in range(self.tasks) for a in self.attempts_of(task)]


@dataclass(frozen=True)
class Control:
    at: float
    name: str
    argument: Any = None


@dataclass(frozen=True)
class Workload:
    limits: Limits
    budget: BudgetLimits
    requests: tuple[PlannedRequest, ...]
    controls: tuple[Control, ...]
    seed: int
    dearest: int
    """The most that an execution costs, in quarters of a dollar."""

    def fate(self, start: Start) -> Fate:
        random = Random(
            f"{self.seed}/{start.request}/{start.task}/{start.attempt}/{start.execution}"
        )
        return Fate(
            duration_s=random.choice((0.0, 0.25, 1.0, 1.0, 3.0)),
            usd=random.choice((None, *(quarter / 4 for quarter in range(self.dearest + 1)))),
            tokens=random.choice((None, 0, 3, 10)),
            retry_after_s=random.choice((0.0, 0.5, 2.0))
            if start.execution < 3 and random.random() < 0.25
            else None,
            is_success=random.random() < 0.4,
        )


@dataclass(frozen=True)
class Fate:
    """What becomes of one execution."""

    duration_s: float
    usd: float | None
    tokens: int | None
    retry_after_s: float | None
    is_success: bool


PROVIDERS = ("docker", "modal")
TIMES = st.sampled_from((0.0, 0.25, 1.0, 2.5, 4.0))
BUDGETS = st.builds(
    BudgetLimits,
    usd=st.none() | st.integers(0, 24).map(lambda quarters: quarters / 4),
    tokens=st.none() | st.integers(0, 60),
    reserve_usd=st.none() | st.sampled_from((0.0, 0.5, 2.0)),
)


@st.composite
def planned_requests(draw: st.DrawFn) -> PlannedRequest:
    k = draw(st.integers(1, 3))
    tasks = draw(st.integers(0, 5))
    places = st.tuples(st.integers(0, 4), st.integers(1, 3))
    return PlannedRequest(
        provider=draw(st.sampled_from(PROVIDERS)),
        opens_environment=draw(st.booleans()),
        overlap=draw(st.booleans()),
        k=k,
        tasks=tasks,
        loaded_at=draw(st.just(0.0) | TIMES),
        budget=draw(st.just(BudgetLimits()) | BUDGETS),
        spends=draw(st.sampled_from((True, True, True, False))),
        stops_at_success=draw(st.booleans()),
        skips=draw(st.just(frozenset()) | st.frozensets(places, max_size=4)),
        max_running=draw(st.none() | st.integers(1, 3)),
    )


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    requests = tuple(draw(st.lists(planned_requests(), min_size=1, max_size=5)))
    controls = st.one_of(
        st.builds(Control, TIMES, st.just("set_task_concurrency"), st.integers(1, 6)),
        st.builds(
            Control,
            TIMES,
            st.just("set_provider_limit"),
            st.tuples(st.sampled_from(PROVIDERS), st.integers(0, 3)),
        ),
        st.builds(Control, TIMES, st.sampled_from(("pause", "resume"))),
        st.builds(Control, TIMES, st.just("close_request"), st.integers(0, len(requests) - 1)),
    )
    return Workload(
        limits=Limits(
            draw(st.integers(1, 6)),
            {name: draw(st.integers(0, 3)) for name in PROVIDERS},
            {name: draw(st.sampled_from((0.0, 0.0, 2.0, 4.0))) for name in PROVIDERS},
        ),
        budget=draw(st.just(BudgetLimits()) | BUDGETS),
        requests=requests,
        controls=(*draw(st.lists(controls, max_size=4)), Control(5.0, "resume")),
        seed=draw(st.integers(0, 1_000)),
        dearest=draw(st.sampled_from((1, 8))),
    )


Make = Callable[..., Admission]


class Replay:
    """One workload's way through; every check is an assertion."""

    def __init__(self, workload: Workload, make: Make = Admission) -> None:
        self.workload = workload
        limits, budget = workload.limits, workload.budget
        self.real = make(limits, budget=budget)
        self.model = AdmissionModel(
            limits.task_concurrency,
            dict(limits.provider_limits),
            dict(limits.env_open_qps),
            budget.usd,
            budget.tokens,
            budget.reserve_usd,
        )
        for number, planned in enumerate(workload.requests):
            self._open(number, planned)
        self.task_concurrency = limits.task_concurrency
        self.provider_limits = dict(limits.provider_limits)
        self.now = 0.0
        self._settled_until = -1.0
        self.running: dict[Start, tuple[float, int]] = {}
        self.starts: list[tuple[float, Start]] = []
        self.opened_at: dict[str, float] = {}
        self.ended: Counter[tuple[int, int, int]] = Counter()
        self.spent_usd = 0.0

    def run(self) -> list[tuple[float, Start]]:
        """Play it to the end; give what started, and when."""
        self._settle_now()
        while (at := self._next_time()) is not None:
            self.now = at
            self._end_what_is_due()
            self._settle_now()
        self._check_ledger()
        return self.starts

    def _open(self, number: int, planned: PlannedRequest) -> None:
        shared: dict[str, Any] = {
            "provider": planned.provider,
            "opens_environment": planned.opens_environment,
            "overlap": planned.overlap,
            "k": planned.k,
            "spends": planned.spends,
            "max_running": planned.max_running,
        }
        budget = planned.budget
        self.real.open_request(number, **shared, budget=budget)
        self.model.open_request(
            number,
            **shared,
            usd=budget.usd,
            tokens=budget.tokens,
            reserve_usd=budget.reserve_usd,
        )

    def _next_time(self) -> float | None:
        real, model = self.real.next_wake(self.now), self.model.next_time(self.now)
        assert model is None or (real is not None and real <= model), (
            f"at {self.now} the wake-up is {real}, but at {model} something can start"
        )
        assert real is None or real > self.now, "a wake-up that is due already would spin"
        times = [end for end, _ in self.running.values()]
        times += [at for at in self._scheduled() if at > self.now]
        times += [at for at in (real, model) if at is not None and at > self.now]
        return min(times, default=None)

    def _scheduled(self) -> list[float]:
        return [planned.loaded_at for planned in self.workload.requests] + [
            control.at for control in self.workload.controls
        ]

    def _settle_now(self) -> None:
        before = self._settled_until
        for number, planned in enumerate(self.workload.requests):
            if before < planned.loaded_at <= self.now:
                self.real.add_tasks(
                    number, planned.tasks, self.now, attempts_of=planned.attempts_of
                )
                self.model.add_tasks(number, planned.attempts)
                if planned.tasks and number in self.closed:
                    self._count(number, planned.attempts)
        for control in self.workload.controls:
            if before < control.at <= self.now:
                self._control(control)
        self._settled_until = self.now
        self._start_all()
        while hopeless := self.real.skipped_by_budget():
            for number in hopeless:
                assert self.model.is_hopeless(number), f"request {number} may still be paid"
                self._close(number)
            self._start_all()

    @property
    def closed(self) -> set[int]:
        return {n for n, request in self.model.requests.items() if request.is_closed}

    def _control(self, control: Control) -> None:
        if control.name == "close_request":
            self._close(control.argument)
        elif control.name == "set_task_concurrency":
            self.task_concurrency = self.model.task_concurrency = control.argument
            self.real.set_task_concurrency(control.argument)
        elif control.name == "set_provider_limit":
            provider, limit = control.argument
            self.provider_limits[provider] = self.model.provider_limits[provider] = limit
            self.real.set_provider_limit(provider, limit)
        else:
            self.model.is_paused = control.name == "pause"
            getattr(self.real, control.name)()

    def _close(self, number: int) -> None:
        left = self.model.close_request(number)
        assert sorted(self.real.close_request(number)) == left
        assert self.real.pending(number) == 0
        self._count(number, left)

    def _count(self, number: int, attempts: list[tuple[int, int]]) -> None:
        self.ended.update((number, task, attempt) for task, attempt in attempts)

    def _start_all(self) -> None:
        while True:
            start = self.real.start_next(self.now)
            expected = self.model.start_next(self.now)
            found = start and (start.request, start.task, start.attempt, start.execution)
            assert found == expected, f"at {self.now}: {found} starts, {expected} should"
            for number, request in self.model.requests.items():
                assert self.real.pending(number) == len(request.entries)
                assert self.real.running(number) == len(request.running)
            if start is None:
                return
            self.running[start] = (
                self.now + self.workload.fate(start).duration_s,
                len(self.starts),
            )
            self.starts.append((self.now, start))
            self._check_limits(start)

    def _check_limits(self, start: Start) -> None:
        assert len(self.running) <= self.task_concurrency
        planned = self.workload.requests[start.request]
        in_use = Counter(self.workload.requests[other.request].provider for other in self.running)
        limit = self.provider_limits[planned.provider]
        assert limit == 0 or in_use[planned.provider] <= limit
        qps = self.workload.limits.env_open_qps[planned.provider]
        if planned.opens_environment:
            last = self.opened_at.get(planned.provider)
            assert not qps or last is None or self.now - last >= 1 / qps
            self.opened_at[planned.provider] = self.now
        own = sum(other.request == start.request for other in self.running)
        assert planned.max_running is None or own <= planned.max_running
        if not planned.overlap:
            tasks = Counter((other.request, other.task) for other in self.running)
            assert tasks[start.request, start.task] == 1
        if self.workload.budget.usd is not None and planned.spends:
            reserved = sum(other.reserved_usd for other in self.running)
            assert self.spent_usd + reserved <= self.workload.budget.usd

    def _end_what_is_due(self) -> None:
        due = [(*when, start) for start, when in self.running.items() if when[0] <= self.now]
        for _, _, start in sorted(due, key=lambda entry: entry[:2]):
            del self.running[start]
            self._end(start, self.workload.fate(start))

    def _end(self, start: Start, fate: Fate) -> None:
        planned = self.workload.requests[start.request]
        place = (start.request, start.task, start.attempt)
        if planned.spends:
            self.spent_usd += start.reserved_usd if fate.usd is None else fate.usd
        cost = {"spent_usd": fate.usd, "spent_tokens": fate.tokens}
        if fate.retry_after_s is not None:
            ready_at = self.now + fate.retry_after_s
            waits = self.real.retry(start, ready_at, self.now, **cost)
            self.model.retry(*place, ready_at, fate.usd, fate.tokens)
            assert waits is (start.request not in self.closed)
            if not waits:
                self.ended[place] += 1
            return
        self.real.finish(start, self.now, **cost)
        self.model.finish(*place, fate.usd, fate.tokens)
        self.ended[place] += 1
        if planned.stops_at_success and fate.is_success:
            dropped = self.model.drop_attempts(start.request, start.task)
            assert self.real.drop_attempts(start.request, start.task) == dropped
            self._count(start.request, [(start.task, attempt) for attempt in dropped])

    def _check_ledger(self) -> None:
        planned = Counter(
            (number, task, attempt)
            for number, request in enumerate(self.workload.requests)
            for task, attempt in request.attempts
        )
        assert self.ended == planned, "every planned attempt ends exactly once"
