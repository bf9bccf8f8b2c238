"""Everything that a report of a set says, as values; `as_json` gives `evalset-report/1`."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import Any, Final

from steelyard.components.issues import COUNTED, Outcome
from steelyard.config.errors import BadInput, Where
from steelyard.config.validation import nearest
from steelyard.evalset.findings import FindingLog, Reading, finding_counts
from steelyard.evalset.report.cell_tally import CellTally
from steelyard.evalset.report.frontier import Choice, frontier
from steelyard.evalset.report.grouping import (
    Combination,
    Part,
    combinations_of,
    cost_by_case,
    pack_name,
    shared_metric,
    tally_of,
)
from steelyard.evalset.report.reading import read_cells
from steelyard.evalset.report.wins import AgentPair, win_matrix
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.spent import run_spending
from steelyard.results.comparison_json import difference_json, test_json
from steelyard.results.consumption import NO_SPENDING, Spending, without_noise
from steelyard.results.scores import estimate_over_tasks, scores
from steelyard.stats.quantiles import quantile

REPORT_SCHEMA: Final = "evalset-report/1"
NO_METRIC: Final = "the packs' metrics cannot be put together"
NOT_BEGUN: Final = "nothing has begun"
NOT_LOADED: Final = "no cases were loaded"
NO_SUCH_METRIC: Final = "the pack has no such metric"
MAX_WARNINGS: Final = 50
_FEW: Final = 5_000
"""Numbers that are sorted as fast as NumPy starts."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a row of a report is of; None where it is of several."""

    pack: str | None = None
    """`slug@version`."""
    agent: str | None = None
    model: str | None = None
    repeat: int | None = None
    matrix_key: str | None = None
    cell: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Give those that are there."""
        named = {
            "pack": self.pack, "agent": self.agent, "model": self.model, "repeat": self.repeat,
            "matrix_key": self.matrix_key, "cell": self.cell,
        }  # fmt: skip
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of some cells taken together."""

    names: Names
    metric: str | None
    scores: tuple[Mapping[str, Any], ...]
    """As `metrics/1` has them, the headline first."""
    note: str | None
    """Why there is no score."""
    planned: int | None
    """Attempts; None where no cell of a pack has loaded its cases."""
    outcomes: Mapping[Outcome, int]
    issues: Mapping[tuple[str, str], int]
    """By severity and code."""
    cost_usd: float | None
    """Of what the cells hold; None where a part has no known price."""
    known_usd: float
    cost_per_attempt: Mapping[str, Any] | None
    """An estimate over cases, in dollars; None for a single cell, and where no price is known."""
    durations: int
    """Attempts that were executed to an end."""
    p50_s: float | None
    p95_s: float | None
    outcome: str | None = None
    """Of a cell's run."""

    @property
    def counted(self) -> int:
        """Attempts that count."""
        return sum(self.outcomes.get(outcome, 0) for outcome in COUNTED)

    @property
    def headline(self) -> Mapping[str, Any] | None:
        """The score that stands for it; None where nothing was scored."""
        return self.scores[0] if self.scores else None

    @property
    def estimate(self) -> Mapping[str, Any] | None:
        """The headline's value with its interval; None where nothing was scored."""
        head = self.headline
        return None if head is None or head["estimate"]["value"] is None else head["estimate"]

    def estimator(self, start: str) -> Mapping[str, Any] | None:
        """Give the score by `pass@` or `pass^`; None where there is none of it."""
        return next((s for s in self.scores if str(s["estimator"]).startswith(start)), None)

    def as_json(self) -> dict[str, Any]:
        """Give the form of `evalset-report/1`."""
        return {
            **self.names.as_json(),
            "metric": self.metric,
            "scores": [dict(score) for score in self.scores],
            "note": self.note,
            "attempts": {
                "planned": self.planned,
                "outcomes": {o.value: self.outcomes.get(o, 0) for o in Outcome},
            },
            "issues": _issues_json(self.issues),
            "cost_usd": without_noise(self.cost_usd),
            "known_cost_usd": without_noise(self.known_usd),
            "cost_usd_per_attempt": self.cost_per_attempt,
            "duration_s": {"attempts": self.durations, "p50": self.p50_s, "p95": self.p95_s},
            **({} if self.names.cell is None else {"run_outcome": self.outcome}),
        }


@dataclass(frozen=True, slots=True)
class SetReport:
    """What came of a set."""

    set_id: str
    name: str
    state: str
    created_at: str
    whole: Row
    packs: tuple[Row, ...]
    agents: tuple[Row, ...]
    models: tuple[Row, ...]
    combinations: tuple[Row, ...]
    """All repeats of a pack under an agent and a model."""
    cells: tuple[Row, ...]
    wins: tuple[AgentPair, ...]
    choices: tuple[Choice, ...]
    """Agent and model, by cost and quality."""
    spent: Spending
    """What all runs of all cells paid themselves."""
    findings: tuple[Mapping[str, Any], ...] | None
    """What scanners found, counted; None where nothing was scanned."""
    scanned: Reading | None
    """How much of it they had to read; None where nothing was scanned."""
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Give the document `evalset-report/1`."""
        return {
            "schema": REPORT_SCHEMA,
            "set_id": self.set_id,
            "name": self.name,
            "state": self.state,
            "created_at": self.created_at,
            "whole": self.whole.as_json(),
            "packs": [row.as_json() for row in self.packs],
            "agents": [row.as_json() for row in self.agents],
            "models": [row.as_json() for row in self.models],
            "combinations": [row.as_json() for row in self.combinations],
            "cells": [row.as_json() for row in self.cells],
            "wins": [_pair_json(pair) for pair in self.wins],
            "frontier": [choice.as_json() for choice in self.choices],
            "spent": self.spent.as_json(),
            "findings": None if self.findings is None else [dict(one) for one in self.findings],
            "scanned": None if self.scanned is None else self.scanned.as_json(),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class ReadSet:
    """A set that has been read, and its report."""

    opened: OpenedSet
    cells: tuple[CellTally, ...]
    report: SetReport


def read_set(
    opened: OpenedSet, *, metric: str | None = None, with_digests: bool = False
) -> ReadSet:
    """Read a set as it stands, and make its report. Blocking; reads every record once.

    Args:
        opened: the set.
        metric: what is reported; each pack's primary metric by default.
        with_digests: whether to keep what tells one content of a case from another, for
            comparisons.

    Raises:
        BadInput: no pack that has begun has such a metric.
    """
    state = opened.state()
    cells = tuple(read_cells(opened, metric=metric, with_digests=with_digests))
    if metric is not None:
        _check_metric(metric, cells)
    return ReadSet(opened, cells, report_of_cells(opened, cells, state=state.value))


def _check_metric(metric: str, cells: Sequence[CellTally]) -> None:
    known = dict.fromkeys(spec.name for cell in cells for spec in cell.specs)
    if known and metric not in known:
        near = nearest(metric, known)
        hint = f"did you mean {near!r}? " if near else ""
        raise BadInput(
            f"no pack of the set has a metric {metric!r}",
            where=Where(field="--metric"),
            remedy=f"{hint}there are: {', '.join(known)}",
        )


def report_of_cells(opened: OpenedSet, cells: Sequence[CellTally], *, state: str) -> SetReport:
    """Make the report of cells that have been read."""
    found = combinations_of(cells)
    counts, reading = _findings(opened)
    agents = _grouped(found, lambda one: Names(agent=one.agent))
    pairs = _grouped(found, lambda one: Names(agent=one.agent, model=one.model))
    return SetReport(
        set_id=opened.set_id,
        name=opened.name,
        state=state,
        created_at=opened.document.created_at,
        whole=_row(Names(), [one.part for one in found]),
        packs=_grouped(found, lambda one: Names(pack=one.pack)),
        agents=agents,
        models=_grouped(found, lambda one: Names(model=one.model)),
        combinations=_grouped(
            found, lambda one: Names(pack=one.pack, agent=one.agent, model=one.model)
        ),
        cells=tuple(_row(_cell_names(one), [Part.of([one])]) for one in cells),
        wins=tuple(win_matrix(found)),
        choices=tuple(frontier(pairs)),
        spent=sum((run_spending(run) for one in cells for run in one.runs), NO_SPENDING),
        findings=counts,
        scanned=reading,
        warnings=tuple(_warnings(cells)),
    )


def _cell_names(one: CellTally) -> Names:
    cell = one.cell
    return Names(
        pack_name(one),
        cell.agent.shown,
        cell.cell.model_ref or one.model,
        cell.cell.repeat,
        cell.matrix_key,
        cell.index,
    )


def _grouped(
    found: Iterable[Combination], named: Callable[[Combination], Names]
) -> tuple[Row, ...]:
    groups: dict[Names, list[Part]] = {}
    for one in found:
        groups.setdefault(named(one), []).append(one.part)
    return tuple(_row(names, parts) for names, parts in groups.items())


def _row(names: Names, parts: Sequence[Part]) -> Row:
    is_cell = names.cell is not None
    cells = [cell for part in parts for cell in part.cells]
    tally = tally_of(parts)
    found = (
        ()
        if tally is None
        else tuple(map(_plain, scores(tally, is_brief=True, takes_decided=False)))
    )
    outcomes: Counter[Outcome] = Counter()
    issues: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        outcomes.update(cell.outcomes)
        issues.update(cell.issues)
    planned = None if any(p.planned is None for p in parts) else sum(p.planned or 0 for p in parts)
    recorded = sum(outcomes.values())
    if planned is not None:
        planned = max(planned, recorded)
        outcomes[Outcome.NOT_STARTED] += planned - recorded
    spec = shared_metric(parts)
    known = fsum(cell.known_usd for cell in cells)
    ordered = _ordered([cell.durations_s for cell in cells])
    return Row(
        names=names,
        metric=None if spec is None else spec.name,
        scores=found,
        note=None if found else _why_none(parts),
        planned=planned,
        outcomes=outcomes,
        issues=issues,
        cost_usd=None if any(cell.unpriced for cell in cells) else known,
        known_usd=known,
        cost_per_attempt=None if is_cell else _cost_per_attempt(parts),
        durations=len(ordered),
        p50_s=_rounded(quantile(ordered, 0.5)),
        p95_s=_rounded(quantile(ordered, 0.95)),
        outcome=_cell_outcome(cells[0]) if is_cell else None,
    )


def _ordered(durations_s: Sequence[array[float]]) -> Sequence[float]:
    """Sort the durations of some cells."""
    if sum(map(len, durations_s)) < _FEW:
        return sorted(chain.from_iterable(durations_s))
    import numpy as np  # several times as fast, and worth its start only where there are many

    joined = np.concatenate([np.frombuffer(each) for each in durations_s if each])
    joined.sort()
    return array("d", joined.tobytes())


def _plain(score: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what a set does not have: categories are the packs' own."""
    return {name: value for name, value in score.items() if name not in {"categories"}}


def _why_none(parts: Sequence[Part]) -> str:
    if all(cell.run is None for part in parts for cell in part.cells):
        return NOT_BEGUN
    if all(part.planned is None for part in parts):
        return NOT_LOADED
    if all(part.spec is None for part in parts):
        return NO_SUCH_METRIC
    return NO_METRIC


def _cost_per_attempt(parts: Sequence[Part]) -> dict[str, Any] | None:
    values, clusters = cost_by_case(parts)
    if not values:
        return None
    return estimate_over_tasks(
        values, clusters, is_one_binary_attempt=False, bounds=(0.0, float("inf"))
    )


def _cell_outcome(cell: CellTally) -> str:
    if cell.run is None:
        return "pending"
    if cell.is_running:
        return "running"
    return cell.outcome or "interrupted"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _warnings(cells: Sequence[CellTally]) -> list[str]:
    """Say what of the runs could not be read, and which cells are missing."""
    found = list(dict.fromkeys(w for cell in cells for w in cell.warnings))
    pending = sum(cell.run is None for cell in cells)
    if pending:
        found.insert(0, f"{pending} of {len(cells)} cells have not begun")
    if len(found) > MAX_WARNINGS:
        found[MAX_WARNINGS:] = [f"and {len(found) - MAX_WARNINGS} more warnings"]
    return found


def _issues_json(issues: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [
        {"severity": severity, "code": code, "count": count}
        for (severity, code), count in sorted(issues.items())
    ]


def _pair_json(pair: AgentPair) -> dict[str, Any]:
    difference, test = pair.difference, pair.test
    return {
        "first": pair.first,
        "second": pair.second,
        "wins": pair.tally.wins,
        "ties": pair.tally.ties,
        "losses": pair.tally.losses,
        "difference": None if difference is None else difference_json(difference),
        "test": None if test is None else {**test_json(test), "p_holm": pair.p_holm},
    }


def _findings(
    opened: OpenedSet,
) -> tuple[tuple[Mapping[str, Any], ...] | None, Reading | None]:
    """Count what scanners found, where a set was scanned, and what they had to read."""
    if not opened.files.findings.exists() and not opened.files.scans.exists():
        return None, None
    log = FindingLog(opened.files)
    return tuple(finding_counts(opened, log)), log.reading()
