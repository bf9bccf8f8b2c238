"""What was measured of one candidate in one metric: all that verification takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import Literal

Direction = Literal["min", "max"]


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric of the frozen spec, and which way is better."""

    metric: str
    direction: Direction
    unit: str = ""

    def worth(self, value: float) -> float:
        """Turn a value so that more is better."""
        return value if self.direction == "max" else -value

    def cost(self, value: float) -> float:
        """Turn a value so that less is better."""
        return value if self.direction == "min" else -value


@dataclass(frozen=True, slots=True)
class Sample:
    """What one completed trial gave."""

    repetition: int
    seed: int
    value: float
    block: int | None = None
    """Which interleaved block the trial belongs to; None where there are none."""

    @property
    def pair(self) -> tuple[int, int | None]:
        """What a sample of another candidate must share to be compared with this one."""
        return self.seed, self.block


@dataclass(frozen=True, slots=True)
class Measured:
    """The completed samples of one candidate in one metric."""

    candidate: str
    metric: str
    samples: tuple[Sample, ...]

    def __post_init__(self) -> None:
        pairs = [sample.pair for sample in self.samples]
        if len(set(pairs)) < len(pairs):
            raise ValueError(f"{self.candidate}: a seed of {self.metric} was measured twice")
        if not all(isfinite(sample.value) for sample in self.samples):
            raise ValueError(f"{self.candidate}: a value of {self.metric} is not finite")

    @property
    def values(self) -> tuple[float, ...]:
        """The values, in the order of the samples."""
        return tuple(sample.value for sample in self.samples)

    @property
    def is_deterministic(self) -> bool:
        """True where at least two values were measured and all are the same."""
        return len(self.samples) > 1 and min(self.values) == max(self.values)


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the range that was observed."""

    median: float
    low: float
    high: float
    count: int


def spread(measured: Measured) -> Spread | None:
    """Give the median and observed range; None where nothing was measured."""
    values = measured.values
    if not values:
        return None
    return Spread(median(values), min(values), max(values), len(values))


def measured_of(
    candidate: str, metric: str, values: Sequence[float], seeds: Sequence[int] | None = None
) -> Measured:
    """Make a `Measured` of values in the order of repetitions.

    Args:
        candidate: whose.
        metric: of what.
        values: one a repetition.
        seeds: one a repetition; 0, 1, 2, … by default.
    """
    chosen = range(len(values)) if seeds is None else seeds
    return Measured(
        candidate,
        metric,
        tuple(
            Sample(repetition, seed, value)
            for repetition, (seed, value) in enumerate(zip(chosen, values, strict=True))
        ),
    )


@dataclass(frozen=True, slots=True)
class Paired:
    """What two candidates gave on the seeds they share, in the order of the first's samples."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    unpaired: int
    """Samples of either that the other has no counterpart of."""


def paired(ours: Measured, theirs: Measured) -> Paired:
    """Bring together what was measured with the same seed in the same block.

    Raises:
        ValueError: they are of different metrics.
    """
    if ours.metric != theirs.metric:
        raise ValueError(f"{ours.metric} cannot be compared with {theirs.metric}")
    others: Mapping[tuple[int, int | None], float] = {s.pair: s.value for s in theirs.samples}
    shared = [sample for sample in ours.samples if sample.pair in others]
    return Paired(
        tuple(sample.value for sample in shared),
        tuple(others[sample.pair] for sample in shared),
        len(ours.samples) + len(theirs.samples) - 2 * len(shared),
    )
