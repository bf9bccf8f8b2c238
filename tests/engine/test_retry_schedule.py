"""How much of the ideal schedule is kept where many executions are retried. A simulated clock.

What is retried, when it may start again and when it does is decided by the functions that the
driver asks; the same figure of the whole product is taken by `benchmarks/fairness.py`.
"""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

import pytest

from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.engine.admission import Admission, Limits, Start
from steelyard.engine.retries import ATTEMPT_BACKOFF, RetryPolicy, wait_s
from steelyard.engine.spec import ExecutionResult
from tests.engine.test_admission_mutations import HoldsASlotDuringBackoff

FAILED = ExecutionResult(
    Outcome.FAILED_FATAL, issues=(Issue.of(IssueCode.ENVIRONMENT_LOST, Phase.RUN, "lost"),)
)
SCORED = ExecutionResult(Outcome.SCORED)
TASKS, RETRIES = 1_500, 3
POLICY = RetryPolicy(RETRIES)


class Played:
    """One launch, played without waiting."""

    def __init__(
        self,
        *,
        slots: int,
        retried: float,
        seed: int,
        overlap: bool = True,
        k: int = 1,
        make: type[Admission] = Admission,
    ) -> None:
        self.slots = slots
        self.chance = Random(seed)
        self.retried = retried
        self.seed = seed
        self.work_s = 0.0
        self.executions = 0
        self.retries = 0
        self.ended = 0
        self.now = 0.0
        self.most_running = 0
        self.admission = make(Limits(slots))
        self.admission.open_request(0, provider="p", opens_environment=True, overlap=overlap, k=k)
        self.admission.add_tasks(0, TASKS // k, 0.0)
        self.running: list[tuple[float, int, Start]] = []
        self._run()

    @property
    def of_ideal(self) -> float:
        """The share of the slots' time that work filled, 1 where no slot was ever idle."""
        return self.work_s / (self.slots * self.now)

    def _run(self) -> None:
        while True:
            while (start := self.admission.start_next(self.now)) is not None:
                took_s = self.chance.uniform(5, 30)
                self.work_s += took_s
                self.executions += 1
                heappush(self.running, (self.now + took_s, self.executions, start))
            self.most_running = max(self.most_running, len(self.running))
            times = [at for at in (self.admission.next_wake(self.now),) if at is not None]
            times += [self.running[0][0]] if self.running else []
            times = [at for at in times if at > self.now]
            if not times:
                return
            self.now = min(times)
            while self.running and self.running[0][0] <= self.now:
                self._end(heappop(self.running)[2])

    def _end(self, start: Start) -> None:
        result = FAILED if self.chance.random() < self.retried else SCORED
        may = POLICY.may_retry(result, start.execution, stops_request=False)
        if may and POLICY.cause(result) is not None:
            self.retries += 1
            seed = f"{self.seed}/{start.task}/{start.attempt}/{start.execution}"
            ready_at = self.now + wait_s(ATTEMPT_BACKOFF, result, start.execution, seed=seed)
            self.admission.retry(start, ready_at, self.now)
        else:
            self.ended += 1
            self.admission.finish(start, self.now)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("slots", [4, 16])
def test_thirty_percent_retries_keep_all_but_a_twentieth_of_the_ideal_schedule(
    slots: int, seed: int
) -> None:
    played = Played(slots=slots, retried=0.3, seed=seed)
    assert played.ended == TASKS
    assert played.retries / played.executions == pytest.approx(0.3, abs=0.06)
    assert played.most_running == slots
    assert played.of_ideal >= 0.95


def test_it_holds_as_well_where_attempts_of_a_task_may_not_overlap() -> None:
    played = Played(slots=16, retried=0.3, seed=1, overlap=False, k=3)
    assert played.ended == TASKS
    assert played.of_ideal >= 0.95


def test_a_backoff_that_holds_its_slot_would_lose_more() -> None:
    played = Played(slots=4, retried=0.3, seed=1, make=HoldsASlotDuringBackoff)
    assert played.of_ideal < 0.95
