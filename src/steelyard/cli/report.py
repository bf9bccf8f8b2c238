"""The final tables of a launch: every figure with how sure it is, in 80 columns. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from steelyard.cli.output import table_lines
from steelyard.components.issues import COUNTED, IssueCode, Outcome, Severity
from steelyard.config import printable
from steelyard.engine.budget import NO_BUDGET, BudgetLimits
from steelyard.engine.events import LaunchResult, RequestResult, RunOutcome
from steelyard.results.consumption import budget_text, spending
from steelyard.results.summary_text import ScoreRow, chief_rows, retries_line

WIDTH: Final = 80
HEADLINE_MARK: Final = "> "
_INDENT: Final = "  "
_MIN_NAME: Final = 12
NO_BUDGETS: Final[Mapping[str, BudgetLimits]] = MappingProxyType({})
_REFUSED: Final = IssueCode.MODEL_ENDPOINT_REJECTED.value
_REFUSED_REMEDY: Final = (
    "look at the key (--model-api-key '${VARIABLE}', or api_key under model) and at the address "
    "(--model-base-url, or base_url)"
)
_REFUSALS: Final = frozenset({_REFUSED, IssueCode.CONFIGURATION.value})
"""With these alone the same command would be refused in the same way."""


def report_lines(
    result: LaunchResult,
    *,
    without_reason: Collection[str] = (),
    budget: BudgetLimits = NO_BUDGET,
    budgets: Mapping[str, BudgetLimits] = NO_BUDGETS,
) -> list[str]:
    """Give the lines of the final report.

    Args:
        result: how the launch ended.
        without_reason: requests whose reason stands just above, in the same terminal.
        budget: what the whole launch might spend.
        budgets: what requests might spend, by their names.
    """
    found: list[str] = []
    for request in result.requests:
        found += ["", f"{request.name}: {request.outcome}"]
        if request.reason and request.name not in without_reason:
            found += [f"{_INDENT}{line}" for line in request.reason.split("\n")]
        if request.outcome is RunOutcome.FAILED and _REFUSED in _fatal(request):
            found += _wrapped(_REFUSED_REMEDY)
        if request.metrics is not None:
            found += score_lines(request.metrics)
        found += _wrapped(f"attempts: {_attempts(request)}")
        if request.planned:
            found += _wrapped(f"usage: {spending((request.metrics,)).text()}")
            found += _of_budget((request,), budgets.get(request.name, NO_BUDGET), _INDENT)
        found.append(f"{_INDENT}{request.run_dir}")
    found.append("")
    if len(result.requests) > 1:
        found += [*_side_by_side(result.requests), ""]
        usage = spending(request.metrics for request in result.requests).text()
        found += _wrapped(f"usage of all: {usage}", "")
    found += _of_budget(result.requests, budget, "")
    found.append(f"{result.outcome} in {result.elapsed_s:.1f} s")
    if any(map(_can_continue, result.requests)):
        found.append("continue: the same command with --reuse")
    elif result.outcome is not RunOutcome.COMPLETED:
        found.append("continue: mend what is said above, then the same command")
    return found


def _of_budget(requests: Sequence[RequestResult], budget: BudgetLimits, indent: str) -> list[str]:
    """Say what requests spent of what they might; nothing without a limit."""
    spent = spending(request.metrics for request in requests)
    text = budget_text(spent, budget.usd, budget.tokens)
    return [] if text is None else _wrapped(f"budget: {text}", indent)


def _wrapped(text: str, indent: str = _INDENT) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _can_continue(request: RequestResult) -> bool:
    """True where the same command with --reuse would find something, or get further."""
    if request.outcome is RunOutcome.COMPLETED:
        return False
    if request.outcome is not RunOutcome.FAILED:
        return True
    if any(request.counts.get(outcome) for outcome in COUNTED):
        return True
    # Stopped before anything counted: its tasks did not load, or every call was refused.
    stopped = request.counts.get(Outcome.NOT_STARTED) or request.counts.get(Outcome.CANCELLED)
    if not request.planned or stopped:
        return False
    fatal = _fatal(request)
    return not fatal or not fatal <= _REFUSALS


def _fatal(request: RequestResult) -> set[str]:
    issues = (request.metrics or {}).get("issues") or ()
    return {issue["code"] for issue in issues if issue["severity"] == Severity.FATAL}


def score_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Give the table of a request's scores, the headline marked; one line where there are none."""
    rows = chief_rows(metrics)
    if not any(row.has_value for row in rows):
        return [f"{_INDENT}nothing was scored"]
    is_whole = all(row.counted == row.planned for row in rows)
    lines = _table(rows, with_tasks=True, with_bounds=not is_whole)
    room = WIDTH - len(_INDENT)
    if max(map(len, lines)) > room:
        lines = _table(rows, with_tasks=False, with_bounds=not is_whole)
    excess = max(map(len, lines)) - room
    if excess > 0:
        chars = max(_MIN_NAME, max(len(row.metric) for row in rows) - excess)
        lines = _table(rows, with_tasks=False, with_bounds=not is_whole, name_chars=chars)
    marks = [_INDENT] + [HEADLINE_MARK if row.is_headline else _INDENT for row in rows]
    lines = [mark + line for mark, line in zip(marks, lines, strict=True)]
    head = next((row for row in rows if row.is_headline), rows[0])
    if not head.is_official:
        lines.append(
            f"{_INDENT}not official: over {head.tasks} tasks; {head.coverage} of the attempts count"
        )
    if (by_retries := retries_line(metrics)) is not None:
        lines += textwrap.wrap(
            by_retries, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT * 2
        )
    return lines


def _table(
    rows: Sequence[ScoreRow], *, with_tasks: bool, with_bounds: bool, name_chars: int | None = None
) -> list[str]:
    columns = ["metric", "est.", "value", "95% interval"]
    columns += ["tasks"] * with_tasks + ["coverage"] + ["worst, best"] * with_bounds
    cells = []
    for row in rows:
        line = [_cut(row.metric, name_chars), row.estimator, row.value, row.interval]
        line += [row.tasks] * with_tasks + [f"{row.counted}/{row.planned}"]
        cells.append(line + [row.bounds] * with_bounds)
    return table_lines(columns, cells)


def _cut(name: str, chars: int | None) -> str:
    """Shorten a name in its middle: ends tell names apart; `summary.md` has it whole."""
    text = printable.one_line(name)
    if chars is None or len(text) <= chars:
        return text
    tail = (chars - 1) // 2
    return f"{text[: chars - 1 - tail]}…{text[len(text) - tail :]}"


def _attempts(request: RequestResult) -> str:
    counts = [
        f"{count} not needed (task already passed)"
        if outcome is Outcome.SKIPPED_PASSED
        else f"{count} {outcome}"
        for outcome, count in request.counts.items()
        if count
    ]
    text = f"{', '.join(counts) or 'none'} (of {request.planned})"
    reused = (request.metrics or {}).get("reused") or {}
    runs = ", ".join(
        f"{count} from {run}" if len(reused["runs"]) > 1 else f"from {run}"
        for run, count in (reused.get("runs") or {}).items()
    )
    if not runs:
        return text
    rescored = reused.get("rescored") or 0
    how = f" ({rescored} scored again)" if rescored else ""
    return f"{text}; of these {reused['attempts']} reused{how} {runs}"


def _side_by_side(requests: Sequence[RequestResult]) -> list[str]:
    rows = []
    for request in requests:
        chief = chief_rows(request.metrics) if request.metrics is not None else []
        head = next((row for row in chief if row.is_headline), None)
        rows.append(
            (request.name, request.outcome.value, None, None, None)
            if head is None or not head.has_value
            else (
                request.name,
                f"{head.metric} {head.estimator}",
                head.value + ("" if head.is_official else "*"),
                head.interval,
                head.coverage,
            )
        )
    excess = _width(rows) - WIDTH
    if excess > 0:
        room = max(_MIN_NAME, max(len(row[0]) for row in rows) - excess)
        rows = [(_cut(row[0], room), *row[1:]) for row in rows]
    lines = table_lines(("request", "headline", "value", "95% interval", "coverage"), rows)
    if any(str(row[2]).endswith("*") for row in rows):
        lines.append("* not official: over what was scored")
    return lines


def _width(rows: Sequence[Sequence[object]]) -> int:
    return max(
        map(len, table_lines(("request", "headline", "value", "95% interval", "coverage"), rows))
    )
