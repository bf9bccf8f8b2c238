"""Simulated runs through the real verification: what is no improvement is seldom confirmed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fix_aa import (
    CANDIDATES,
    LATENCY,
    PLAN,
    QUALITY,
    World,
    falsely_confirmed,
    found_improvements,
    noise_of,
)
from steelyard.fix.verify.confirmation import Finalist, Standing, claims, confirm
from steelyard.fix.verify.measured import Objective

RUNS = 600
AT_MOST = RUNS * 0.05 + 4 * (RUNS * 0.05 * 0.95) ** 0.5
"""Four standard errors above 5%: right code passes this on any seed but one in thirty thousand."""


@pytest.mark.parametrize(
    ("objectives", "most"), [((LATENCY,), None), ((LATENCY, QUALITY), None), ((LATENCY,), 3)]
)
def test_eight_candidates_without_effect_are_confirmed_in_at_most_five_percent_of_runs(
    objectives: tuple[Objective, ...], most: int | None
) -> None:
    assert falsely_confirmed(RUNS, objectives, 7, most) <= AT_MOST


def test_an_improvement_of_two_standard_deviations_is_found() -> None:
    chosen, confirmed = found_improvements(150, 7)
    assert confirmed >= 0.8 * 150
    assert confirmed >= 0.8 * chosen


def test_the_simulation_sees_what_testing_on_the_searchs_own_values_would_do() -> None:
    """The best of eight, tested on the values it was chosen by, is confirmed far too often."""
    generator = np.random.default_rng(7)
    hits, runs = 0, 200
    names = [f"c{number}" for number in range(CANDIDATES + 1)]
    for _ in range(runs):
        world = World(generator, noise_of(generator), (LATENCY,))
        searched = world.measured(names, range(PLAN.repetitions))
        best = min(names[1:], key=lambda who: sum(searched[who]["latency_ms"].values))
        claimed = claims(searched[best], searched["c0"], (LATENCY,))
        (found,) = confirm(
            [Finalist(best, claimed, searched[best])], searched["c0"], (LATENCY,), PLAN
        )
        hits += found.standing is Standing.CONFIRMED
    assert hits > 0.12 * runs
