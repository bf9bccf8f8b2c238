"""What the records of a cell say of its cases so far; reads on from where it stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.components.benchmark import MetricSpec
from steelyard.components.issues import Outcome
from steelyard.results.documents import part
from steelyard.results.index import KNOWN_ATTEMPT_SCHEMAS
from steelyard.results.layout import RunFiles
from steelyard.results.lines import LineFile
from steelyard.results.scores import estimate_over_tasks
from steelyard.results.tallies import counted_value, metric_specs


@dataclass(frozen=True, slots=True)
class Score:
    """A mean over cases, and how sure it is."""

    value: float
    low: float | None
    """Of the 95% interval; None where the cases are too few, or all alike."""
    high: float | None
    cases: int
    clusters: int
    """What of them is independent of each other, by the benchmark."""
    attempts: int
    note: str | None = None
    """Why there is no interval."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of documents."""
        interval = None if self.low is None else [self.low, self.high]
        return {
            "value": self.value,
            "interval": interval,
            "cases": self.cases,
            "clusters": self.clusters,
            "attempts": self.attempts,
            "note": self.note,
        }


class CaseScores:
    """The primary metric of each attempt of a run, failures by the benchmark's rule among them."""

    def __init__(self, root: Path, document: Mapping[str, Any]) -> None:
        """Follow a run.

        Args:
            root: the run directory.
            document: its `run.json`.
        """
        info = part(dict(document), "benchmark_info")
        primary = str(info.get("primary"))
        self._path = RunFiles(root).attempts
        self._position = 0
        self.spec: MetricSpec | None = next(
            (spec for spec in metric_specs(info) if spec.name == primary), None
        )
        self._values: dict[tuple[str, int], float] = {}
        self._clusters: dict[str, str] = {}

    def read_on(self) -> None:
        """Take in what was recorded since; a line that is being written is left for later."""
        spec = self.spec
        if spec is None:
            return
        scan = LineFile(self._path, known=KNOWN_ATTEMPT_SCHEMAS, start=self._position)
        with suppress(OSError):
            for _, data in scan:
                self._add(spec, data)
        self._position = scan.end

    def _add(self, spec: MetricSpec, data: Mapping[str, Any]) -> None:
        case, attempt = data.get("task_id"), data.get("attempt")
        if not isinstance(case, str) or not isinstance(attempt, int):
            return
        value = None
        with suppress(ValueError):  # no outcome: a report names it
            outcome = Outcome(str(data.get("outcome")))
            given = part(dict(data), "metrics").get(spec.name)
            # Only numbers: the line may have been written by anybody.
            metrics = {spec.name: given} if isinstance(given, int | float) else {}
            value = counted_value(spec, outcome, metrics)
        if value is not None:
            self._values[case, attempt] = value
            cluster = data.get("cluster")
            if isinstance(cluster, str):
                self._clusters[case] = cluster
        else:
            self._values.pop((case, attempt), None)

    def values(self) -> Iterator[tuple[str, str, float]]:
        """Iterate over (case, its cluster, value) of the attempts that count."""
        for (case, _), value in self._values.items():
            yield case, self._clusters.get(case, case), value


def score_over(parts: Iterable[tuple[str, CaseScores]]) -> Score | None:
    """Give the mean over the cases of several cells; None where nothing was scored.

    A case's figure is the mean of its attempts over all cells, so repeats do not pass for more
    cases. The error is clustered by case, or by the benchmark's clusters.

    Args:
        parts: each cell's scores with what tells the cases of its pack from those of others.
    """
    sums: dict[tuple[str, str], list[float]] = {}
    clusters: dict[tuple[str, str], str] = {}
    bounds: set[tuple[float, float] | None] = set()
    is_binary, attempts = True, 0
    for pack, scores in parts:
        if scores.spec is not None:
            bounds.add(scores.spec.bounds)
            is_binary &= scores.spec.kind == "binary"
        for case, cluster, value in scores.values():
            attempts += 1
            sums.setdefault((pack, case), []).append(value)
            clusters[pack, case] = f"{pack}\0{cluster}"
    if not sums:
        return None
    means = [sum(values) / len(values) for values in sums.values()]
    estimate = estimate_over_tasks(
        means,
        [clusters[key] for key in sums],
        is_one_binary_attempt=is_binary and attempts == len(sums),
        bounds=bounds.pop() if len(bounds) == 1 else None,
    )
    low, high = estimate["interval"] or (None, None)
    return Score(
        estimate["value"],
        low,
        high,
        len(sums),
        estimate["clusters"],
        attempts,
        estimate["note"],
    )
