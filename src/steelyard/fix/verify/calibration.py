"""Does the baseline differ from itself? Then the machine drifts, not the candidate. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from steelyard.fix.verify.comparison import improvements_of, paired_test
from steelyard.fix.verify.measured import Measured, Objective
from steelyard.stats.multiple import holm
from steelyard.stats.trend import kendall

ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """One metric of the baseline against itself, measured again (A/A)."""

    metric: str
    pairs: int
    mean: float | None
    """The second less the first, improvements positive; None where nothing pairs."""
    p: float | None
    """Two-sided, exact; None where nothing varied."""
    p_adjusted: float | None
    """Holm's, over the metrics."""
    is_deterministic: bool
    """True where both gave the same on every seed."""
    is_steady: bool
    """False where the same code seems to differ from itself: distrust small effects."""


def calibrate(
    first: Mapping[str, Measured],
    second: Mapping[str, Measured],
    objectives: Sequence[Objective],
    alpha: float = ALPHA,
) -> tuple[Calibration, ...]:
    """Compare two measurements of the baseline with the test that candidates get.

    Args:
        first: by metric.
        second: by metric, with the same seeds; which block it came from is left aside.
        objectives: the frozen ones.
        alpha: how often a steady machine may be called unsteady.
    """
    rows = [
        improvements_of(_without_blocks(second[o.metric]), _without_blocks(first[o.metric]), o)
        if o.metric in first and o.metric in second
        else ()
        for o in objectives
    ]
    tests = [paired_test(values) for values in rows]
    # A constant shift that is not 0 has no p; nothing steady gives one, and it counts as certain.
    chances = [
        test.two_sided
        if test.two_sided is not None
        else 0.0
        if test.is_deterministic and values[0] != 0
        else 1.0
        for test, values in zip(tests, rows, strict=True)
    ]
    adjusted = holm(chances)
    return tuple(
        Calibration(
            metric=objective.metric,
            pairs=len(values),
            mean=fmean(values) if values else None,
            p=test.two_sided,
            p_adjusted=p if test.two_sided is not None else None,
            is_deterministic=bool(values) and not any(values),
            is_steady=p > alpha,
        )
        for objective, values, test, p in zip(objectives, rows, tests, adjusted, strict=True)
    )


def _without_blocks(measured: Measured) -> Measured:
    return replace(
        measured, samples=tuple(replace(sample, block=None) for sample in measured.samples)
    )


@dataclass(frozen=True, slots=True)
class Drift:
    """Whether a candidate's values rise or fall from block to block."""

    metric: str
    tau: float
    """Kendall's, from -1 to 1; above 0 where later values are larger."""
    p: float
    """Two-sided."""


def drift(measured: Measured) -> Drift | None:
    """Look for a trend over the interleaved blocks.

    Args:
        measured: samples with blocks.

    Returns:
        None below four blocks, and where nothing varied.
    """
    placed = [(s.block, s.value) for s in measured.samples if s.block is not None]
    found = kendall([float(block) for block, _ in placed], [value for _, value in placed])
    return None if found is None else Drift(measured.metric, found.tau, found.p)
