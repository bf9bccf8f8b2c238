"""From the journal to `metrics.json` and `summary.md`: derived, and the same bytes each time.

Nothing here depends on the present moment, on who holds the lock or on where the run lies.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.issues import Outcome, Severity
from steelyard.components.values import NO_USAGE, Usage
from steelyard.results.calibration import read_calibration
from steelyard.results.consumption import (
    NO_SPENDING,
    Spending,
    paid_before,
    spent_beyond,
    without_noise,
)
from steelyard.results.documents import part
from steelyard.results.files import NO_FAULTS, Faults, WritePoint, replace_atomically
from steelyard.results.layout import RunFiles
from steelyard.results.lines import json_bytes
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.results.remains import kept_of
from steelyard.results.scores import scores, scores_by_retries
from steelyard.results.summary_text import summary_text
from steelyard.results.tallies import RunTally, Tallier, metric_specs
from steelyard.stats.quantiles import quantile

METRICS_SCHEMA: Final = "metrics/1"
PHASES: Final = ("queued_s", "setup_s", "agent_s", "waited_s", "collect_s", "evaluate_s")
MAX_IN_FLIGHT_LISTED: Final = 1000


def summarise(root: Path) -> dict[str, Any]:
    """Compute what `metrics.json` holds; writes nothing.

    Raises:
        RunUnreadable: this is no run, or its files cannot be read.
        FutureSchema: a newer version wrote it.
    """
    reader = RunReader(root)
    info = part(reader.document, "benchmark_info")
    tallier = Tallier(metric_specs(info), str(info.get("primary")))
    totals = _Totals(str(reader.document.get("created_at") or ""))
    calibration, fault = read_calibration(root)
    left_out = frozenset(calibration["left_out"] if calibration is not None else ())
    for record in reader.records():
        if record.task_id not in left_out:
            tallier.add(record)
        totals.add(record)
    ledger = reader.settled_ledger
    finished = reader.finished or {}
    tally = tallier.result(
        primary=str(info.get("primary")),
        plan=reader.plan,
        planned_attempts=planned_without(ledger.planned, reader.plan, left_out),
    )
    return {
        "schema": METRICS_SCHEMA,
        "run_id": reader.run_id,
        "request": part(reader.document, "request").get("name"),
        "benchmark": {"id": info.get("id"), "version": info.get("version")},
        "plan": {"k": tally.k, "strategy": tally.strategy, "early_stop": tally.early_stop},
        "outcome": finished.get("outcome"),
        "reason": finished.get("reason"),
        "is_official": tally.is_official,
        "attempts": {"planned": ledger.planned, "outcomes": ledger.as_json()},
        "in_flight": [
            {
                "task_id": flight.task_id,
                "attempt": flight.attempt,
                "execution": flight.execution,
                "token": flight.token,
                "started_at": flight.started_at,
                "usage": None
                if (spent := reader.spent_in_flight(flight)) is None
                else spent.as_json(),
            }
            for flight in reader.in_flight[:MAX_IN_FLIGHT_LISTED]
        ],
        "coverage": {
            "planned": tally.planned_attempts,
            "counted": tally.counted_attempts,
            "fraction": (
                tally.counted_attempts / tally.planned_attempts if tally.planned_attempts else None
            ),
        },
        "scores": scores(tally),
        **totals.as_json(),
        # Only where there is one, so that other runs' files stay as they are.
        **({} if calibration is None else {"calibration": calibration}),
        **_retries(totals, tally),
        **_kept(reader),
        "warnings": [*reader.warnings, *([] if fault is None else [fault])],
    }


def _kept(reader: RunReader) -> dict[str, Any]:
    """List the environments that the run kept, where it was asked to; they may be gone by now."""
    execution = part(part(reader.document, "request"), "execution")
    if not execution.get("keep_environment"):
        return {}
    kept = kept_of(reader)
    listed = [
        {
            "id": one.token,
            "of": one.role,
            "task_id": one.task_id,
            "attempt": one.attempt,
            "execution": one.execution,
            "environment": one.provider,
            "what": one.description,
            "enter": list(one.enter),
        }
        for one in kept[:MAX_IN_FLIGHT_LISTED]
    ]
    return {"kept": {"count": len(kept), "environments": listed}}


def _retries(totals: _Totals, tally: RunTally) -> dict[str, Any]:
    if not totals.retried_attempts:
        return {}
    return {"retries": {**totals.retries, "groups": scores_by_retries(tally)}}


def planned_without(planned: int, plan: Mapping[str, Any], left_out: Collection[str]) -> int:
    """Give how many attempts are planned at tasks that no calibration leaves out."""
    k = plan.get("k")
    each = k if isinstance(k, int) and k > 0 else 1
    return max(0, planned - each * len(left_out))


def write_summary(root: Path, faults: Faults = NO_FAULTS) -> dict[str, Any]:
    """Write `metrics.json` and `summary.md`, and give what the first holds.

    Call it after the journal's `finish`, so that the outcome is in it.

    Raises:
        RunUnreadable: this is no run, or its files cannot be read.
        StorageFailed: one of the two could not be written.
    """
    metrics = summarise(root)
    files = RunFiles(root)
    replace_atomically(
        files.metrics,
        json_bytes(metrics, orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n",
        WritePoint.METRICS_WRITTEN,
        WritePoint.METRICS_RENAMED,
        faults,
    )
    replace_atomically(
        files.summary,
        summary_text(metrics).encode("utf-8", "replace"),
        WritePoint.SUMMARY_WRITTEN,
        WritePoint.SUMMARY_RENAMED,
        faults,
    )
    return metrics


def rebuild(root: Path) -> dict[str, Any]:
    """Write what is derived once more; the bytes are those of the first time."""
    return write_summary(root)


@dataclass(slots=True)
class _Totals:
    """Sums over all records."""

    created_at: str
    """When the run began; empty where it does not say."""
    all_usage: Usage = NO_USAGE
    reused_usage: Usage = NO_USAGE
    spent: Spending = NO_SPENDING
    """Of this run itself."""
    known_cost_usd: float = 0.0
    unpriced: int = 0
    reused_attempts: int = 0
    rescored: int = 0
    """Among them: the agent's work is an earlier run's, the score is of this one."""
    reused_from: Counter[str] = field(default_factory=Counter)
    issues: Counter[tuple[str, str]] = field(default_factory=Counter)
    retried_attempts: int = 0
    replaced: int = 0
    """Executions that a later one of the same attempt replaced."""
    backoff_s: float = 0.0
    replaced_issues: Counter[str] = field(default_factory=Counter)
    trust: Counter[str] = field(default_factory=Counter)
    executions: int = 0
    times: dict[str, array[float]] = field(
        default_factory=lambda: {name: array("d") for name in PHASES}
    )

    def add(self, record: AttemptRecord) -> None:
        self.all_usage += record.usage
        if record.usage.cost_usd is None:
            self.unpriced += 1
        else:
            self.known_cost_usd += record.usage.cost_usd
        for issue in record.last_issues:
            self.issues[issue.severity.value, issue.code.value] += 1
        if record.retries:
            self._add_retries(record)
        if record.trust is not None:
            self.trust[record.trust.value] += 1
        if record.reused_from is not None:
            # What scoring it again costs is this run's; what was paid before stands in the record.
            paid = paid_before(record)
            self.reused_usage += paid
            self.spent += spent_beyond(record.usage, paid)
            if record.outcome is Outcome.SKIPPED_PASSED:
                return  # needless by now: what was spent on it is all that was taken
            self.reused_attempts += 1
            self.reused_from[str(record.reused_from.get("run_id"))] += 1
            # What is taken whole keeps its times, and those are of before this run.
            self.rescored += bool(
                self.created_at and (record.timing.started_at or "") >= self.created_at
            )
            return
        self.spent += spent_beyond(record.usage, NO_USAGE)
        self.executions += record.executions
        if record.executions and record.outcome is not Outcome.CANCELLED:
            for name, seconds in self.times.items():
                seconds.append(getattr(record.timing, name))

    def _add_retries(self, record: AttemptRecord) -> None:
        self.retried_attempts += 1
        self.replaced += record.retries
        self.backoff_s += record.timing.backoff_s
        for issue in record.issues:
            if issue.execution < record.executions and issue.severity is not Severity.WARNING:
                self.replaced_issues[issue.code.value] += 1

    @property
    def retries(self) -> dict[str, Any]:
        """How much was executed again, and what had gone wrong in what was replaced."""
        return {
            "attempts": self.retried_attempts,
            "executions": self.replaced,
            "backoff_s": round(self.backoff_s, 6),
            "issues": dict(sorted(self.replaced_issues.items())),
        }

    def as_json(self) -> dict[str, Any]:
        usage = _without_noise(self.all_usage)
        return {
            "usage": {
                **usage,
                "known_cost_usd": without_noise(self.known_cost_usd),
                "attempts_without_price": self.unpriced,
            },
            "spent": self.spent.as_json(),
            "reused": {
                "attempts": self.reused_attempts,
                "rescored": self.rescored,
                "runs": dict(sorted(self.reused_from.items())),
                "usage": _without_noise(self.reused_usage),
            },
            "executions": self.executions,
            "issues": [
                {"severity": severity, "code": code, "count": count}
                for (severity, code), count in sorted(self.issues.items())
            ],
            "trust": dict(sorted(self.trust.items())),
            "timing": {name: _quantiles(seconds) for name, seconds in self.times.items()},
        }


def _without_noise(usage: Usage) -> dict[str, Any]:
    return usage.as_json() | {"cost_usd": without_noise(usage.cost_usd)}


def _quantiles(seconds: array[float]) -> dict[str, Any]:
    ordered = sorted(seconds)
    return {
        "attempts": len(ordered),
        "total": sum(ordered),
        "p50": quantile(ordered, 0.5),
        "p90": quantile(ordered, 0.9),
        "p99": quantile(ordered, 0.99),
        "max": ordered[-1] if ordered else None,
    }
