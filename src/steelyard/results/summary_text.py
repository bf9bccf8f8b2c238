"""`metrics/1` as text for people: `summary.md`, and the rows of the final table. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.results.consumption import dollars
from steelyard.results.figures import figure, pair, share
from steelyard.results.markdown import escaped as _text
from steelyard.results.markdown import table as _table
from steelyard.results.scores import (
    NO_CLUSTER_VARIANCE,
    NO_VARIANCE,
    NOTHING,
    SKIPPED,
    TOO_FEW,
)

MAX_KEPT_LISTED: Final = 20
_NONE: Final = "–"
_WHY_NONE: Final = {
    NO_VARIANCE: "all the same",
    NO_CLUSTER_VARIANCE: "clusters cancel out",
    NOTHING: "nothing scored",
    SKIPPED: "attempts skipped",
}

TOO_FEW_CLUSTERS: Final = 2
"""With fewer nothing can be said of how sure a mean is."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One line of a table of scores; every text is ready to be shown."""

    metric: str
    estimator: str
    value: str
    """`0.512`; a dash where nothing was scored."""
    interval: str
    """`[0.41, 0.61]`, or why there is none."""
    tasks: str
    counted: int
    planned: int
    """Attempts."""
    bounds: str
    is_official: bool
    """False where the value covers only what was scored."""
    is_primary: bool
    is_headline: bool

    @property
    def coverage(self) -> str:
        """`150/164 (91%)` of the planned attempts."""
        return _share(self.counted, self.planned)

    @property
    def has_value(self) -> bool:
        """False where nothing was scored."""
        return self.value != _NONE


def score_rows(metrics: Mapping[str, Any]) -> list[ScoreRow]:
    """Give a row for every score, the headline first."""
    return [
        ScoreRow(
            metric=str(score["metric"]),
            estimator=str(score["estimator"]),
            value=_number(score["estimate"]["value"]),
            interval=estimate_interval(score["estimate"]),
            tasks=str(score["estimate"]["tasks"]),
            counted=score["coverage"]["counted"],
            planned=score["coverage"]["planned"],
            bounds=_NONE if score["bounds"] is None else pair(score["bounds"]),
            is_official=score["official"] is not None,
            is_primary=bool(score["is_primary"]),
            is_headline=bool(score["is_headline"]),
        )
        for score in metrics["scores"]
    ]


def chief_rows(metrics: Mapping[str, Any]) -> list[ScoreRow]:
    """Give the rows that a terminal shows: the primary metric's, and one of each other metric.

    With k = 1 all estimators of a metric are one figure, so its first is enough.
    """
    is_once = metrics["plan"]["k"] == 1
    found: dict[str, list[ScoreRow]] = {}
    for row in score_rows(metrics):
        rows = found.setdefault(row.metric, [])
        if not rows or (row.is_primary and not is_once):
            rows.append(row)
    return [row for rows in found.values() for row in rows]


def summary_text(metrics: Mapping[str, Any]) -> str:
    """Give `summary.md`."""
    parts = [
        f"# {_text(metrics['request'] or metrics['run_id'])}",
        _facts(metrics),
        "## Scores",
        _scores(metrics),
        *_categories(metrics),
        *_section(
            "Calibration", "\n".join(f"- {_text(line)}" for line in calibration_lines(metrics))
        ),
        *_section("By number of retries", _by_retries(metrics)),
        "## Attempts",
        _table(
            ("outcome", "attempts"),
            [(k, str(v)) for k, v in metrics["attempts"]["outcomes"].items() if v]
            + [("planned", str(metrics["attempts"]["planned"]))],
        ),
        *_section("In flight when the run ended", _in_flight(metrics)),
        *_section("Environments kept", "\n".join(kept_lines(metrics))),
        *_section("Issues", _issues(metrics)),
        "## Usage and time",
        _usage(metrics),
        _timing(metrics),
        *_section("Warnings", "\n".join(f"- {_text(w)}" for w in metrics["warnings"])),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(metrics: Mapping[str, Any]) -> str:
    plan, benchmark = metrics["plan"], metrics["benchmark"]
    outcome = metrics["outcome"] or "the journal names no outcome: running, or its owner died"
    lines = [
        f"- run: {_text(metrics['run_id'])}",
        f"- benchmark: {_text(benchmark['id'])}, version {_text(benchmark['version'])}",
        f"- plan: k = {plan['k']}, strategy {_text(plan['strategy'])}"
        + (", stops at the first success" if plan["early_stop"] else ""),
        f"- outcome: {_text(outcome)}"
        + (f" ({_text(metrics['reason'])})" if metrics["reason"] else ""),
        f"- official: {'yes' if metrics['is_official'] else 'no'}; counted "
        + _share(metrics["coverage"]["counted"], metrics["coverage"]["planned"]),
    ]
    reused = metrics["reused"]
    if reused["attempts"]:
        runs = ", ".join(f"{count} of {_text(run)}" for run, count in reused["runs"].items())
        again = f", {reused['rescored']} of them scored again" if reused["rescored"] else ""
        lines.append(f"- reused attempts: {reused['attempts']} ({runs}){again}")
    if metrics["trust"]:
        words = ", ".join(f"{_text(k)} {v}" for k, v in metrics["trust"].items())
        lines.append(f"- trust: {words}")
    return "\n".join(lines)


def _scores(metrics: Mapping[str, Any]) -> str:
    rows = [
        (
            f"**{_text(row.metric)}**" if row.is_headline else _text(row.metric),
            row.estimator,
            row.value if row.is_official or not row.has_value else f"{row.value} (not official)",
            row.interval,
            row.tasks,
            row.coverage,
            _number(score["failures_as_zero"]),
            row.bounds,
        )
        for row, score in zip(score_rows(metrics), metrics["scores"], strict=True)
    ]
    head = (
        "metric",
        "estimator",
        "value",
        "95% interval",
        "tasks",
        "coverage",
        "failures as zero",
        "worst, best",
    )
    if not rows:
        return "The benchmark's metrics are not known."
    table = _table(head, rows)
    if any(score["estimate"]["note"] == SKIPPED for score in metrics["scores"]):
        table += f"\n\nNo value where {SKIPPED}: the tasks with all attempts are those that failed."
    return table


def _categories(metrics: Mapping[str, Any]) -> list[str]:
    rows = [
        (
            _text(score["metric"]),
            str(score["estimator"]),
            _text(category),
            _number(estimate["value"]),
            estimate_interval(estimate),
            str(estimate["tasks"]),
        )
        for score in metrics["scores"]
        if score["is_headline"]
        for category, estimate in score["categories"].items()
    ]
    head = ("metric", "estimator", "category", "value", "95% interval", "tasks")
    return ["## Categories", _table(head, rows)] if rows else []


MAX_FINDINGS: Final = 20
"""Of each kind that are named; the files have all."""


def calibration_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Say which tasks their own reference fails and which doing nothing passes; plain text."""
    found = metrics.get("calibration")
    if found is None:
        return []
    lines = []
    for name, said in (
        ("oracle_failed", "tasks that their own reference fails"),
        ("nop_passed", "tasks that doing nothing passes"),
        ("not_calibrated", "tasks at which something else broke"),
    ):
        named = [f"{each['task_id']} ({each['said']})" for each in found[name][:MAX_FINDINGS]]
        more = len(found[name]) - len(named)
        rest = f"; and {more} more" if more > 0 else ""
        lines.append(f"{said}: {len(found[name])}{': ' if named else ''}{'; '.join(named)}{rest}")
    if not found["not_calibrated"]:
        lines.pop()
    if found["no_reference"]:
        lines.append(f"tasks without a reference: {len(found['no_reference'])}")
    if found["oracle_failed"] or found["nop_passed"]:
        lines.append(
            f"left out of the scores: {len(found['left_out'])} tasks"
            if found["left_out"]
            else "they count in the scores; --calibrated-score leaves them out"
        )
    return lines


def _by_retries(metrics: Mapping[str, Any]) -> str:
    retries = metrics.get("retries")
    if not retries:
        return ""
    rows = [
        (
            retries_text(group),
            str(group["attempts"]),
            str(group["counted"]),
            _number(group["estimate"]["value"]),
            estimate_interval(group["estimate"]),
        )
        for group in retries["groups"]
        if group["attempts"]
    ]
    causes = ", ".join(f"{_text(code)} {count}" for code, count in retries["issues"].items())
    return (
        _table(("retries", "attempts", "counted", "value", "95% interval"), rows)
        + f"\n\n{retries['executions']} executions were replaced by another one ({causes}). "
        "An attempt is one sample however often it was executed. Where the groups differ, a run "
        "with another retry policy is another sample."
    )


def retries_text(group: Mapping[str, Any]) -> str:
    """Name a group of attempts by what they needed: `0`, `1`, `2+`."""
    return f"{group['retries']}{'+' if group['is_or_more'] else ''}"


def retries_line(metrics: Mapping[str, Any]) -> str | None:
    """Say in one line what attempts scored by the retries they needed; None where none did."""
    retries = metrics.get("retries")
    if not retries:
        return None
    said = []
    for group in retries["groups"]:
        if group["attempts"]:
            value = _number(group["estimate"]["value"])
            said.append(f"{retries_text(group)}: {group['attempts']} attempts, {value}")
    return f"by retries needed: {'; '.join(said)}"


def _in_flight(metrics: Mapping[str, Any]) -> str:
    rows = [
        (
            _text(f["task_id"]),
            str(f["attempt"]),
            str(f["execution"]),
            _text(f["token"]),
            _so_far(f["usage"]),
        )
        for f in metrics["in_flight"]
    ]
    head = ("task", "attempt", "execution", "token", "spent, at least")
    return _table(head, rows) if rows else ""


def kept_lines(metrics: Mapping[str, Any], most: int = MAX_KEPT_LISTED) -> list[str]:
    """Say of each environment that a run kept which command enters it; a line each."""
    kept = metrics.get("kept") or {"count": 0, "environments": []}
    shown = kept["environments"][:most]
    lines = [
        f"- {_text(one['task_id'])} attempt {one['attempt']}"
        + (f" execution {one['execution']}" if one["execution"] > 1 else "")
        + f", {one['of']}: `{shlex.join(one['enter'])}`"
        for one in shown
    ]
    if kept["count"] > len(shown):
        lines.append(f"- and {kept['count'] - len(shown)} more: `steelyard env list`")
    return lines


def _so_far(usage: Mapping[str, Any] | None) -> str:
    """What an attempt without a record is known to have consumed."""
    if usage is None:
        return "unknown"
    return f"{usage['requests']} model requests, cost {dollars(usage['cost_usd'])}"


def _issues(metrics: Mapping[str, Any]) -> str:
    rows = [(i["severity"], _text(i["code"]), str(i["count"])) for i in metrics["issues"]]
    return _table(("severity", "code", "times"), rows) if rows else ""


def _usage(metrics: Mapping[str, Any]) -> str:
    usage, reused = metrics["usage"], metrics["reused"]["usage"]
    shown = dollars(usage["cost_usd"], usage["known_cost_usd"])
    unknown = usage["attempts_without_price"]
    if usage["cost_usd"] is None and usage["known_cost_usd"]:
        shown += f" (unknown for {unknown} attempt{'s' * (unknown != 1)})"
    line = (
        f"{usage['requests']} model requests, {usage['input_tokens']} input tokens "
        f"({usage['cached_tokens']} cached), {usage['output_tokens']} output tokens "
        f"({usage['reasoning_tokens']} reasoning); cost {shown}."
    )
    if metrics["reused"]["attempts"]:
        line += f" Of this reused: {dollars(reused['cost_usd'])}."
    if metrics["in_flight"]:
        line += " What was in flight when the run ended is not in it."
    return line


def _timing(metrics: Mapping[str, Any]) -> str:
    rows = [
        (name, *(_seconds(times[key]) for key in ("p50", "p90", "p99", "max", "total")))
        for name, times in metrics["timing"].items()
        if times["attempts"]
    ]
    return _table(("seconds", "p50", "p90", "p99", "max", "total"), rows) if rows else ""


def _section(title: str, body: str) -> list[str]:
    return [f"## {title}", body] if body else []


def _number(value: float | None) -> str:
    return _NONE if value is None else figure(value)


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def estimate_interval(estimate: Mapping[str, Any]) -> str:
    """Give an estimate's interval, `[0.41, 0.61]`, or why there is none."""
    return interval_text(
        estimate["interval"],
        estimate["note"],
        tasks=estimate["tasks"],
        clusters=estimate["clusters"],
    )


def interval_text(
    interval: Sequence[float] | None, note: str | None, *, tasks: int, clusters: int
) -> str:
    """Give an interval, or the reason why there is none in the words of every table."""
    if interval is not None:
        return pair(interval)
    if note == TOO_FEW:
        return "too few clusters" if clusters < tasks else "too few tasks"
    return _WHY_NONE.get(note or "", note or _NONE)


def _share(counted: int, planned: int) -> str:
    return f"{counted}/{planned} ({share(counted, planned)})" if planned else "0/0"
