"""The figures of a run as typed values; each stands beside how sure it is and what it covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.results.figures import figure, pair


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over tasks with its uncertainty; see "statistics" in the docs of results."""

    value: float | None
    """None where nothing was scored."""
    standard_error: float | None
    """Clustered by task, or by the benchmark's clusters."""
    interval: tuple[float, float] | None
    """At `level`; None where `note` says why there is none."""
    interval_method: str | None
    """`wilson` or `t`."""
    level: float
    tasks: int
    clusters: int
    note: str | None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Estimate:
        """Read an estimate of `metrics.json`."""
        interval = data["interval"]
        return cls(
            data["value"],
            data["standard_error"],
            None if interval is None else (interval[0], interval[1]),
            data["interval_method"],
            data["level"],
            data["tasks"],
            data["clusters"],
            data["note"],
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the planned attempts stand behind a figure."""

    planned: int
    counted: int
    excluded: int
    """Left out by the benchmark's own rule for failures."""
    missing: int
    fraction: float | None
    """counted / planned; None where nothing was planned."""


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one run by one estimator."""

    metric: str
    estimator: str
    """`avg@k`, `pass@k` or `pass^k`, with k written out."""
    kind: str
    """`binary` or `scalar`."""
    higher_is_better: bool
    is_primary: bool
    is_headline: bool
    """True for the one figure that stands for the run."""
    is_official: bool
    """False where attempts are missing: the value then covers only what was scored."""
    estimate: Estimate
    coverage: Coverage
    bounds: tuple[float, float] | None
    """Worst and best that missing attempts could make of it; None for a metric without bounds."""
    failures_as_zero: float | None
    """The value with every attempt that has none counted as 0."""
    categories: Mapping[str, Estimate]

    @property
    def value(self) -> float | None:
        """The estimate's value; None where nothing was scored."""
        return self.estimate.value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The estimate's interval; None where there is none."""
        return self.estimate.interval

    @property
    def standard_error(self) -> float | None:
        """The estimate's standard error; None where it is not known."""
        return self.estimate.standard_error

    def __str__(self) -> str:
        value = "–" if self.value is None else figure(self.value)
        sure = "" if self.interval is None else f" {pair(self.interval)}"
        covered = f"{self.coverage.counted}/{self.coverage.planned}"
        mark = "" if self.is_official else ", not official"
        return f"{self.metric} {self.estimator}: {value}{sure} ({covered}{mark})"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Score:
        """Read a score of `metrics.json`."""
        bounds, coverage = data["bounds"], data["coverage"]
        return cls(
            data["metric"],
            data["estimator"],
            data["kind"],
            data["higher_is_better"],
            data["is_primary"],
            data["is_headline"],
            data["official"] is not None,
            Estimate.from_json(data["estimate"]),
            Coverage(
                coverage["planned"],
                coverage["counted"],
                coverage["excluded"],
                coverage["missing"],
                coverage["fraction"],
            ),
            None if bounds is None else (bounds[0], bounds[1]),
            data["failures_as_zero"],
            {name: Estimate.from_json(each) for name, each in data["categories"].items()},
        )
