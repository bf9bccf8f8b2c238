"""Runs as Markdown for a pull request's comment: scores, gates, calibration. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.results.gates import GateResult
from steelyard.results.markdown import code, table
from steelyard.results.summary_text import calibration_lines, chief_rows

MAX_NOTE_CHARS = 500


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run, as far as the comment speaks of it."""

    name: str
    outcome: str
    reason: str | None
    metrics: Mapping[str, Any] | None


def launch_markdown(runs: Sequence[RunLine], gates: Sequence[GateResult] = ()) -> str:
    """Give the comment: nothing in it that others wrote is markup, a link or a mention."""
    head = ("request", "metric", "value", "95% interval", "tasks", "coverage", "worst, best")
    rows = [row for run in runs for row in _rows(run)]
    parts = [table(head, rows)]
    if any("\\*" in row[2] for row in rows):
        parts.append("\\* not official: over what was scored.")
    if gates:
        parts.append(
            table(
                ("gate", "request", "", "what was found"),
                [
                    (
                        code(each.gate.option),
                        code(each.gate.request) if each.gate.request else "",
                        "met" if each.is_met else "**not met**",
                        code(each.said, MAX_NOTE_CHARS),
                    )
                    for each in gates
                ],
            )
        )
    for run in runs:
        parts += [f"- {code(run.name)}: {code(line, MAX_NOTE_CHARS)}" for line in _notes(run)]
    return "\n\n".join(parts) + "\n"


def _rows(run: RunLine) -> list[tuple[str, ...]]:
    chief = [] if run.metrics is None else [r for r in chief_rows(run.metrics) if r.has_value]
    if not chief:
        return [(code(run.name), code(run.outcome), "–", "–", "–", "–", "–")]
    return [
        (
            code(run.name),
            ("**{}** {}" if row.is_headline else "{} {}").format(code(row.metric), row.estimator),
            row.value + ("" if row.is_official else "\\*"),
            row.interval,
            row.tasks,
            row.coverage,
            row.bounds,
        )
        for row in chief
    ]


def _notes(run: RunLine) -> list[str]:
    lines = [] if run.outcome == "completed" else [f"{run.outcome}: {run.reason or 'no reason'}"]
    return lines + ([] if run.metrics is None else calibration_lines(run.metrics))
