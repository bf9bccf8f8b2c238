"""What a report needs of each cell: sums by case, never a record. Read once, in bounded memory.

200,000 records are read in the time a screen takes to draw, so only the fields that are summed are
looked at; a file in which an attempt stands twice is read again by the reader that sorts that out.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import Outcome
from steelyard.evalset.set_document import PinnedPack, SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.calibration import read_calibration
from steelyard.results.documents import RunUnreadable, part
from steelyard.results.index import KNOWN_ATTEMPT_SCHEMAS
from steelyard.results.journal import EventKind
from steelyard.results.lines import LineFile
from steelyard.results.newest import newest_of
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.reader import RunReader, RunState
from steelyard.results.records_io import record_to_json
from steelyard.results.summary import planned_without
from steelyard.results.tallies import counted_value, metric_specs

_OUTCOMES: Final[Mapping[str, Outcome]] = {outcome.value: outcome for outcome in Outcome}
_EXCLUDED: Final = frozenset({Outcome.FAILED_ERROR.value, Outcome.TIMED_OUT.value})
_SKIPPED: Final = Outcome.SKIPPED_PASSED.value
_CANCELLED: Final = Outcome.CANCELLED.value
_FIELDS: Final = itemgetter(
    "task_id", "outcome", "attempt", "timing", "executions", "metrics", "usage", "issues"
)
_PHASES: Final = itemgetter("setup_s", "agent_s", "waited_s", "collect_s", "evaluate_s")
_MOST_ATTEMPTS: Final = 1 << 40
"""At one case: a case and an attempt are then one number."""


class _Twice(Exception):
    """An attempt has two records in one file."""


@dataclass
class PackCases:
    """The cases of a pack version, numbered as they are met in any cell."""

    pack: PinnedPack
    numbers: dict[str, int] = field(default_factory=dict)
    clusters: list[str | None] = field(default_factory=list)
    """By case: the benchmark's cluster."""
    planned: int | None = None
    """Cases of a run; None where no cell has loaded them."""

    @cached_property
    def names(self) -> list[str]:
        """What each case is clustered by: the benchmark's cluster, or itself. Ask when all are in.

        With the pack's name, for packs are taken together, too.
        """
        pack = f"{self.pack.slug}@{self.pack.version}"
        return [
            f"{pack}/{number}" if cluster is None else f"{pack}#{cluster}"
            for number, cluster in enumerate(self.clusters)
        ]

    def number(self, case: str, cluster: object) -> int:
        """Give a case's number."""
        found = self.numbers.get(case)
        if found is None:
            found = self.numbers[case] = len(self.numbers)
            self.clusters.append(cluster if isinstance(cluster, str) else None)
        return found


class Columns:
    """Sums by case, as long as the case with the highest number needs.

    Lists, since adding to an array's element makes a number each time; 2,000 cells of 100 cases
    take some 30 MiB.
    """

    def __init__(self) -> None:
        self.seen: list[int] = []
        """Records."""
        self.counted: list[int] = []
        self.totals: list[float] = []
        self.successes: list[int] = []
        self.excluded: list[int] = []
        self.skipped: list[int] = []
        self.priced: list[int] = []
        """Attempts that were executed and have a known cost."""
        self.cost_usd: list[float] = []
        """Of those."""

    def grow(self, cases: int) -> None:
        """Make room."""
        more = cases - len(self.seen)
        if more > 0:
            for column in self.all:
                column.extend([0] * more)

    @classmethod
    def added(cls, parts: Sequence[Columns]) -> Columns:
        """Add up columns of one length."""
        if len(parts) == 1:
            return parts[0]
        found = cls()
        for target, columns in zip(
            found.all, zip(*(p.all for p in parts), strict=True), strict=True
        ):
            target.extend(map(sum, zip(*columns, strict=True)))
        return found

    @property
    def all(self) -> tuple[list[Any], ...]:
        """Every column."""
        return (
            self.seen, self.counted, self.totals, self.successes, self.excluded, self.skipped,
            self.priced, self.cost_usd,
        )  # fmt: skip


@dataclass(slots=True)
class CellTally:
    """One cell, summed up by case."""

    cell: SetCell
    cases: PackCases
    model: str
    """What was sent to the endpoint; the axis's where nothing has begun."""
    run: Path | None = None
    """Its newest run; None where nothing of it has begun."""
    runs: tuple[Path, ...] = ()
    """All its runs."""
    outcome: str | None = None
    """How that run ended; None where it has not, or died."""
    is_running: bool = False
    k: int = 1
    early_stop: bool = False
    strategy: str = "avg"
    planned: int | None = None
    """Cases; None where it has not loaded them."""
    specs: tuple[MetricSpec, ...] = ()
    spec: MetricSpec | None = None
    """Of the metric that is reported; None where the pack has no such metric."""
    columns: Columns = field(default_factory=Columns)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    issues: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(severity, code) of the executions that count."""
    durations_s: array[float] = field(default_factory=lambda: array("d"))
    """Of executed attempts that were not cancelled."""
    unpriced: int = 0
    """Executed attempts without a known price."""
    digests: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)
    """By case: what the agent is shown, and what scores it; only where asked for."""
    warnings: list[str] = field(default_factory=list)

    @property
    def known_usd(self) -> float:
        """Dollars whose price is known."""
        return sum(self.columns.cost_usd)


def read_cells(
    opened: OpenedSet, *, metric: str | None = None, with_digests: bool = False
) -> list[CellTally]:
    """Read all cells of a set.

    Args:
        opened: the set.
        metric: what is reported; each pack's primary metric by default.
        with_digests: whether to keep what tells one content of a case from another.
    """
    packs: dict[tuple[str, int, str], PackCases] = {}
    found = []
    for cell in opened.cells:
        pack = cell.pack
        key = pack.slug, pack.version, pack.digest
        cases = packs.setdefault(key, PackCases(pack))
        found.append(_read_cell(opened, cell, cases, metric, with_digests=with_digests))
    for cases in packs.values():
        of_pack = [one for one in found if one.cases is cases]
        cases.planned = max((one.planned for one in of_pack if one.planned is not None),
                            default=None)  # fmt: skip
        for one in of_pack:
            one.columns.grow(len(cases.numbers))
    return found


def _read_cell(
    opened: OpenedSet, cell: SetCell, cases: PackCases, metric: str | None, *, with_digests: bool
) -> CellTally:
    nothing = CellTally(cell, cases, cell.cell.model_ref or "–")
    runs = opened.run_dirs(cell)
    newest = runs[0] if len(runs) == 1 else getattr(newest_of(runs), "root", None)
    if newest is None:
        return nothing
    nothing.runs = tuple(runs)
    try:
        reader = RunReader(newest)
        found = _described(nothing, reader, metric)
        try:
            _add_records(found, _raw_records(reader), with_digests=with_digests)
        except _Twice:
            found = _described(nothing, reader, metric)
            again = (record_to_json(record) for record in reader.records())
            _add_records(found, again, with_digests=with_digests)
        found.warnings += reader.warnings
    except RunUnreadable as error:
        nothing.run = newest
        nothing.warnings.append(f"{cell.matrix_key}: {error.reason}")
        return nothing
    return found


def _described(nothing: CellTally, reader: RunReader, metric: str | None) -> CellTally:
    """Take what `run.json` and the journal's beginning and end say."""
    document, plan = reader.document, reader.plan
    info = part(document, "benchmark_info")
    specs = metric_specs(info)
    wanted = metric or str(info.get("primary"))
    k = plan.get("k")
    strategy = str(plan.get("strategy") or "avg")
    early_stop = plan.get("early_stop")
    model = part(part(document, "request"), "model").get("id")
    found = CellTally(
        nothing.cell,
        nothing.cases,
        str(model) if model is not None else "none",
        run=reader.root,
        runs=nothing.runs,
        k=k if isinstance(k, int) and k > 0 else 1,
        early_stop=strategy == "pass" if early_stop is None else bool(early_stop),
        strategy=strategy,
        specs=specs,
        spec=next((spec for spec in specs if spec.name == wanted), None),
    )
    _add_events(found, reader)
    return found


def _add_events(found: CellTally, reader: RunReader) -> None:
    """Take how many cases were planned, and how the run ended."""
    for event in reader.events():
        if event.get("kind") == EventKind.PLANNED:
            tasks = event.get("tasks")
            if isinstance(tasks, int) and tasks >= 0:
                found.planned = tasks
            break
    # The snapshot repeats the journal's last event, for which all events would have to be read.
    with suppress(OSError, ValueError, AttributeError):
        snapshot = orjson.loads(read_plain(reader.files.progress, MAX_DOCUMENT_BYTES))
        found.outcome = snapshot.get("outcome")
    if found.outcome is None:
        found.is_running = reader.state is RunState.RUNNING
        found.outcome = None if reader.finished is None else str(reader.finished.get("outcome"))


def _raw_records(reader: RunReader) -> Iterator[Mapping[str, Any]]:
    path = reader.files.attempts
    lines = LineFile(path, known=KNOWN_ATTEMPT_SCHEMAS)
    try:
        for _, data in lines:
            yield data
    except OSError as error:
        raise RunUnreadable(path, f"cannot be read: {error.strerror or error}") from error
    if lines.damage is not None:
        raise _Twice  # the reader knows what of it is a fault, and how to say it


def _add_records(
    found: CellTally, records: Iterable[Mapping[str, Any]], *, with_digests: bool
) -> None:
    """Add a cell's records up.

    Raises:
        _Twice: an attempt has two records, or the file is damaged.
    """
    left_out = frozenset[str]()
    if found.run is not None:
        calibration, fault = read_calibration(found.run)
        left_out = frozenset(calibration["left_out"] if calibration is not None else ())
        found.warnings += [] if fault is None else [fault]
    columns, cases, spec = found.columns, found.cases, found.spec
    columns.grow(len(cases.numbers))
    # Local names, columns too, and texts in place of enumerations: this runs 200,000 times.
    numbers, durations = cases.numbers, found.durations_s
    of_seen, of_counted, of_totals, of_successes, of_excluded, of_skipped, of_priced, of_cost = (
        columns.all
    )
    scored, name = Outcome.SCORED.value, None if spec is None else spec.name
    counts = dict.fromkeys(_OUTCOMES, 0)
    seen: set[int] = set()
    for data in records:
        try:
            case, outcome, attempt, timing, executions, metrics, usage, issues = _FIELDS(data)
            number = numbers.get(case)
            if number is None:
                number = cases.number(_text(case), data.get("cluster"))
                columns.grow(number + 1)
            cost = usage["cost_usd"]
            if name is None or case in left_out:
                value = None
            elif outcome == scored and name in metrics:  # the rule's usual branch
                value = float(metrics[name])
            else:
                value = counted_value(spec, _OUTCOMES[outcome], metrics) if spec else None
            seconds = sum(_PHASES(timing))
            key = number * _MOST_ATTEMPTS + attempt
            of_cost[number] += cost or 0.0
            counts[outcome] += 1
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            named = f"case {data.get('task_id')!r}, attempt {data.get('attempt')}"
            found.warnings.append(f"{found.cell.matrix_key}: {named}: no record ({error!r})")
            continue
        if key in seen:
            raise _Twice
        seen.add(key)
        if issues:
            _add_issues(found, issues, executions)
        if executions or data.get("reused_from") is not None:
            if cost is None:
                found.unpriced += 1
            else:
                of_priced[number] += 1
            if executions and outcome != _CANCELLED:
                durations.append(seconds)
        if with_digests:
            found.digests[number] = data.get("content"), data.get("evaluation")
        if case in left_out:
            continue
        of_seen[number] += 1
        if value is not None:
            of_counted[number] += 1
            of_totals[number] += value
            of_successes[number] += value != 0
        elif outcome == _SKIPPED:
            of_skipped[number] += 1
        elif outcome in _EXCLUDED:
            of_excluded[number] += 1
    found.outcomes.update({_OUTCOMES[outcome]: n for outcome, n in counts.items() if n})
    if found.planned is None:  # it died before that was written: what has a record was planned
        found.planned = sum(1 for each in columns.seen if each)
    else:
        tasks = planned_without(found.planned * found.k, {"k": found.k}, left_out)
        found.planned = tasks // found.k


def _add_issues(found: CellTally, issues: Any, executions: int) -> None:
    """Count the issues of the execution that counts: what a retry has mended is not among them."""
    for issue in issues:
        if executions < 2 or issue.get("execution", 1) >= executions:
            found.issues[str(issue.get("severity")), str(issue.get("code"))] += 1


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"task_id is {value!r}")
    return value
