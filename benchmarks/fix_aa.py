"""How often a fix run confirms what is no improvement, and finds what is one.

Simulated runs through the real verification code: eight candidates searched with three
repetitions, the frontier's finalists measured again on held-out seeds, beside the baseline, and
tested once. Only the numbers that trials would give are made up: lognormal noise, and an effect of
each seed that candidates and baseline share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Final

from benchmarks.measures import Figure
from steelyard.fix.verify.confirmation import (
    ConfirmationPlan,
    Confirmed,
    Finalist,
    Standing,
    claims,
    confirm,
    finalists,
    held_out_seeds,
)
from steelyard.fix.verify.frontier import Vector, frontier, vector
from steelyard.fix.verify.measured import Measured, Objective, Sample
from steelyard.stats.intervals import wilson

if TYPE_CHECKING:
    from numpy.random import Generator

RUNS: Final = 5000
CANDIDATES: Final = 8
REPETITIONS: Final = 3
LEAST_NOISE: Final = 0.01
MOST_NOISE: Final = 0.30
"""Standard deviation of a value, as a share of it; drawn evenly on a logarithmic scale."""
FALSE_BOUND: Final = 0.06
FOUND_BOUND: Final = 0.80
EFFECT_SD: Final = 2.0
SEED: Final = 20261201
PLAN: Final = ConfirmationPlan()
LATENCY: Final = Objective("latency_ms", "min", "ms")
QUALITY: Final = Objective("quality", "max", "points")
BASELINE: Final = "c0"


@dataclass(frozen=True, slots=True)
class World:
    """What the trials of one simulated run would give."""

    generator: Generator
    noise: float
    objectives: tuple[Objective, ...]
    better: str | None = None
    """The candidate that really is better, in the first objective."""

    def measured(
        self, names: Sequence[str], seeds: Sequence[int]
    ) -> dict[str, dict[str, Measured]]:
        """Measure everybody on the same seeds."""
        found: dict[str, dict[str, Measured]] = {name: {} for name in names}
        for objective in self.objectives:
            of_seed = self.generator.normal(0, self.noise, size=len(seeds))
            drawn = self.generator.normal(0, self.noise, size=(len(names), len(seeds)))
            for name, own in zip(names, drawn, strict=True):
                effect = self.effect(name, objective)
                values = [100 * effect * exp(a + b) for a, b in zip(of_seed, own, strict=True)]
                samples = tuple(
                    Sample(repetition, seed, value)
                    for repetition, (seed, value) in enumerate(zip(seeds, values, strict=True))
                )
                found[name][objective.metric] = Measured(name, objective.metric, samples)
        return found

    def effect(self, name: str, objective: Objective) -> float:
        """By what a candidate multiplies a metric: 2 SD of one value for the better one."""
        if name != self.better or objective is not self.objectives[0]:
            return 1.0
        deviation = sqrt(exp(self.noise**2) - 1)  # of a lognormal value, as a share of its mean
        shift = EFFECT_SD * deviation
        return 1 - shift if objective.direction == "min" else 1 + shift


def simulated(world: World, run: str, most: int | None = None) -> tuple[Confirmed, ...]:
    """Play one run: search, choose finalists, confirm them.

    Args:
        world: where values come from.
        run: the run's id.
        most: test this many of the best medians; the frontier's finalists where None.
    """
    names = [f"c{number}" for number in range(CANDIDATES + 1)]
    searched = world.measured(names, range(REPETITIONS))
    base = searched[BASELINE]
    claimed = {name: claims(searched[name], base, world.objectives) for name in names}
    vectors = [found for name in names if (found := vector(name, searched[name], world.objectives))]
    if most is None:
        chosen = finalists(frontier(vectors, world.objectives), claimed)
    else:
        ranked = sorted(vectors, key=lambda one: world.objectives[0].cost(one.values[0]))
        chosen = tuple(one.candidate for one in _claiming(ranked, claimed)[:most])
    if not chosen:
        return ()
    seeds = held_out_seeds(run, PLAN.repetitions, range(REPETITIONS))
    again = world.measured([BASELINE, *chosen], seeds)
    return confirm(
        [Finalist(name, claimed[name], again[name], searched[name]) for name in chosen],
        again[BASELINE],
        world.objectives,
        PLAN,
        searched_baseline=base,
    )


def _claiming(ranked: Sequence[Vector], claimed: dict[str, tuple[str, ...]]) -> list[Vector]:
    return [one for one in ranked if claimed[one.candidate]]


def noise_of(generator: Generator) -> float:
    """Draw a run's noise."""
    return exp(float(generator.uniform(log(LEAST_NOISE), log(MOST_NOISE))))


def falsely_confirmed(
    runs: int, objectives: tuple[Objective, ...], seed: int, most: int | None = None
) -> int:
    """Count runs of candidates without effect in which any is confirmed."""
    import numpy as np

    generator = np.random.default_rng(seed)
    return sum(
        any(
            one.standing is Standing.CONFIRMED
            for one in simulated(
                World(generator, noise_of(generator), objectives), f"run-{number}", most
            )
        )
        for number in range(runs)
    )


def found_improvements(runs: int, seed: int) -> tuple[int, int]:
    """Count runs in which the better candidate becomes a finalist, and is confirmed."""
    import numpy as np

    generator = np.random.default_rng(seed)
    chosen = confirmed = 0
    for number in range(runs):
        # At 30% noise two standard deviations are more than half of the value: still 0.38 of it.
        world = World(generator, noise_of(generator), (LATENCY,), better="c5")
        for one in simulated(world, f"run-{number}"):
            if one.candidate == "c5":
                chosen += 1
                confirmed += one.standing is Standing.CONFIRMED
    return chosen, confirmed


def _share(name: str, hits: int, of: int, bound: float, *, at_most: bool) -> Figure:
    interval = wilson(hits, of) or (0.0, 1.0)
    note = f"{hits:,} of {of:,}; 95% interval {interval[0]:.2%} to {interval[1]:.2%}"
    return Figure(
        name, hits / of, "of runs", bound, "at most" if at_most else "at least", note=note
    )


def measure(*, scale: float) -> Iterator[Figure]:
    """A/A runs of eight candidates that change nothing, and runs with one that is 2 SD better."""
    runs = max(50, int(RUNS * scale))
    rows: Sequence[tuple[str, tuple[Objective, ...], int | None]] = (
        ("one metric", (LATENCY,), None),
        ("two metrics", (LATENCY, QUALITY), None),
        ("one metric, three finalists", (LATENCY,), 3),
    )
    for number, (what, objectives, most) in enumerate(rows):
        hits = falsely_confirmed(runs, objectives, SEED + number, most)
        label = f"fix A/A, {CANDIDATES} no-effect candidates, {what}: falsely confirmed"
        yield _share(label, hits, runs, FALSE_BOUND, at_most=True)
    chosen, confirmed = found_improvements(max(50, runs // 5), SEED)
    tested = max(1, chosen)
    yield _share(
        f"fix: a candidate {EFFECT_SD:g} SD better, tested with {PLAN.repetitions}: confirmed",
        confirmed, tested, FOUND_BOUND, at_most=False,
    )  # fmt: skip
    yield _share(
        f"fix: a candidate {EFFECT_SD:g} SD better among {CANDIDATES}: found and confirmed",
        confirmed, max(50, runs // 5), FOUND_BOUND, at_most=False,
    )  # fmt: skip
