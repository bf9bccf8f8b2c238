"""Cells taken together: repeats of one combination, all that an agent did, the whole set. Pure.

A case is the unit. The repeats of a (pack, agent, model, case), and the k attempts in each, are
its attempts: it has one figure in a combination. Where packs, agents or models are taken together,
the figures of one case are a cluster, for they say less than as many cases.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Final

from steelyard.components.benchmark import MetricSpec
from steelyard.evalset.report.cell_tally import CellTally, Columns, PackCases
from steelyard.results.tallies import MetricTally, RunTally

MIXED: Final = "score"
"""What the metric of packs with different ones is called."""


@dataclass(frozen=True, slots=True)
class Part:
    """The cases of one pack under one agent and model, over some repeats."""

    cells: tuple[CellTally, ...]
    cases: PackCases
    columns: Columns
    spec: MetricSpec | None
    k: int
    """Attempts at each case, over all repeats."""

    @classmethod
    def of(cls, cells: Sequence[CellTally], alike: CellTally | None = None) -> Part:
        """Take the repeats of a combination together, those that have not begun, too.

        Args:
            cells: the repeats.
            alike: a cell of the pack that has begun. What none of the repeats says, it does: all
                of a combination that has not begun is missing, and not left out.
        """
        begun = [cell.k for cell in (*cells, *([alike] if alike else [])) if cell.run is not None]
        usual = begun[0] if begun else 1
        spec = next((cell.spec for cell in cells if cell.spec is not None), None)
        return cls(
            tuple(cells),
            cells[0].cases,
            Columns.added([cell.columns for cell in cells]),
            alike.spec if spec is None and alike is not None else spec,
            sum(usual if cell.run is None else cell.k for cell in cells),
        )

    @property
    def planned_cases(self) -> int | None:
        """None where no cell of the pack has loaded its cases."""
        planned = self.cases.planned
        return None if planned is None else max(planned, sum(map(bool, self.columns.seen)))

    @property
    def planned(self) -> int | None:
        """Attempts."""
        cases = self.planned_cases
        return None if cases is None else cases * self.k


@dataclass(frozen=True, slots=True)
class Combination:
    """A pack under an agent and a model: all its repeats."""

    part: Part
    pack: str
    """`slug@version`."""
    pack_ref: str
    agent: str
    model_ref: str | None
    model: str
    """What was sent to the endpoint."""


def combinations_of(cells: Iterable[CellTally]) -> list[Combination]:
    """Take repeats together, in the order of their first cells."""
    groups: dict[tuple[str, str, str | None], list[CellTally]] = {}
    begun: dict[str, CellTally] = {}
    for one in cells:
        cell = one.cell
        if one.run is not None and one.spec is not None:
            begun.setdefault(cell.pack.ref, one)
        key = cell.pack.ref, cell.agent.shown, cell.cell.model_ref
        groups.setdefault(key, []).append(one)
    return [
        Combination(
            Part.of(members, begun.get(ref)),
            pack_name(members[0]),
            ref,
            agent,
            model_ref,
            model_ref or _model(members),
        )
        for (ref, agent, model_ref), members in groups.items()
    ]


def pack_name(one: CellTally) -> str:
    """Give a pack's name in reports: `slug@version`."""
    return f"{one.cell.pack.slug}@{one.cell.pack.version}"


def _model(cells: Sequence[CellTally]) -> str:
    return next((cell.model for cell in cells if cell.run is not None), cells[0].model)


def shared_metric(parts: Iterable[Part]) -> MetricSpec | None:
    """Give the metric in which parts can be taken together; None where there is none.

    Packs have metrics of their own. A mean over them says something where all of these go from 0
    to 1 and more is better, or where they are one and the same.
    """
    specs = list(dict.fromkeys(part.spec for part in parts if part.spec is not None))
    if len(specs) < 2:
        return specs[0] if specs else None
    first = specs[0]
    if any(spec.bounds != (0.0, 1.0) or not spec.higher_is_better for spec in specs):
        is_same = len({(s.name, s.kind, s.higher_is_better, s.bounds) for s in specs}) == 1
        return first if is_same else None
    name = first.name if len({spec.name for spec in specs}) == 1 else MIXED
    kinds = {spec.kind for spec in specs}
    return MetricSpec(name, "binary" if kinds == {"binary"} else "scalar", True, (0.0, 1.0), None)


def tally_of(parts: Sequence[Part]) -> RunTally | None:
    """Give parts as a run's tally, so that the rules for runs hold for sets.

    Returns:
        None where the parts share no metric, or none of them has loaded its cases.
    """
    spec = shared_metric(parts)
    known = [part for part in parts if part.spec is not None and part.planned_cases is not None]
    if spec is None or not known:
        return None
    metric = MetricTally()
    clusters: list[str] = []
    skipped: list[int] = []
    attempts: list[int] = []
    planned_attempts = 0
    for part in known:
        columns = part.columns
        kept = [number for number, seen in enumerate(columns.seen) if seen]
        is_whole = len(kept) == len(columns.seen)
        unseen = (part.planned_cases or 0) - len(kept)
        names = part.cases.names
        for target, column in (
            (metric.counted, columns.counted),
            (metric.totals, columns.totals),
            (metric.successes, columns.successes),
            (metric.excluded, columns.excluded),
            (skipped, columns.skipped),
        ):
            _extend(target, column if is_whole else [column[n] for n in kept], unseen)
        clusters += names if is_whole else [names[n] for n in kept]
        clusters += [f"{part.cases.pack.slug}?{number}" for number in range(unseen)]
        attempts += [part.k] * (len(kept) + unseen)
        planned_attempts += part.planned or 0
    each = {part.k for part in known}
    cells = [cell for part in known for cell in part.cells if cell.run is not None]
    return RunTally(
        specs=(spec,),
        metrics=(metric,),
        primary=spec.name,
        k=min(each),
        strategy="pass" if any(cell.strategy == "pass" for cell in cells) else "avg",
        early_stop=any(cell.early_stop and cell.k > 1 for cell in cells),
        categories=[None] * len(clusters),
        clusters=clusters,
        skipped=skipped,
        planned_tasks=len(clusters),
        planned_attempts=planned_attempts,
        counted_attempts=sum(metric.counted) + sum(metric.excluded) + sum(skipped),
        attempts=attempts if len(each) > 1 else None,
    )


def _extend(target: array[Any] | list[int], column: Sequence[Any], unseen: int) -> None:
    target.extend(chain(column, repeat(0, unseen)))


def cost_by_case(parts: Sequence[Part]) -> tuple[list[float], list[str]]:
    """Give what an attempt at a case cost on average, and what each is clustered by."""
    values: list[float] = []
    clusters: list[str] = []
    for part in parts:
        for number, n in enumerate(part.columns.priced):
            if n:
                values.append(part.columns.cost_usd[number] / n)
                clusters.append(part.cases.names[number])
    return values, clusters
