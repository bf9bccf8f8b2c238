"""Where a request stands, as observers and `progress.json` are told. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from steelyard.engine.events import Progress, Underway

if TYPE_CHECKING:
    from steelyard.engine.run_state import RunState

_SLOWEST_SHOWN: Final = 5


def progress_of(run: RunState, now_s: float) -> Progress:
    """Say where a request stands; `now_s` is monotonic."""
    flights = run.flights.values()
    return Progress(
        name=run.name,
        state="ended" if run.ended else "loading" if run.tasks is None else "running",
        planned=None if run.tasks is None else run.planned,
        running=len(flights),
        outcomes=dict(run.counts),
        phases=Counter(flight.phase.value for flight in flights),
        issues=dict(run.issue_counts),
        reused=run.reused,
        cost_usd=run.cost_usd,
        tokens=run.tokens,
        elapsed_s=(run.ended_s or now_s) - run.began_s,
        slowest=tuple(_slowest(run, now_s)),
        budget_usd=run.plan.budget.usd,
        retries=run.retried,
        waiting=len(run.unfinished) - sum(flight.start.execution > 1 for flight in flights),
    )


def _slowest(run: RunState, now_s: float) -> Iterator[Underway]:
    """The first of those under way: they stand in the order in which they began."""
    for flight in islice(run.flights.values(), _SLOWEST_SHOWN):
        assert run.tasks is not None  # noqa: S101 — attempts start after loading
        since_s = flight.began_s if flight.phase_since_s is None else flight.phase_since_s
        yield Underway(
            run.tasks[flight.start.task].id,
            flight.start.attempt,
            flight.phase.value,
            now_s - since_s,
            now_s - flight.began_s,
        )
