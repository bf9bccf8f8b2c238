"""Add a cell's records up, many at a time: 200,000 are read while a screen is drawn.

Only the fields that are summed are looked at. A file in which an attempt stands twice is read
again by the reader that sorts that out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final

from steelyard.components.issues import Outcome
from steelyard.evalset.report.cell_tally import CellTally
from steelyard.results.calibration import read_calibration
from steelyard.results.records_io import MalformedRecord, record_from_json
from steelyard.results.summary import planned_without
from steelyard.results.tallies import counted_value

_OUTCOMES: Final[Mapping[str, Outcome]] = {outcome.value: outcome for outcome in Outcome}
_EXCLUDED: Final = frozenset({Outcome.FAILED_ERROR.value, Outcome.TIMED_OUT.value})
_SKIPPED: Final = Outcome.SKIPPED_PASSED.value
_CANCELLED: Final = Outcome.CANCELLED.value
_FIELDS: Final = itemgetter(
    "task_id", "outcome", "attempt", "timing", "executions", "metrics", "usage", "issues"
)
_PHASE_NAMES: Final = ("setup_s", "agent_s", "waited_s", "collect_s", "evaluate_s")
_PHASES: Final = itemgetter(*_PHASE_NAMES)
_NUMBERS: Final = frozenset({int, float})
_BATCH: Final = 64
"""Records that are held at a time."""
_MOST_ATTEMPTS: Final = 1 << 40
"""At one case: a case and an attempt are then one number."""


class Twice(Exception):
    """An attempt has two records in one file."""


def add_records(
    found: CellTally, records: Iterable[Mapping[str, Any]], *, with_digests: bool
) -> None:
    """Add a cell's records up, many at a time where nothing is unusual about them.

    Raises:
        Twice: an attempt has two records, or the file is damaged.
    """
    left_out = frozenset[str]()
    if found.run is not None:
        calibration, fault = read_calibration(found.run)
        left_out = frozenset(calibration["left_out"] if calibration is not None else ())
        found.warnings += [] if fault is None else [fault]
    found.columns.grow(len(found.cases.numbers))
    seen: set[int] = set()
    rest = iter(records)
    while batch := list(islice(rest, _BATCH)):
        if left_out or not _add_usual(found, batch, seen):
            _add_each(found, batch, seen, left_out)
        if with_digests:
            for data in batch:
                number = found.cases.numbers.get(data.get("task_id", ""))
                if number is not None:
                    found.digests[number] = data.get("content"), data.get("evaluation")
    if found.planned is None:  # it died before that was written: what has a record was planned
        found.planned = sum(1 for each in found.columns.seen if each)
    else:
        tasks = planned_without(found.planned * found.k, {"k": found.k}, left_out)
        found.planned = tasks // found.k


def _add_usual(found: CellTally, batch: Sequence[Mapping[str, Any]], seen: set[int]) -> bool:
    """Add records column by column, a third of the time; False where one needs a closer look.

    Nothing is added then. All that is unusual is left to `_add_each`, which says what it is.
    """
    columns, cases, spec = found.columns, found.cases, found.spec
    try:
        names, outcomes, attempts, timings, executions, metrics, usages, issues = zip(
            *map(_FIELDS, batch), strict=True
        )
        if not (
            all(executions)
            and _OUTCOMES.keys() >= set(outcomes)
            and set(map(type, chain(attempts, executions))) == {int}
            and set(map(type, names)) == {str}
            and set(map(type, metrics)) == {dict}
            and set(map(type, issues)) == {list}
        ):
            return False
        seconds = [sum(_PHASES(timing)) for timing in timings]
        costs = [usage["cost_usd"] for usage in usages]
        if not set(map(type, chain(seconds, filter(None, costs)))) <= _NUMBERS:
            return False
        if spec is None:
            values: list[float | None] = [None] * len(batch)
        else:
            name, scored = spec.name, Outcome.SCORED.value
            values = [
                float(of[name])
                if outcome == scored and name in of
                else counted_value(spec, _OUTCOMES[outcome], of)
                for outcome, of in zip(outcomes, metrics, strict=True)
            ]
        for case, data in zip(names, batch, strict=True):
            if case not in cases.numbers:
                cases.number(_text(case), data.get("cluster"))
        numbers = [cases.numbers[case] for case in names]
        found_issues = _issues_of(issues, executions)
        keys = {n * _MOST_ATTEMPTS + attempt for n, attempt in zip(numbers, attempts, strict=True)}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return False
    if len(keys) < len(batch) or not seen.isdisjoint(keys):
        raise Twice
    seen |= keys
    columns.grow(len(cases.numbers))
    of_seen, of_counted, of_totals, of_successes, of_excluded, of_skipped, of_priced, of_cost = (
        columns.all
    )
    for number, value, cost in zip(numbers, values, costs, strict=True):
        of_seen[number] += 1
        if value is not None:
            of_counted[number] += 1
            of_totals[number] += value
            of_successes[number] += value != 0
        if cost is not None:
            of_priced[number] += 1
            of_cost[number] += cost
    found.unpriced += costs.count(None)
    counts = Counter(outcomes)
    found.outcomes.update({_OUTCOMES[outcome]: n for outcome, n in counts.items()})
    if None in values and not counts.keys().isdisjoint({*_EXCLUDED, _SKIPPED}):
        for number, value, outcome in zip(numbers, values, outcomes, strict=True):
            if value is None and outcome in _EXCLUDED:
                of_excluded[number] += 1
            elif outcome == _SKIPPED:
                of_skipped[number] += 1
    if counts[_CANCELLED]:
        seconds = [s for s, o in zip(seconds, outcomes, strict=True) if o != _CANCELLED]
    found.durations_s.extend(seconds)
    found.issues.update(found_issues)
    return True


def _add_each(
    found: CellTally,
    records: Iterable[Mapping[str, Any]],
    seen: set[int],
    left_out: frozenset[str],
) -> None:
    """Add records one by one, each read as a run's reader does; one that is none is named."""
    columns, cases, spec = found.columns, found.cases, found.spec
    for data in records:
        try:
            record = record_from_json(data)
        except MalformedRecord as error:
            named = f"case {data.get('task_id')!r}, attempt {data.get('attempt')}"
            found.warnings.append(f"{found.cell.matrix_key}: {named}: {error}")
            continue
        case, outcome, cost = record.task_id, record.outcome, record.usage.cost_usd
        number = cases.number(case, record.cluster)
        columns.grow(len(cases.numbers))
        key = number * _MOST_ATTEMPTS + record.attempt
        if key in seen:
            raise Twice
        seen.add(key)
        found.outcomes[outcome] += 1
        for issue in record.last_issues:
            found.issues[issue.severity.value, issue.code.value] += 1
        if cost is None:
            found.unpriced += 1
        else:
            columns.cost_usd[number] += cost
            columns.priced[number] += bool(record.executions or record.reused_from)
        if record.executions and outcome is not Outcome.CANCELLED:
            timing = record.timing
            found.durations_s.append(sum(getattr(timing, name) for name in _PHASE_NAMES))
        if case in left_out:
            continue
        columns.seen[number] += 1
        value = None if spec is None else counted_value(spec, outcome, record.metrics)
        if value is not None:
            columns.counted[number] += 1
            columns.totals[number] += value
            columns.successes[number] += value != 0
        elif outcome is Outcome.SKIPPED_PASSED:
            columns.skipped[number] += 1
        elif outcome.value in _EXCLUDED:
            columns.excluded[number] += 1


def _issues_of(
    issues: Sequence[Sequence[Mapping[str, Any]]], executions: Sequence[int]
) -> list[tuple[str, str]]:
    """List the issues of the executions that count: what a retry has mended is not among them."""
    return [
        (issue["severity"], issue["code"])
        for each, tries in zip(issues, executions, strict=True)
        for issue in each
        if tries < 2 or issue["execution"] >= tries
    ]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"task_id is {value!r}")
    return value
