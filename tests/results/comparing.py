"""Runs to compare, for tests: a task's figures are a list, an entry for each attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.values import Usage
from steelyard.results.records import Timing
from tests.results.workload import BENCHMARK_INFO, FixedClock, a_record, an_issue
from tests.results.written import write_run

YES, NO = True, False
FATAL = "fatal"
"""An attempt that says nothing of the agent."""
ERROR = "error"
"""One in which the agent fell short."""

Entry = bool | float | str


def a_document(
    *,
    version: str = "1",
    k: int = 1,
    strategy: str = "avg",
    model: str = "m",
    metrics: Sequence[Mapping[str, Any]] | None = None,
    primary: str | None = None,
    benchmark: str = "toy",
    params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What `run.json` says."""
    listed = list(metrics or BENCHMARK_INFO["metrics"])
    return {
        "benchmark_info": {
            "id": benchmark,
            "version": version,
            "primary": primary or listed[0]["name"],
            "metrics": listed,
        },
        "plan": {"k": k, "strategy": strategy, "early_stop": strategy == "pass"},
        "request": {"name": "toy-request"},
        "identities": {
            "generation": {"schema": "generation/1", "model": {"id": model}},
            "evaluation": {
                "schema": "evaluation/1",
                "benchmark": {"id": benchmark, "version": version, "params": dict(params or {})},
            },
        },
    }


def scalar_metric(name: str = "latency", **changes: Any) -> dict[str, Any]:
    found = {
        "name": name, "kind": "scalar", "higher_is_better": False, "bounds": None,
        "on_failure": None,
    }  # fmt: skip
    return found | changes


def a_side(
    folder: Path,
    run_id: str,
    figures: Mapping[str, Sequence[Entry]],
    *,
    tasks: int | None = None,
    document: Mapping[str, Any] | None = None,
    contents: Mapping[str, str] | None = None,
    shown: Mapping[str, str] | None = None,
    clusters: Mapping[str, str] | None = None,
    categories: Mapping[str, str] | None = None,
    metric: str = "accuracy",
    cost_usd: float | None = 0.001,
    agent_s: float = 0.5,
    clock: FixedClock | None = None,
    **changes: Any,
) -> Path:
    """Write a run, and give its directory."""
    k = max(map(len, figures.values()), default=1)
    records = []
    for task_id, entries in figures.items():
        for attempt, entry in enumerate(entries, 1):
            fields: dict[str, Any] = {
                "metrics": {metric: entry},
                "evaluation": (contents or {}).get(task_id, f"{task_id:0>32}"[-32:]),
                "generation": None,
                "content": (shown or {}).get(task_id),
                "cluster": (clusters or {}).get(task_id),
                "category": (categories or {}).get(task_id),
                "usage": Usage(10, 5, cost_usd=cost_usd),
                "timing": Timing(agent_s=agent_s),
            }
            if entry in (FATAL, ERROR):
                is_fatal = entry == FATAL
                code = IssueCode.SCORER_CRASHED if is_fatal else IssueCode.TURN_LIMIT
                fields["metrics"] = {}
                fields["outcome"] = Outcome.FAILED_FATAL if is_fatal else Outcome.FAILED_ERROR
                fields["issues"] = (an_issue(code),)
            elif isinstance(entry, str):
                fields |= {"metrics": {}, "outcome": Outcome(entry), "executions": 0}
            records.append(a_record(task_id, attempt, **(fields | changes)))
    used = document or a_document(k=k)
    k = used["plan"]["k"]
    return write_run(
        folder, records, run_id=run_id, tasks=tasks, k=k, document=used, clock=clock
    ).root
