"""What can be told of a request only once its tasks are loaded: that its harness does not fit them.

It runs all the same: some tasks of files can be answered in words.
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.components.benchmark import Task, TaskInput
from steelyard.engine.request_plan import RequestPlan


def unfit_warning(plan: RequestPlan, tasks: Sequence[Task]) -> str | None:
    """Say that the agent is to work on files and its harness never opens an environment.

    Looks at the first task alone: what holds for one mostly holds for all, and there may be many.
    """
    traits = plan.services.harness.traits
    if not traits.calls_model or traits.runs_model_code or traits.uses_gateway or not tasks:
        return None  # it works in the environment; `oracle`, `nop` and the like call no model
    try:
        shown = plan.services.benchmark.task_input(tasks[0], attempt=1, seed=1)
    except Exception:  # noqa: BLE001 — a stranger's code; the attempt itself says what is wrong
        return None
    what = _files_of(shown)
    if what is None:
        return None
    return (
        f"the harness {plan.request.harness.id!r} never works in an environment, and the task "
        f"{tasks[0].id!r} {what}: scores will be low for that alone; "
        "take a harness that does, such as `command`"
    )


def _files_of(shown: TaskInput) -> str | None:
    if shown.workspace:
        return "gives the agent files"
    if shown.carries_files:
        return "is scored by the files that the agent leaves"
    if shown.answer_file or shown.answer_command:
        return "takes its answer from the environment"
    return None
