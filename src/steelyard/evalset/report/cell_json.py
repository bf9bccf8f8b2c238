"""Cells that have been read, as JSON from one process to another: sums by case, exact to the bit.

Pure. Cases have the numbers of whoever read them: who takes the cells gives them its own.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import Outcome
from steelyard.evalset.report.cell_tally import CellTally, Columns, PackCases
from steelyard.evalset.set_document import SetCell

_NUMBERS: Final = frozenset({int, float})
_OUTCOMES: Final[Mapping[str, Outcome]] = {outcome.value: outcome for outcome in Outcome}


def cells_json(root: Path, cells: Sequence[CellTally]) -> bytes:
    """Write cells that one process has read, their cases with them.

    Raises:
        TypeError, ValueError: something of it cannot be written as JSON.
    """
    if any(s.on_failure is not None and not isfinite(s.on_failure) for c in cells for s in c.specs):
        raise ValueError("JSON holds finite numbers alone")
    packs = {id(one.cases): one.cases for one in cells}
    numbers = {known: number for number, known in enumerate(packs)}
    return orjson.dumps(
        {
            "packs": [[list(pack.numbers), pack.clusters] for pack in packs.values()],
            "cells": [{"pack": numbers[id(one.cases)], **_cell_json(root, one)} for one in cells],
        }
    )


def _cell_json(root: Path, one: CellTally) -> dict[str, Any]:
    spec = one.spec
    return {
        "folder": one.cell.folder,
        "model": one.model,
        "run": None if one.run is None else str(one.run.relative_to(root)),
        "runs": [str(run.relative_to(root)) for run in one.runs],
        "outcome": one.outcome,
        "is_running": one.is_running,
        "k": one.k,
        "early_stop": one.early_stop,
        "strategy": one.strategy,
        "planned": one.planned,
        "specs": [[s.name, s.kind, s.higher_is_better, s.bounds, s.on_failure] for s in one.specs],
        "spec": None if spec is None else one.specs.index(spec),
        "columns": one.columns.all,
        "outcomes": [[outcome.value, n] for outcome, n in one.outcomes.items()],
        "issues": [[*issue, n] for issue, n in one.issues.items()],
        "durations_s": one.durations_s.tolist(),
        "unpriced": one.unpriced,
        "warnings": one.warnings,
    }


def cells_from_json(
    data: bytes, root: Path, cells: Sequence[SetCell], cases: Sequence[PackCases]
) -> list[CellTally]:
    """Read what `cells_json` wrote; a pack's cases get their numbers as if the cells were read now.

    Args:
        data: of just these cells.
        root: the set's folder.
        cells: those that were to be read, in order.
        cases: of each, its pack's.

    Raises:
        KeyError, TypeError, ValueError: it is not that; no case has got a number then.
    """
    told = orjson.loads(data)
    found = []
    packs: dict[int, PackCases] = {}
    for cell, each, pack in zip(cells, told["cells"], cases, strict=True):
        if each["folder"] != cell.folder or packs.setdefault(each["pack"], pack) is not pack:
            raise ValueError(f"{each['folder']!r} is not {cell.folder!r}")
        found.append(_cell_from_json(each, root, cell, pack, len(told["packs"][each["pack"]][0])))
    new_numbers = {
        number: [pack.number(*case) for case in zip(*told["packs"][number], strict=True)]
        for number, pack in packs.items()
    }
    for one, each in zip(found, told["cells"], strict=True):
        _renumber(one.columns, new_numbers[each["pack"]])
    return found


def _cell_from_json(
    told: Mapping[str, Any], root: Path, cell: SetCell, cases: PackCases, known: int
) -> CellTally:
    specs = tuple(
        MetricSpec(name, kind, higher, None if bounds is None else _bounds(bounds), on_failure)
        for name, kind, higher, bounds, on_failure in told["specs"]
    )
    found = CellTally(
        cell,
        cases,
        told["model"],
        run=None if told["run"] is None else root / told["run"],
        runs=tuple(root / run for run in told["runs"]),
        outcome=told["outcome"],
        is_running=told["is_running"],
        k=told["k"],
        early_stop=told["early_stop"],
        strategy=told["strategy"],
        planned=told["planned"],
        specs=specs,
        spec=None if told["spec"] is None else specs[told["spec"]],
        outcomes=Counter({_OUTCOMES[outcome]: n for outcome, n in told["outcomes"]}),
        issues=Counter({(severity, code): n for severity, code, n in told["issues"]}),
        durations_s=array("d", told["durations_s"]),
        unpriced=told["unpriced"],
        warnings=told["warnings"],
    )
    for column, values in zip(found.columns.all, told["columns"], strict=True):
        # What is no finite number is null in JSON: such sums are better made where they are used.
        if not set(map(type, values)) <= _NUMBERS or len(values) > known:
            raise ValueError(f"a sum of {cell.matrix_key} is no finite number")
        column.extend(values)
    return found


def _bounds(told: Sequence[Any]) -> tuple[float, float]:
    low, high = told
    if not {type(low), type(high)} <= _NUMBERS:
        raise ValueError(f"bounds of {told!r}")
    return low, high


def _renumber(columns: Columns, numbers: Sequence[int]) -> None:
    """Move each sum to the number that its case has here."""
    size = len(columns.seen)
    if list(numbers[:size]) == list(range(size)):  # mostly: all cells have the same cases
        return
    moved = Columns()
    moved.grow(1 + max(numbers[:size]))
    for target, column in zip(moved.all, columns.all, strict=True):
        for number, value in zip(numbers, column, strict=False):
            target[number] = value
        column[:] = target
