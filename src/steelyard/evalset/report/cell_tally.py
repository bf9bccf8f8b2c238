"""What a report needs of each cell: sums by case, never a record."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import Outcome
from steelyard.evalset.set_document import PinnedPack, SetCell


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
