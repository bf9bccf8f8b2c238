"""The final tables of a launch: every figure with how sure it is, in 80 columns. Pure."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from steelyard.cli.many_requests import MANY
from steelyard.cli.output import table_lines
from steelyard.components.issues import COUNTED, IssueCode, Outcome, Severity
from steelyard.config import printable
from steelyard.engine.budget import NO_BUDGET, BudgetLimits
from steelyard.engine.events import LaunchResult, RequestResult, RunOutcome
from steelyard.results.consumption import budget_text, spending
from steelyard.results.summary_text import chief_rows, kept_lines, retries_line

WIDTH: Final = 80
HEADLINE_MARK: Final = "> "
_INDENT: Final = "  "
_MIN_NAME: Final = 12
_TOLD_OF_MANY: Final = 20
NO_BUDGETS: Final[Mapping[str, BudgetLimits]] = MappingProxyType({})
_REFUSED: Final = IssueCode.MODEL_ENDPOINT_REJECTED.value
_REFUSED_REMEDY: Final = (
    "look at the key (--model-api-key '${VARIABLE}', or api_key under model) and at the address "
    "(--model-base-url, or base_url)"
)
_REFUSALS: Final = frozenset(
    {_REFUSED, IssueCode.CONFIGURATION.value, IssueCode.TASK_INVALID.value}
)
"""With these alone the same command would be refused in the same way."""


def report_lines(
    result: LaunchResult,
    *,
    without_reason: Collection[str] = (),
    budget: BudgetLimits = NO_BUDGET,
    budgets: Mapping[str, BudgetLimits] = NO_BUDGETS,
    width: int = WIDTH,
) -> list[str]:
    """Give the lines of the final report.

    Args:
        result: how the launch ended.
        without_reason: requests whose reason stands just above, in the same terminal.
        budget: what the whole launch might spend.
        budgets: what requests might spend, by their names.
        width: of the terminal; names are cut and columns left out where it is narrow.
    """
    found: list[str] = []
    told: Sequence[RequestResult] = result.requests
    if len(result.requests) > MANY:
        # Of many, all stand side by side below; more is said of those that need a look.
        incomplete = [one for one in told if one.outcome is not RunOutcome.COMPLETED]
        told = incomplete[:_TOLD_OF_MANY]
        whole = len(result.requests)
        found += ["", f"{whole - len(incomplete)} of {whole} requests completed"]
        if len(incomplete) > len(told):
            found.append(f"the first {len(told)} of the other {len(incomplete)}:")
    for request in told:
        found += ["", f"{request.name}: {request.outcome}"]
        if request.reason and request.name not in without_reason:
            found += [f"{_INDENT}{line}" for line in request.reason.split("\n")]
        if request.outcome is RunOutcome.FAILED and _REFUSED in _fatal(request):
            found += _wrapped(_REFUSED_REMEDY, width)
        if request.metrics is not None:
            found += score_lines(request.metrics, width)
        found += _wrapped(f"attempts: {_attempts(request)}", width)
        if request.planned:
            found += _wrapped(f"usage: {spending((request.metrics,)).text()}", width)
            limits = budgets.get(request.name, NO_BUDGET)
            found += _of_budget((request,), limits, width, _INDENT)
        if request.run_dir is not None:
            found.append(f"{_INDENT}{request.run_dir}")
            found += _of_kept(request, request.run_dir)
    found.append("")
    if len(result.requests) > 1:
        found += [*_side_by_side(result.requests, width), ""]
        usage = spending(request.metrics for request in result.requests).text()
        found += _wrapped(f"usage of all: {usage}", width, "")
    found += _of_budget(result.requests, budget, width, "")
    found.append(f"{result.outcome} in {result.elapsed_s:.1f} s")
    if any(map(_can_continue, result.requests)):
        found.append("continue: the same command with --reuse")
    elif result.outcome is not RunOutcome.COMPLETED:
        found.append("continue: mend what is said above, then the same command")
    return found


def _of_budget(
    requests: Sequence[RequestResult], budget: BudgetLimits, width: int, indent: str
) -> list[str]:
    """Say what requests spent of what they might; nothing without a limit."""
    spent = spending(request.metrics for request in requests)
    text = budget_text(spent, budget.usd, budget.tokens)
    return [] if text is None else _wrapped(f"budget: {text}", width, indent)


def _of_kept(request: RequestResult, root: Path) -> list[str]:
    """Say how what was kept is entered and ended; not wrapped, to be pasted whole."""
    lines = kept_lines(request.metrics or {})
    if not lines:
        return []
    end = shlex.join(["steelyard", "env", "close", str(root.absolute()), "--all"])
    said = [printable.one_line(line.removeprefix("- ")) for line in lines]
    return [f"{_INDENT}kept, until `{end}`:", *(f"{_INDENT * 2}{line}" for line in said)]


def _wrapped(text: str, width: int, indent: str = _INDENT) -> list[str]:
    return textwrap.wrap(
        text,
        width,
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


def score_lines(metrics: Mapping[str, Any], width: int = WIDTH) -> list[str]:
    """Give the table of a request's scores, the headline marked; one line where there are none."""
    rows = chief_rows(metrics)
    if not any(row.has_value for row in rows):
        return [f"{_INDENT}nothing was scored"]
    is_whole = all(row.counted == row.planned for row in rows)
    columns: dict[str, list[object]] = {
        "metric": [printable.one_line(row.metric) for row in rows],
        "est.": [row.estimator for row in rows],
        "value": [row.value for row in rows],
        "95% interval": [row.interval for row in rows],
        "tasks": [row.tasks for row in rows],
        "coverage": [f"{row.counted}/{row.planned}" for row in rows],
    }
    if not is_whole:
        columns["worst, best"] = [row.bounds for row in rows]
    room = width - len(_INDENT)
    if max(map(len, _laid(columns))) > room:
        del columns["tasks"]  # sooner than a part of a name
    lines = _fitted(columns, room, ("worst, best", "coverage", "est."))
    marks = [_INDENT] + [HEADLINE_MARK if row.is_headline else _INDENT for row in rows]
    lines = [mark + line for mark, line in zip(marks, lines, strict=True)]
    head = next((row for row in rows if row.is_headline), rows[0])
    if not head.is_official:
        covered = f"{head.coverage} of the attempts count"
        tasks = f"{head.tasks} task{'' if head.tasks == '1' else 's'}"
        lines += _wrapped(f"not official: over {tasks}; {covered}", width)
    if (by_retries := retries_line(metrics)) is not None:
        lines += _wrapped(by_retries, width)
    return lines


def _fitted(columns: Mapping[str, list[object]], width: int, drop: Sequence[str]) -> list[str]:
    """Lay out a table no wider than `width`: its first column is cut, then others left out.

    Args:
        columns: cells by title; those of the first are names.
        width: in characters.
        drop: what is left out, the least needed first.
    """
    name = next(iter(columns))
    shown, left = dict(columns), list(drop)
    while True:
        lines = _laid(shown)
        excess = max(map(len, lines)) - width
        if excess <= 0:
            return lines
        chars = max(len(str(cell)) for cell in columns[name]) - excess
        left = [title for title in left if title in shown]
        if chars >= _MIN_NAME or not left:
            shown[name] = [_cut(str(cell), max(chars, _MIN_NAME)) for cell in columns[name]]
            return _laid(shown)
        del shown[left[0]]


def _laid(columns: Mapping[str, list[object]]) -> list[str]:
    return table_lines(list(columns), list(zip(*columns.values(), strict=True)))


def _cut(text: str, chars: int) -> str:
    """Shorten a name in its middle: ends tell names apart; `summary.md` has it whole."""
    if len(text) <= chars:
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


def _side_by_side(requests: Sequence[RequestResult], width: int) -> list[str]:
    columns: dict[str, list[object]] = {
        title: [] for title in ("request", "headline", "value", "95% interval", "coverage")
    }
    for request in requests:
        chief = chief_rows(request.metrics) if request.metrics is not None else []
        head = next((row for row in chief if row.is_headline), None)
        cells = (
            (request.outcome.value, None, None, None)
            if head is None or not head.has_value
            else (
                f"{head.metric} {head.estimator}",
                head.value + ("" if head.is_official else "*"),
                head.interval,
                head.coverage,
            )
        )
        named = (printable.one_line(request.name), *cells)
        for column, cell in zip(columns.values(), named, strict=True):
            column.append(cell)
    lines = _fitted(columns, width, ("coverage", "95% interval", "headline"))
    if any(str(cell).endswith("*") for cell in columns["value"]):
        lines.append("* not official: over what was scored")
    return lines
