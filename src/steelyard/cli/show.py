"""`steelyard show RUN`: what became of its attempts, and of each why."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steelyard.cli.options import output_options
from steelyard.components.issues import Outcome
from steelyard.results.figures import usd

if TYPE_CHECKING:
    from steelyard.results.executions import EarlierExecution
    from steelyard.results.failures import PrimaryMetric
    from steelyard.results.reader import RunReader
    from steelyard.results.records import AttemptRecord

DETAILED_AT_ONCE: Final = 10
"""How many attempts are shown whole where no `--limit` says otherwise."""
MAX_SHOWN_CHARS: Final = 8_000
"""Of a prompt's message or an answer, for people; `--json` has all."""


@click.command("show")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("task", required=False)
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Only the N-th attempts.")
@click.option(
    "--failed",
    is_flag=True,
    help="Only attempts without a score or with none in the primary metric; each shown whole.",
)
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in Outcome if outcome is not Outcome.NOT_STARTED]),
    help="Only attempts that ended so.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"At most N attempts; 0 for all ({DETAILED_AT_ONCE} where they are shown whole, else 0).",
)
@output_options
def show(
    run: Path,
    task: str | None,
    attempt: int | None,
    failed: bool,
    outcome: str | None,
    limit: int | None,
    as_json: bool,
    debug: bool,
) -> int:
    """List the attempts of RUN: a run directory, or a folder of runs, whose newest is taken.

    With TASK or --failed each is shown whole: the prompt, the answer, why it scored what it did,
    and its issues.
    """
    from steelyard.cli.run_argument import run_root
    from steelyard.results.failures import PrimaryMetric
    from steelyard.results.reader import RunReader

    reader = RunReader(run_root(run))
    metric = PrimaryMetric(reader.document)
    is_whole = task is not None or failed
    limit = (DETAILED_AT_ONCE if is_whole and not as_json else 0) if limit is None else limit

    def is_wanted(record: AttemptRecord) -> bool:
        return (
            (task is None or record.task_id == task)
            and (attempt is None or record.attempt == attempt)
            and (outcome is None or record.outcome.value == outcome)
            and (not failed or metric.is_failed(record))
        )

    records: list[AttemptRecord] = []
    matching = 0
    for record in reader.records(is_wanted):
        matching += 1
        if not limit or len(records) < limit:
            records.append(record)
    if task is not None and not matching:
        _check_task(reader, task)
    view = _json if as_json else _print_whole if is_whole else _print_list
    view(reader, metric, records, matching, is_whole)
    return 0


def _check_task(reader: RunReader, task: str) -> None:
    from steelyard.config.errors import BadInput

    known = {record.task_id: None for record in reader.records()}
    if task in known:
        return
    near = difflib.get_close_matches(task, known, n=1, cutoff=0.5)
    raise BadInput(
        f"no attempt of a task {task!r} is recorded in {reader.root}",
        remedy=f"did you mean {near[0]!r}?" if near else "`steelyard show RUN` lists them",
    )


def _json(
    reader: RunReader,
    metric: PrimaryMetric,
    records: list[AttemptRecord],
    matching: int,
    is_whole: bool,
) -> None:
    from steelyard.cli.output import print_json
    from steelyard.results.executions import earlier_executions

    attempts = []
    for record in records:
        row: dict[str, Any] = {
            "task_id": record.task_id,
            "attempt": record.attempt,
            "outcome": record.outcome.value,
            "metrics": dict(record.metrics),
            "issues": [issue.as_json() for issue in record.issues],
            "executions": record.executions,
            "seconds": round(_seconds(record), 6),
            "cost_usd": record.usage.cost_usd,
            "reused_from": record.reused_from,
        }
        if is_whole:
            row["earlier_executions"] = [
                one.as_json() for one in earlier_executions(reader.root, record)
            ]
            row["prompt"] = _prompt(reader, record)[0]
            row["answer"] = _answer(reader, record)[0]
            row["details"] = dict(record.details)
        attempts.append(row)
    print_json(
        {
            "schema": "show/1",
            "run": str(reader.root),
            "primary_metric": metric.name,
            "matching": matching,
            "attempts": attempts,
            "in_flight": [
                {
                    "task_id": flight.task_id,
                    "attempt": flight.attempt,
                    "token": flight.token,
                    "usage": None if spent is None else spent.as_json(),
                }
                for flight in reader.in_flight
                for spent in (reader.spent_in_flight(flight),)
            ],
            "warnings": list(reader.warnings),
        }
    )


def _print_list(
    reader: RunReader,
    metric: PrimaryMetric,
    records: list[AttemptRecord],
    matching: int,
    is_whole: bool,
) -> None:
    from steelyard.cli.output import print_table

    rows: list[tuple[object, ...]] = [
        (
            record.task_id,
            record.attempt,
            record.outcome.value,
            metric.value(record),
            ", ".join(dict.fromkeys(issue.code.value for issue in record.last_issues)) or "–",
            f"{_seconds(record):.2f}",
            _cost(record),
        )
        for record in records
    ]
    columns: tuple[str, ...] = (
        *("task", "attempt", "outcome", metric.name, "issues", "seconds", "cost"),
    )
    if any(record.retries for record in records):
        columns = (*columns, "retries")
        rows = [(*row, record.retries) for row, record in zip(rows, records, strict=True)]
    if rows:
        print_table(columns, rows)
    _print_rest(reader, len(records), matching)


def _print_whole(
    reader: RunReader,
    metric: PrimaryMetric,
    records: list[AttemptRecord],
    matching: int,
    is_whole: bool,
) -> None:
    from steelyard.cli.output import say
    from steelyard.config import printable
    from steelyard.results.executions import earlier_executions

    for record in records:
        figures = ", ".join(f"{name} {_figure(value)}" for name, value in record.metrics.items())
        say(printable.one_line(f"=== {record.task_id}, attempt {record.attempt}: {record.outcome}"))
        say(f"{figures or 'no score'}; {_seconds(record):.2f} s, cost {_cost(record)}")
        if record.reused_from is not None:
            say(f"reused from {record.reused_from.get('run_id')}")
        prompt, missing = _prompt(reader, record)
        for message in prompt or ():
            _print_block(f"prompt ({message['source']})", message["message"])
        if prompt is None:
            say(f"--- prompt: {missing}")
        answer, missing = _answer(reader, record)
        if answer is None:
            say(f"--- answer: {missing}")
        else:
            _print_block("answer", answer, record.answer_file)
        for name, reason in _why(record.details):
            _print_block(f"why: {name}", reason)
        for earlier in earlier_executions(reader.root, record):
            _print_block(_execution_title(earlier), _execution_text(earlier))
        for issue in record.last_issues:
            _print_block(f"{issue.severity} {issue.code} ({issue.phase})", issue.message)
        say()
    _print_rest(reader, len(records), matching)


def _execution_title(earlier: EarlierExecution) -> str:
    return f"execution {earlier.execution}: {earlier.outcome}, replaced"


def _execution_text(earlier: EarlierExecution) -> str:
    cost = "unknown" if earlier.usage.cost_usd is None else f"${usd(earlier.usage.cost_usd)}"
    times, retry = earlier.timing, earlier.retry
    seconds = times.setup_s + times.agent_s + times.waited_s + times.collect_s + times.evaluate_s
    lines = [f"{seconds:.2f} s, cost {cost}; began {times.started_at}"]
    lines += [f"{one.severity} {one.code} ({one.phase}): {one.message}" for one in earlier.issues]
    if path := (earlier.trajectory or {}).get("path"):
        lines.append(f"steps in {path}")
    what = "its work scored" if retry.get("scope") == "scoring" else "run"
    lines.append(f"{what} again after {retry.get('wait_s')} s, because of {retry.get('cause')}")
    return "\n".join(lines)


def _print_block(title: str, text: str, file: str | None = None) -> None:
    from steelyard.cli.output import say
    from steelyard.config import printable

    say(printable.one_line(f"--- {title}"))
    if len(text) > MAX_SHOWN_CHARS:
        rest = len(text) - MAX_SHOWN_CHARS
        where = f"all in {file}" if file else "all with --json"
        text = f"{text[:MAX_SHOWN_CHARS]}\n… and {rest} more characters: {where}"
    # Indented, so that nobody's words can pass for ours.
    for line in text.rstrip("\n").split("\n"):
        say(f"  {line}" if line else "")


def _print_rest(reader: RunReader, shown: int, matching: int) -> None:
    from steelyard.cli.output import note, say

    if matching > shown:
        say(f"… and {matching - shown} more: --limit 0 shows all")
    elif not matching:
        say("no attempt matches")
    ledger = reader.ledger
    recorded = sum(1 for _ in reader.records())
    if recorded < ledger.planned:
        note(f"{ledger.planned - recorded} of {ledger.planned} planned attempts have no record")
    for line in _in_flight(reader):
        note(line)
    for warning in reader.warnings:
        note(f"warning: {warning}")


def _in_flight(reader: RunReader) -> Iterator[str]:
    """Name what a run was doing when it died, with what it had cost."""
    from steelyard.config import printable
    from steelyard.results.reader import RunState

    if reader.state is RunState.RUNNING:
        return
    for flight in reader.in_flight:
        usage = reader.spent_in_flight(flight)
        spent = "cost so far unknown"
        if usage is not None:
            cost = "cost unknown" if usage.cost_usd is None else f"${usd(usage.cost_usd)}"
            spent = f"{usage.requests} model calls, {cost} so far"
        name = printable.one_line(flight.task_id)
        yield f"in flight when the run ended: {name} attempt {flight.attempt} ({spent})"


def _prompt(
    reader: RunReader, record: AttemptRecord
) -> tuple[list[dict[str, str]] | None, str | None]:
    """Give what the agent was told before its first step; or None, and why there is nothing."""
    path = (record.trajectory or {}).get("path")
    if path is None:
        return None, "no trajectory was kept"
    text, problem = _read(reader.root, str(path))
    if text is None:
        return None, problem
    try:
        steps = json.loads(text)["steps"]
        found = []
        for step in steps:
            if step["source"] == "agent":
                break
            found.append({"source": str(step["source"]), "message": _text(step["message"])})
    except (ValueError, KeyError, TypeError):
        return None, f"{path} is no trajectory"
    return found, None


def _answer(reader: RunReader, record: AttemptRecord) -> tuple[str | None, str | None]:
    if record.answer_file is not None:
        return _read(reader.root, record.answer_file)
    return record.answer, "none"


def _read(root: Path, relative: str) -> tuple[str | None, str | None]:
    """Read a file of the run; never one that lies elsewhere."""
    from steelyard.results.kept_files import KeptFileUnreadable, read_kept

    try:
        return read_kept(root, relative).decode("utf-8", "replace"), None
    except KeptFileUnreadable as error:
        return None, str(error)


def _why(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give what the scorer said, a name and a text each."""
    reasons = details.get("reasons")
    found = [(str(k), _text(v)) for k, v in reasons.items()] if isinstance(reasons, dict) else []
    return found + [(str(k), _text(v)) for k, v in details.items() if k != "reasons"]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _figure(value: float | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}"
    return text if float(text) == value or not float(text).is_integer() else repr(value)


def _seconds(record: AttemptRecord) -> float:
    """What the attempt took; waiting is not part of it."""
    timing = record.timing
    return timing.setup_s + timing.agent_s + timing.collect_s + timing.evaluate_s


def _cost(record: AttemptRecord) -> str:
    cost = record.usage.cost_usd
    return "unknown" if cost is None else f"${usd(cost)}" if cost else "0"
