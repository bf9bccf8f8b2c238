"""`steelyard show RUN`: what became of its attempts, and of each why."""

from __future__ import annotations

import difflib
import heapq
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steelyard.cli.options import output_options
from steelyard.components.issues import Outcome
from steelyard.results.consumption import dollars, without_noise

if TYPE_CHECKING:
    from steelyard.results.failures import PrimaryMetric
    from steelyard.results.reader import RunReader
    from steelyard.results.records import AttemptRecord

DETAILED_AT_ONCE: Final = 10
"""How many attempts are shown whole where no `--limit` says otherwise."""


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
    type=click.Choice([outcome.value for outcome in Outcome]),
    help="Only attempts that ended so; those `not_started` have no record and are counted.",
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
    """List the attempts of RUN.

    RUN is a run directory, a folder of runs, a run's id, a request's name, or `latest`; of several
    runs the newest.

    With TASK or --failed each is shown whole: the prompt, the steps, the answer, why it scored
    what it did, and its issues.
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

    records, matching = _first(reader, is_wanted, limit)
    if task is not None and not matching:
        _check_task(reader, task)
    view = _json if as_json else _print_whole if is_whole else _print_list
    view(reader, metric, records, matching, is_whole)
    return 0


def _first(
    reader: RunReader, is_wanted: Callable[[AttemptRecord], bool], limit: int
) -> tuple[list[AttemptRecord], int]:
    """Give the first records by task and attempt, and how many there are; 0 for no limit."""
    matching = 0

    def counted() -> Iterator[AttemptRecord]:
        nonlocal matching
        for record in reader.records(is_wanted):
            matching += 1
            yield record

    found = heapq.nsmallest(limit, counted(), key=_place) if limit else list(counted())
    return sorted(found, key=_place), matching


def _place(record: AttemptRecord) -> tuple[list[tuple[int, str]], str, int]:
    """Order by task and attempt; of numbers within ids the smaller first."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", record.task_id)
    natural = [(int(part), "") if part[0] in "0123456789" else (-1, part) for part in parts]
    return natural, record.task_id, record.attempt


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
    from steelyard.cli.show_attempt import kept_answer, kept_steps, seconds
    from steelyard.cli.show_steps import parted, prompt_json
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
            "seconds": round(seconds(record), 6),
            "waited_s": round(record.timing.waited_s, 6),
            "cost_usd": without_noise(record.usage.cost_usd),
            "reused_from": record.reused_from,
        }
        if is_whole:
            row["earlier_executions"] = [
                one.as_json() for one in earlier_executions(reader.root, record)
            ]
            steps, _ = kept_steps(reader.root, record)
            row["prompt"] = None if steps is None else prompt_json(parted(steps)[0])
            row["trajectory"] = (record.trajectory or {}).get("path")
            row["answer"] = kept_answer(reader.root, record)[0]
            row["details"] = dict(record.details)
        attempts.append(row)
    print_json(
        {
            "schema": "show/1",
            "run": str(reader.root),
            "primary_metric": metric.name,
            "matching": matching,
            "without_record": _without_record(reader),
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
    from steelyard.cli.show_attempt import SHOWN_WAIT_S, seconds

    rows: list[tuple[object, ...]] = [
        (
            record.task_id,
            record.attempt,
            record.outcome.value,
            metric.value(record),
            ", ".join(dict.fromkeys(issue.code.value for issue in record.last_issues)) or "–",
            f"{seconds(record):.2f}",
            dollars(record.usage.cost_usd),
        )
        for record in records
    ]
    columns: tuple[str, ...] = (
        *("task", "attempt", "outcome", metric.name, "issues", "seconds", "cost"),
    )
    if any(record.timing.waited_s >= SHOWN_WAIT_S for record in records):
        columns = (*columns, "waited")
        rows = [
            (*row, f"{record.timing.waited_s:.2f}")
            for row, record in zip(rows, records, strict=True)
        ]
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
    from steelyard.cli.show_attempt import print_attempt

    for record in records:
        print_attempt(reader.root, record)
        say()
    _print_rest(reader, len(records), matching)


def _print_rest(reader: RunReader, shown: int, matching: int) -> None:
    from steelyard.cli.output import note, say

    if matching > shown:
        say(f"… and {matching - shown} more: --limit 0 shows all")
    elif not matching:
        say("no attempt matches")
    if missing := _without_record(reader):
        note(f"{missing} of {reader.ledger.planned} planned attempts have no record")
    for line in _in_flight(reader):
        note(line)
    for warning in reader.warnings:
        note(f"warning: {warning}")


def _without_record(reader: RunReader) -> int:
    return max(0, reader.ledger.planned - sum(1 for _ in reader.records()))


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
            cost = "cost unknown" if usage.cost_usd is None else dollars(usage.cost_usd)
            spent = f"{usage.requests} model calls, {cost} so far"
        name = printable.one_line(flight.task_id)
        yield f"in flight when the run ended: {name} attempt {flight.attempt} ({spent})"
