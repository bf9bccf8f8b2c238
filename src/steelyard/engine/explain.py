"""What a request would take from an earlier run: the same decisions as reuse, nothing run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.components.clock import SystemClock
from steelyard.config.errors import BadInput
from steelyard.config.resolve import Resolution
from steelyard.engine.opening import selected
from steelyard.engine.plan import RequestPlan, make_plan
from steelyard.results.documents import part
from steelyard.results.reuse import ReuseSource, choose_source, fired_limits


def explain(run_dir: Path, resolution: Resolution, request: str | None) -> dict[str, Any]:
    """Decide for every attempt of a request as `--reuse` of that run would.

    Raises:
        BadInput: the run cannot be read, or the orchestration is wrong or has no such request.
    """
    run_dir = run_dir.resolve()
    source = ReuseSource(run_dir)
    name = request or part(source.document, "request").get("name")
    plan = _request_plan(resolution, name)
    source = ReuseSource(run_dir, limits=fired_limits(plan.request))
    tasks = selected(plan.services.benchmark.load_tasks(), plan.request.execution)
    incompatible = None
    try:
        choose_source(run_dir.parent, plan.shape, run_dir.name)
    except BadInput as error:
        incompatible = error.problems[0].message
    attempts = []
    for task in tasks:
        generation, evaluation = plan.identities(task)
        for attempt in range(1, plan.k + 1):
            decision = source.decide(task.id, attempt, generation, evaluation, plan.retry_patterns)
            attempts.append(
                {
                    "task_id": task.id,
                    "attempt": attempt,
                    "decision": decision.kind.value,
                    "reason": decision.reason,
                    "warning": decision.warning,
                }
            )
    saved = part(source.document, "identities")
    present = plan.document["identities"]
    return {
        "schema": "explain-reuse/1",
        "source": str(run_dir),
        "request": plan.request.name,
        "incompatible": incompatible,
        "differences": {
            side: list(_differences(part(saved, side), present[side]))
            for side in ("generation", "evaluation")
        },
        "attempts": attempts,
        "warnings": list(source.warnings),
    }


def _request_plan(resolution: Resolution, name: Any) -> RequestPlan:
    names = [request.name for request in resolution.orchestration.requests]
    if name not in names:
        raise BadInput(
            f"the orchestration has no request {name!r}",
            remedy=f"name one with --request: {', '.join(names)}",
        )
    plan = make_plan(resolution, clock=SystemClock())
    return plan.requests[names.index(name)]


def _differences(was: Any, now: Any, path: str = "") -> Iterator[dict[str, Any]]:
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in sorted({*was, *now}):
            inner = f"{path}.{key}" if path else str(key)
            yield from _differences(was.get(key), now.get(key), inner)
    elif was != now:
        yield {"field": path, "was": was, "is": now}
