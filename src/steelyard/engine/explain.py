"""What a request would take from an earlier run: the same decisions as reuse, nothing run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.components.clock import SystemClock
from steelyard.config.errors import BadInput
from steelyard.config.resolve import Resolution
from steelyard.engine.carry_over import decide, source_chain
from steelyard.engine.opening import all_tasks, selected
from steelyard.engine.plan import make_plan
from steelyard.engine.request_plan import RequestPlan
from steelyard.results.documents import part, read_run_document
from steelyard.results.identity import identity_differences
from steelyard.results.reader import RunReader
from steelyard.results.reuse import choose_source, fired_limits


def explain(run_dir: Path, resolution: Resolution, request: str | None) -> dict[str, Any]:
    """Decide for every attempt of a request as `--reuse` of that run would.

    Raises:
        BadInput: the run cannot be read, or the orchestration is wrong or has no such request.
    """
    run_dir = run_dir.resolve()
    document = read_run_document(run_dir)
    name = request or part(document, "request").get("name")
    plan = _request_plan(resolution, name)
    chain = source_chain(run_dir, fired_limits(plan.request))
    tasks = selected(all_tasks(plan), plan.request.execution)
    incompatible = None
    try:
        choose_source(run_dir.parent, plan.shape, run_dir.name)
    except BadInput as error:
        incompatible = error.problems[0].message
    attempts = []
    present_of: dict[str, tuple[str, str]] = {}
    for task in tasks:
        identities = present_of[task.id] = plan.identities(task)
        for attempt in range(1, plan.k + 1):
            decision, _ = decide(plan, chain, task, attempt, identities)
            attempts.append(
                {
                    "task_id": task.id,
                    "attempt": attempt,
                    "decision": decision.kind.value,
                    "reason": decision.reason,
                    "warning": decision.warning,
                }
            )
    saved = part(document, "identities")
    present = plan.document()["identities"]
    differences = {
        side: list(identity_differences(part(saved, side), present[side]))
        for side in ("generation", "evaluation")
    }
    return {
        "schema": "explain-reuse/1",
        "source": str(run_dir),
        "request": plan.request.name,
        "incompatible": incompatible,
        "differences": differences,
        "content": _content(run_dir, present_of, differences),
        "attempts": attempts,
        "warnings": [warning for source in chain for warning in source.warnings],
    }


def _content(
    run_dir: Path,
    present_of: Mapping[str, tuple[str, str]],
    differences: Mapping[str, Sequence[Any]],
) -> dict[str, dict[str, int | None]]:
    """Count, for each side, the tasks that the run has records of, and those changed since.

    The second is None where the settings differ: an identity is of both, so nothing tells then.
    """
    compared: set[str] = set()
    changed: tuple[set[str], set[str]] = (set(), set())
    for record in RunReader(run_dir).records():
        present = present_of.get(record.task_id)
        if present is None or record.generation is None:
            continue
        compared.add(record.task_id)
        for tasks, was, now in zip(
            changed, (record.generation, record.evaluation), present, strict=True
        ):
            if was != now:
                tasks.add(record.task_id)
    return {
        side: {
            "compared_tasks": len(compared),
            "changed_tasks": None if differences[side] else len(tasks),
        }
        for side, tasks in zip(("generation", "evaluation"), changed, strict=True)
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
