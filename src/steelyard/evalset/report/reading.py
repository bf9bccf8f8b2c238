"""Read all cells of a set, each once, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import orjson

from steelyard.evalset.report.cell_tally import CellTally, PackCases
from steelyard.evalset.report.record_sums import Twice, add_records
from steelyard.evalset.report.second_reader import second_reader
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.documents import RunUnreadable, part
from steelyard.results.index import KNOWN_ATTEMPT_SCHEMAS
from steelyard.results.journal import EventKind
from steelyard.results.lines import LineFile
from steelyard.results.newest import newest_of
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.reader import RunReader, RunState
from steelyard.results.records_io import record_to_json
from steelyard.results.tallies import metric_specs


def read_cells(
    opened: OpenedSet, *, metric: str | None = None, with_digests: bool = False
) -> list[CellTally]:
    """Read all cells of a set, those of a large one by two processes.

    Args:
        opened: the set.
        metric: what is reported; each pack's primary metric by default.
        with_digests: whether to keep what tells one content of a case from another.
    """
    packs = PacksOfCells()
    helper = None if with_digests else second_reader(opened, metric)
    if helper is None:
        found = read_each(opened, opened.cells, packs, metric, with_digests=with_digests)
    else:
        with helper:
            rest = opened.cells[helper.first :]
            found = read_each(opened, opened.cells[: helper.first], packs, metric)
            more = helper.cells([packs.cases(cell) for cell in rest])
            found += read_each(opened, rest, packs, metric) if more is None else more
    for cases in packs.all:
        of_pack = [one for one in found if one.cases is cases]
        cases.planned = max((one.planned for one in of_pack if one.planned is not None),
                            default=None)  # fmt: skip
        for one in of_pack:
            one.columns.grow(len(cases.numbers))
    return found


class PacksOfCells:
    """The cases of each pack version, as they are met."""

    def __init__(self) -> None:
        self._cases: dict[tuple[str, int, str], PackCases] = {}

    @property
    def all(self) -> Iterable[PackCases]:
        """Those met so far."""
        return self._cases.values()

    def cases(self, cell: SetCell) -> PackCases:
        """Give those of a cell's pack."""
        pack = cell.pack
        return self._cases.setdefault((pack.slug, pack.version, pack.digest), PackCases(pack))


def read_each(
    opened: OpenedSet,
    cells: Iterable[SetCell],
    packs: PacksOfCells,
    metric: str | None,
    *,
    with_digests: bool = False,
) -> list[CellTally]:
    """Read some cells of a set, one after the other."""
    return [
        _read_cell(opened, cell, packs.cases(cell), metric, with_digests=with_digests)
        for cell in cells
    ]


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
            add_records(found, _raw_records(reader), with_digests=with_digests)
        except Twice:
            found = _described(nothing, reader, metric)
            again = (record_to_json(record) for record in reader.records())
            add_records(found, again, with_digests=with_digests)
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
        raise Twice  # the reader knows what of it is a fault, and how to say it
