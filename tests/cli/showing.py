"""Launches as the live view sees them, for its tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.cli.pace import Paces
from steelyard.cli.screen import RequestView, View
from steelyard.components.issues import Outcome
from steelyard.engine.budget import NO_SPENDING, BudgetStanding
from steelyard.engine.events import Progress, Underway

SLOWEST = (
    Underway("task-17", 1, "run", 100.0, 123.0),
    Underway("ta\u202esk 日本", 2, "evaluate", 5, 45),
)


def progress(name: str = "alpha", **changes: Any) -> Progress:
    values: dict[str, Any] = {
        "name": name,
        "state": "running",
        "planned": 300,
        "running": 4,
        "outcomes": {Outcome.SCORED: 112, Outcome.FAILED_FATAL: 5, Outcome.SKIPPED_PASSED: 3},
        "phases": {"run": 4},
        "issues": {"model_unavailable": 3, "agent_timed_out": 2},
        "reused": 3,
        "cost_usd": 0.1234,
        "elapsed_s": 700.0,
        "slowest": SLOWEST,
    }
    return Progress(**(values | changes))


def waiting(name: str) -> Progress:
    return progress(name, running=0, outcomes={}, issues={}, slowest=(), reused=0, cost_usd=0.0)


def loading(name: str) -> Progress:
    return progress(
        name, state="loading", planned=None, running=0, outcomes={}, issues={}, slowest=(), reused=0
    )


def view(snapshot: Sequence[Progress], **changes: Any) -> View:
    paces = Paces()
    standings = paces.see(snapshot)
    budget = changes.pop("request_budget", NO_SPENDING)
    waits_for = changes.pop("waits_for", "task concurrency")
    requests = tuple(
        RequestView(request, standings[request.name], waits_for, budget) for request in snapshot
    )
    values: dict[str, Any] = {"concurrency": 4, "has_keys": True}
    return View(requests, paces.overall(snapshot), **(values | changes))


BUDGET = BudgetStanding(0.12, 1.0, 5_000, 200_000)
VIEWS = {
    "one": view([progress()], request_budget=BUDGET),
    "three": view([progress(), waiting("beta-with-a-longer-name"), loading("gamma")]),
    "sixty-four": view(
        [progress(f"r{n}") if n % 2 else waiting(f"r{n}") for n in range(64)],
        budget=BudgetStanding(7.5, 20.0),
    ),
    "paused": view([progress()], state="paused", waits_for="paused", shows_help=True),
    "question": view([progress(), waiting("beta")], question="drain: what runs ends?"),
    "no-keys": view([progress(cost_usd=None)], has_keys=False, concurrency=None),
}
