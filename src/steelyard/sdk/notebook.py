"""Results as HTML for notebooks. Every text in it is escaped: names, ids, answers are anyone's."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from steelyard.components.issues import Severity
from steelyard.config import printable
from steelyard.config.errors import SteelyardError
from steelyard.results.consumption import dollars
from steelyard.results.figures import figure
from steelyard.results.summary_text import interval_text

if TYPE_CHECKING:
    from steelyard.results.records import AttemptRecord
    from steelyard.sdk.results import LaunchResult, RunResult
    from steelyard.sdk.scores import Score

MAX_FAILURES: Final = 5
"""Shown under a run."""
MAX_TEXT_CHARS: Final = 200
"""Of an answer or a message."""
_NONE: Final = "–"


def run_html(run: RunResult) -> str:
    """Give a run: how it ended, its scores, what failed."""
    ended = run.outcome.value if run.outcome is not None else "not ended"
    counts = ", ".join(f"{n} {outcome.value}" for outcome, n in run.counts.items() if n)
    facts = [
        f"<b>{_text(run.name)}</b>: {_text(f'{ended} ({run.reason})' if run.reason else ended)}",
        f"attempts: {_text(counts or 'none')} (of {run.planned})",
        f"cost: {dollars(run.cost_usd)}; "
        f"<code>{_text(_NONE if run.run_dir is None else str(run.run_dir))}</code>",
    ]
    parts = [f"<p>{'<br>'.join(facts)}</p>", _scores(run.scores), _failures(run)]
    return run._redact(f"<div>{''.join(parts)}</div>")


def launch_html(result: LaunchResult) -> str:
    """Give the runs of a launch side by side, each by its headline."""
    rows = []
    for run in result.runs:
        ended = run.outcome.value if run.outcome is not None else "not ended"
        head = run.headline
        figures = (_NONE,) * 4 if head is None else _figures(head)
        rows.append((run.name, ended, *figures, dollars(run.cost_usd)))
    columns = ("request", "outcome", "headline", "value", "95% interval", "coverage", "cost")
    said = f"<p><b>{_text(result.outcome.value)}</b> in {result.elapsed_s:.1f} s</p>"
    text = f"<div>{said}{_table(columns, rows)}</div>"
    for run in result.runs:
        text = run._redact(text)
    return text


def _scores(scores: Sequence[Score]) -> str:
    if not scores:
        return "<p>no scores</p>"
    rows = [(*_figures(score), "headline" if score.is_headline else "") for score in scores]
    return _table(("score", "value", "95% interval", "coverage", ""), rows)


def _figures(score: Score) -> tuple[str, str, str, str]:
    value = _NONE if score.value is None else figure(score.value)
    found = score.estimate
    interval = interval_text(found.interval, found.note, tasks=found.tasks, clusters=found.clusters)
    mark = "" if score.is_official else " (not official)"
    covered = f"{score.coverage.counted}/{score.coverage.planned}{mark}"
    return f"{score.metric} {score.estimator}", value, interval, covered


def _failures(run: RunResult) -> str:
    """Name the first attempts that failed; nothing where the records are not to be had."""
    try:
        found = list(islice(run.failures(), MAX_FAILURES + 1))
    except SteelyardError:
        return ""
    if not found:
        return ""
    rows = [_failure(record) for record in found[:MAX_FAILURES]]
    more = "" if len(found) <= MAX_FAILURES else "<p>… and more: <code>failures()</code></p>"
    columns = ("failed task", "attempt", "outcome", "issue", "answer")
    return _table(columns, rows) + more


def _failure(record: AttemptRecord) -> tuple[str, ...]:
    issue = next((one for one in record.last_issues if one.severity is not Severity.WARNING), None)
    said = _NONE if issue is None else f"{issue.code.value}: {issue.message}"
    answer = record.answer_file or (_NONE if record.answer is None else record.answer)
    return record.task_id, str(record.attempt), record.outcome.value, said, answer


def _table(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(text: str) -> str:
    """Escape a text, cut it, and write out what cannot be seen."""
    short = text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}…"
    return html.escape(printable.one_line(short), quote=True)
