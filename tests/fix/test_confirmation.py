"""Held-out seeds: tested once, Holm over the finalists, never on what the search has seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.fix.verify.comparison import compare, improvements_of, paired_test
from steelyard.fix.verify.confirmation import (
    AlreadyTested,
    ConfirmationPlan,
    Finalist,
    Standing,
    TooFewRepetitions,
    TooManyTests,
    alpha_of,
    check_untested,
    claims,
    confirm,
    finalists,
    held_out_seeds,
    most_tests,
)
from steelyard.fix.verify.constraints import Constraint
from steelyard.fix.verify.measured import Measured, Objective, measured_of
from steelyard.fix.verify.noise import noise
from steelyard.stats.multiple import holm

LATENCY = Objective("latency_ms", "min", "ms")
QUALITY = Objective("quality", "max", "fraction")
PLAN = ConfirmationPlan()
BASE = [100.0, 103, 98, 101, 99, 102, 100.5, 97, 104, 101.5]


def measured(values: list[float], who: str = "c1", metric: str = "latency_ms") -> Measured:
    return measured_of(who, metric, values, range(1000, 1000 + len(values)))


BASELINE = {"latency_ms": measured(BASE, "c0")}


def finalist(values: list[float], who: str = "c1") -> Finalist:
    return Finalist(who, ("latency_ms",), {"latency_ms": measured(values, who)})


def test_a_faster_candidate_is_confirmed() -> None:
    (found,) = confirm([finalist([v - 5 - i / 10 for i, v in enumerate(BASE)])], BASELINE,
                       [LATENCY], PLAN)  # fmt: skip
    assert found.standing is Standing.CONFIRMED
    assert found.metrics == ("latency_ms",)
    assert found.claims[0].mean == pytest.approx(5.45)
    assert found.claims[0].test.better == 2**-10
    assert found.claims[0].p_adjusted == 2**-10


def test_a_slower_one_is_not() -> None:
    (found,) = confirm([finalist([v + 5 + i / 10 for i, v in enumerate(BASE)])], BASELINE,
                       [LATENCY], PLAN)  # fmt: skip
    assert found.standing is Standing.NOT_CONFIRMED
    assert found.claims[0].test.better == 1
    assert found.claims[0].test.worse == 2**-10


def test_the_ps_of_all_finalists_are_adjusted_together() -> None:
    generator = np.random.default_rng(3)
    tested = [
        finalist([v - shift + float(generator.normal(0, 2)) for v in BASE], f"c{i}")
        for i, shift in enumerate((1.5, 3.0, 0.5))
    ]
    found = confirm(tested, BASELINE, [LATENCY], PLAN)
    raw = [one.claims[0].test.better or 0.0 for one in found]
    assert [one.claims[0].p_adjusted for one in found] == holm(raw)
    assert any(p != q for p, q in zip(raw, holm(raw), strict=True))
    for one in found:
        adjusted = one.claims[0].p_adjusted
        assert adjusted is not None
        assert (one.standing is Standing.CONFIRMED) == (adjusted <= 0.05)


def test_an_effect_below_the_least_that_matters_is_not_confirmed() -> None:
    better = [finalist([v - 5 - i / 10 for i, v in enumerate(BASE)])]
    for least, standing in ((4, Standing.CONFIRMED), (7, Standing.NOT_CONFIRMED)):
        plan = ConfirmationPlan(min_effect={"latency_ms": least})
        assert confirm(better, BASELINE, [LATENCY], plan)[0].standing is standing


def test_identical_repetitions_confirm_and_are_labelled_so() -> None:
    baseline = {"latency_ms": measured([100.0] * 10, "c0")}
    (found,) = confirm([finalist([90.0] * 10)], baseline, [LATENCY], PLAN)
    assert found.standing is Standing.CONFIRMED
    assert found.claims[0].is_deterministic
    assert found.claims[0].p_adjusted is None
    assert found.claims[0].test.better is None
    assert "deterministic: latency_ms" in found.reason
    for values in ([100.0] * 10, [110.0] * 10):
        assert confirm([finalist(values)], baseline, [LATENCY], PLAN)[0].standing is (
            Standing.NOT_CONFIRMED
        )


@pytest.mark.parametrize("repetitions", [0, 1, 5])
def test_fewer_than_six_are_refused(repetitions: int) -> None:
    with pytest.raises(TooFewRepetitions, match="at least 6"):
        ConfirmationPlan(repetitions)
    assert ConfirmationPlan(6).repetitions == 6


def test_more_tests_than_could_ever_confirm_are_refused() -> None:
    assert most_tests(6, 0.05) == 3
    assert most_tests(10, 0.05) == 51
    plan = ConfirmationPlan(6)
    many = [finalist(BASE[:6], f"c{i}") for i in range(4)]
    with pytest.raises(TooManyTests, match="name fewer finalists"):
        confirm(many, BASELINE, [LATENCY], plan)
    better = [finalist([v - 5 - i for i, v in enumerate(BASE[:6])], f"c{j}") for j in range(3)]
    assert all(
        one.standing is Standing.CONFIRMED for one in confirm(better, BASELINE, [LATENCY], plan)
    )


def test_a_candidate_is_tested_once_and_a_later_confirmation_has_half_the_error() -> None:
    check_untested(["c1", "c2"], {"c3"})
    with pytest.raises(AlreadyTested, match="c2: tested already"):
        check_untested(["c1", "c2"], {"c2"})
    assert [alpha_of(0.05, earlier) for earlier in range(3)] == [0.05, 0.025, 0.0125]


def test_with_a_pair_missing_nothing_is_confirmed() -> None:
    better = [v - 5 - i / 10 for i, v in enumerate(BASE)]
    (found,) = confirm([finalist(better[:9])], BASELINE, [LATENCY], PLAN)
    assert found.standing is Standing.NOT_CONFIRMED
    assert found.reason == "only 9 of 10 held-out pairs were measured"
    assert found.claims[0].p_adjusted is None
    (found,) = confirm([Finalist("c1", ("latency_ms",), {})], BASELINE, [LATENCY], PLAN)
    assert found.reason == "only 0 of 10 held-out pairs were measured"
    assert found.claims[0].mean is None


def test_a_constraint_that_fails_on_held_out_seeds_confirms_nothing() -> None:
    rule = Constraint("quality", "gte", 0.95)
    better = finalist([v - 5 - i / 10 for i, v in enumerate(BASE)])
    low = Finalist("c1", better.claimed, {**better.held_out,
                   "quality": measured([0.9] * 10, metric="quality")})  # fmt: skip
    (found,) = confirm([low], BASELINE, [LATENCY], PLAN, constraints=[rule])
    assert found.standing is Standing.NOT_CONFIRMED
    assert found.reason == "on held-out seeds it fails quality ≥ 0.95"


def test_the_gap_between_search_and_held_out_seeds_is_shown() -> None:
    one = finalist([v - 1 - i / 10 for i, v in enumerate(BASE)])
    chosen = Finalist(one.candidate, one.claimed, one.held_out,
                      {"latency_ms": measured_of("c1", "latency_ms", [80, 81, 82])})  # fmt: skip
    search = {"latency_ms": measured_of("c0", "latency_ms", [100, 101, 102])}
    (found,) = confirm([chosen], BASELINE, [LATENCY], PLAN, searched_baseline=search)
    assert found.claims[0].search_improvement == 20
    assert found.claims[0].mean == pytest.approx(1.45)


def test_who_claims_nothing_is_not_tested() -> None:
    (found,) = confirm([Finalist("c1", (), {})], BASELINE, [LATENCY], PLAN)
    assert found.standing is Standing.NOT_TESTED


def test_claims_are_the_metrics_that_looked_better() -> None:
    objectives = [LATENCY, QUALITY]
    base = {
        "latency_ms": measured_of("c0", "latency_ms", [100, 101, 102]),
        "quality": measured_of("c0", "quality", [0.9, 0.9, 0.9]),
    }
    mine = {
        "latency_ms": measured_of("c1", "latency_ms", [90, 101, 80]),
        "quality": measured_of("c1", "quality", [0.9, 0.9, 0.9]),
    }
    assert claims(mine, base, objectives) == ("latency_ms",)
    assert claims(base, base, objectives) == ()
    assert claims({}, base, objectives) == ()


def test_finalists_are_up_to_three_of_the_frontier_that_claim_something() -> None:
    claimed = {"c1": ["a"], "c2": ["a", "b"], "c3": [], "c4": ["b"], "c5": ["a"]}
    assert finalists(["c0", "c1", "c2", "c3", "c4", "c5"], claimed) == ("c2", "c1", "c4")
    assert finalists(["c0"], {}) == ()


@settings(deadline=None)
@given(st.text(max_size=9), st.sets(st.integers(0, 2**31 - 1), max_size=5), st.integers(0, 30))
def test_held_out_seeds_are_new_different_and_the_same_again(
    run: str, used: set[int], count: int
) -> None:
    found = held_out_seeds(run, count, used)
    assert len(set(found)) == count
    assert not set(found) & used
    assert all(0 <= seed < 2**31 for seed in found)
    again = held_out_seeds(run, count, [*used, *found])
    assert not set(again) & set(found)
    assert held_out_seeds(run, count, used) == found


# -- pairs -------------------------------------------------------------------------------------


def test_the_exact_test_of_pairs() -> None:
    found = paired_test([0.1, 0.2, -0.05, 0.15, 0.3, 0.05])
    assert found.better == pytest.approx(0.046875)
    assert found.two_sided == pytest.approx(0.09375)
    assert not found.is_deterministic


def test_no_p_is_given_where_nothing_varied() -> None:
    for values in ([1.0, 1.0, 1.0], [0.0, 0.0]):
        found = paired_test(values)
        assert found.is_deterministic
        assert (found.better, found.worse, found.two_sided) == (None, None, None)
    one = paired_test([1.0])
    assert not one.is_deterministic
    assert one.better == 0.5


def test_an_improvement_is_positive_whichever_way_is_better() -> None:
    a = measured_of("a", "m", [1.0, 2.0])
    b = measured_of("b", "m", [3.0, 5.0])
    assert improvements_of(a, b, Objective("m", "min")) == (2.0, 3.0)
    assert improvements_of(a, b, Objective("m", "max")) == (-2.0, -3.0)


def test_a_comparison_has_a_bootstrap_from_eight_pairs_on() -> None:
    generator = np.random.default_rng(0)
    better = [v - 5 + float(generator.normal(0, 1)) for v in BASE]
    found = compare(measured(better), BASELINE["latency_ms"], LATENCY)
    assert found is not None
    assert found.interval_method == "bca"
    assert found.interval is not None
    assert found.interval[0] < found.mean < found.interval[1]
    fewer = compare(measured(better[:7]), BASELINE["latency_ms"], LATENCY)
    assert fewer is not None
    assert fewer.interval_method == "t"
    assert fewer.unpaired == 3
    assert (fewer.tally.wins, fewer.tally.losses) == (7, 0)
    same = compare(measured([90.0] * 9), measured([100.0] * 9, "c0"), LATENCY)
    assert same is not None
    assert same.interval is None
    assert same.test.is_deterministic
    assert compare(measured([]), BASELINE["latency_ms"], LATENCY) is None


# -- noise -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("repetitions", "effect"), [(3, 3.264), (5, 1.682), (10, 0.996)])
def test_the_smallest_effect_that_so_many_repetitions_find(repetitions: int, effect: float) -> None:
    found = noise(measured([99.0, 100.0, 101.0], "c0"), repetitions)
    assert found is not None
    assert found.standard_deviation == 1
    assert found.detectable == pytest.approx(effect * 2**0.5, abs=1e-3)
    assert found.detectable_share == pytest.approx(effect * 2**0.5 / 100, abs=1e-5)
    assert found.least_p == 2.0**-repetitions


def test_noise_that_is_not_known_is_not_0() -> None:
    same = noise(measured([5.0, 5.0, 5.0]), 10)
    assert same is not None
    assert same.is_deterministic
    assert same.detectable is None
    one = noise(measured([5.0]), 10)
    assert one is not None
    assert one.standard_deviation is None
    assert not one.is_deterministic
    zero = noise(measured([-1.0, 0.0, 1.0]), 10)
    assert zero is not None
    assert zero.detectable_share is None
    assert noise(measured([]), 10) is None
