"""Short ways to set up admission, for its tests."""

from __future__ import annotations

from typing import Any

from steelyard.engine.admission import Admission, BudgetLimits, Limits, Start


def admission(
    concurrency: int = 100,
    *,
    providers: dict[str, int] | None = None,
    qps: dict[str, float] | None = None,
    make: type[Admission] = Admission,
    **budget: Any,
) -> Admission:
    return make(Limits(concurrency, providers or {}, qps or {}), budget=BudgetLimits(**budget))


def add(
    admission: Admission,
    request: int,
    tasks: int,
    *,
    k: int = 1,
    provider: str = "docker",
    overlap: bool = True,
    now: float = 0.0,
    **options: Any,
) -> None:
    admission.open_request(
        request, provider=provider, opens_environment=True, overlap=overlap, k=k, **options
    )
    admission.add_tasks(request, tasks, now)


def start_all(admission: Admission, now: float = 0.0) -> list[Start]:
    starts = []
    while (start := admission.start_next(now)) is not None:
        starts.append(start)
    return starts


def places(starts: list[Start]) -> list[tuple[int, int, int]]:
    return [(start.request, start.task, start.attempt) for start in starts]
