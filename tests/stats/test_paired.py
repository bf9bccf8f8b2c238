"""Paired comparisons against published and SciPy's values; None where the data cannot say."""

from __future__ import annotations

import itertools
from math import nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from steelyard.stats.effect import detectable_in_errors, minimum_detectable_effect
from steelyard.stats.multiple import benjamini_hochberg, holm
from steelyard.stats.paired import (
    FEWER_RESAMPLES,
    RESAMPLES,
    Tally,
    mcnemar,
    paired_difference,
    sign_flip,
    wins_ties_losses,
)

A = [0.9, 0.8, 0.7, 0.6, 0.95, 0.5, 0.85, 0.4]
B = [0.92, 0.84, 0.69, 0.66, 0.97, 0.55, 0.86, 0.47]
DIFFERENCES = [b - a for a, b in zip(A, B, strict=True)]
P_VALUES = [0.01, 0.04, 0.03, 0.005]
small = st.lists(st.integers(-5, 5).map(lambda n: n / 4), min_size=1, max_size=9)


# -- differences -------------------------------------------------------------------------------


def test_a_paired_difference() -> None:
    found = paired_difference(DIFFERENCES)
    assert found is not None
    assert found.standard_error is not None
    assert found.mean == pytest.approx(0.0325)
    assert found.standard_error == pytest.approx(0.009590, abs=5e-7)
    unpaired = sqrt((np.var(A, ddof=1) + np.var(B, ddof=1)) / len(A))
    assert unpaired == pytest.approx(0.094600, abs=5e-7)  # what pairing saves
    expected = scipy_stats.ttest_rel(B, A).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))


def test_clustered_differences_have_the_clustered_error() -> None:
    values = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0]
    found = paired_difference(values, [n // 3 for n in range(12)])
    assert found is not None
    assert found.standard_error == pytest.approx(0.215166, abs=5e-7)
    assert found.clusters == 4
    half = scipy_stats.t(3).ppf(0.975) * 0.215166
    assert found.interval == pytest.approx((0.5 - half, 0.5 + half), abs=5e-6)


def test_differences_that_do_not_vary_have_no_interval() -> None:
    for values in ([0.5, 0.5, 0.5], [0.0, 0.0]):
        found = paired_difference(values)
        assert found is not None
        assert (found.standard_error, found.interval, found.is_degenerate) == (None, None, True)


def test_one_pair_or_one_cluster_has_no_interval_and_none_has_no_mean() -> None:
    one = paired_difference([0.5])
    assert one is not None
    assert (one.standard_error, one.interval) == (None, None)
    cluster = paired_difference([0.5, 0.1], ["a", "a"])
    assert cluster is not None
    assert (cluster.interval, cluster.is_degenerate) == (None, False)
    assert paired_difference([]) is None


def test_clusters_that_cancel_out_have_no_interval() -> None:
    found = paired_difference([1.0, -1.0, 1.0, -1.0], ["a", "a", "b", "b"])
    assert found is not None
    assert (found.standard_error, found.interval) == (None, None)


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        paired_difference([0.1, nan])
    with pytest.raises(ValueError, match="finite"):
        sign_flip([float("inf")])
    with pytest.raises(ValueError, match="clusters"):
        paired_difference([0.1], ["a", "b"])


# -- sign flips --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "two_sided", "greater"),
    [([0.1, 0.2, -0.05, 0.15, 0.3, 0.05], 0.09375, 0.046875), ([1, 1, 1], 0.25, 0.125)],
)
def test_the_exact_sign_flip(values: list[float], two_sided: float, greater: float) -> None:
    found = sign_flip(values)
    assert found is not None
    assert found.two_sided == pytest.approx(two_sided, abs=1e-12)
    assert found.greater == pytest.approx(greater, abs=1e-12)
    assert (found.is_exact, found.standard_error) == (True, None)


@settings(deadline=None)
@given(small)
def test_the_sign_flip_is_the_count_of_all_patterns(values: list[float]) -> None:
    found = sign_flip(values)
    if not any(values):
        assert found is None
        return
    assert found is not None
    sums = [
        sum(sign * value for sign, value in zip(signs, values, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(values))
    ]
    seen = sum(values)
    assert found.two_sided == pytest.approx(np.mean(np.abs(sums) >= abs(seen)), abs=1e-12)
    assert found.greater == pytest.approx(np.mean(np.array(sums) >= seen), abs=1e-12)


@settings(deadline=None)
@given(small)
def test_the_other_way_round_it_is_as_likely(values: list[float]) -> None:
    forth, back = sign_flip(values), sign_flip([-value for value in values])
    assert (forth is None) == (back is None)
    if forth is not None and back is not None:
        assert forth.two_sided == pytest.approx(back.two_sided, abs=1e-12)


def test_differences_of_few_sizes_stay_exact_however_many_they_are() -> None:
    values = [1 / 3] * 30 + [-2 / 3] * 20 + [1.0] * 40 + [0.0] * 900
    found = sign_flip(values)
    assert found is not None
    assert found.is_exact
    assert found.units == 90


def test_means_of_k_attempts_stay_exact_however_many_tasks_there_are() -> None:
    generator = np.random.default_rng(2)
    for tasks, k in ((300, 3), (3_000, 5), (50_000, 3)):
        values = (generator.integers(-k, k + 1, tasks) / k).tolist()
        found = sign_flip(values)
        assert found is not None
        assert found.is_exact
        # With so many the sum is as good as normal; sums lie 2 / k apart.
        z = (abs(sum(values)) - 1 / k) / sqrt(sum(value**2 for value in values))
        assert found.two_sided == pytest.approx(2 * scipy_stats.norm.sf(z), rel=0.03, abs=1e-3)


def test_sums_counted_by_steps_are_those_counted_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = [0.25, -0.5, 0.75, 1.0, 1.0, 0.25, -0.25, 0.5]
    expected = sign_flip(values)
    monkeypatch.setattr("steelyard.stats.paired.MAX_EXACT_OUTCOMES", 1)
    monkeypatch.setattr("steelyard.stats.paired._MAX_DIRECT", 0)
    found = sign_flip(values)
    assert found is not None
    assert expected is not None
    assert found.is_exact
    assert (found.two_sided, found.greater) == pytest.approx(
        (expected.two_sided, expected.greater), abs=1e-12
    )


def test_of_zeros_and_ones_it_is_mcnemars() -> None:
    found = sign_flip([1] * 12 + [-1] * 3 + [0] * 50)
    assert found is not None
    assert found.two_sided == pytest.approx(mcnemar(3, 12), abs=1e-12)


def test_clusters_are_flipped_whole() -> None:
    found = sign_flip([0.1] * 40, [n // 10 for n in range(40)])
    assert found is not None
    assert found.units == 4
    assert found.two_sided == pytest.approx(2 / 16)


def test_above_a_million_patterns_some_are_drawn_and_the_error_is_said() -> None:
    generator = np.random.default_rng(3)
    values = list(generator.normal(0.1, 1, 30))
    found = sign_flip(values)
    assert found is not None
    assert found.resamples == RESAMPLES
    assert found.standard_error == pytest.approx(
        sqrt(found.two_sided * (1 - found.two_sided) / RESAMPLES)
    )
    scipys = scipy_stats.ttest_1samp(values, 0).pvalue
    assert found.two_sided == pytest.approx(scipys, abs=0.02)
    assert sign_flip(values) == found  # the seed is fixed
    many = sign_flip(list(generator.normal(0, 1, 600)))
    assert many is not None
    assert many.resamples == FEWER_RESAMPLES


def test_twenty_different_differences_are_counted_one_by_one() -> None:
    values = list(np.random.default_rng(5).normal(0.2, 1, 20))
    found = sign_flip(values)
    assert found is not None
    assert found.is_exact
    assert found.two_sided * 2**20 == pytest.approx(round(found.two_sided * 2**20), abs=1e-6)


# -- McNemar, wins -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("b", "c", "p"), [(0, 5, 0.0625), (1, 5, 0.21875), (3, 12, 0.035156), (4, 4, 1.0)]
)
def test_mcnemar(b: int, c: int, p: float) -> None:
    assert mcnemar(b, c) == pytest.approx(p, abs=5e-7)
    assert mcnemar(c, b) == pytest.approx(p, abs=5e-7)


def test_mcnemar_of_pairs_that_agree_is_unknown() -> None:
    assert mcnemar(0, 0) is None
    with pytest.raises(ValueError, match="-1"):
        mcnemar(-1, 2)


def test_wins_ties_and_losses_know_the_direction() -> None:
    values = [0.5, -0.5, 0.25, 1e-15, 0.0]
    assert wins_ties_losses(values) == Tally(2, 2, 1)
    assert wins_ties_losses(values, higher_is_better=False) == Tally(1, 2, 2)


# -- several comparisons, detectable differences -----------------------------------------------


def test_holm() -> None:
    assert holm(P_VALUES) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_benjamini_hochberg() -> None:
    assert benjamini_hochberg(P_VALUES) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert benjamini_hochberg([]) == []


@given(st.lists(st.floats(0, 1), max_size=20))
def test_adjusted_p_values_are_no_smaller_and_keep_their_order(p_values: list[float]) -> None:
    for adjusted in (holm(p_values), benjamini_hochberg(p_values)):
        assert all(q >= p or q == pytest.approx(p) for p, q in zip(p_values, adjusted, strict=True))
        assert all(q <= 1 for q in adjusted)
        pairs = sorted(zip(p_values, adjusted, strict=True))
        assert [q for _, q in pairs] == pytest.approx(sorted(q for _, q in pairs))


def test_a_p_out_of_range_is_refused() -> None:
    for adjust in (holm, benjamini_hochberg):
        with pytest.raises(ValueError, match=r"1\.5"):
            adjust([0.5, 1.5])


@pytest.mark.parametrize(("n", "effect"), [(3, 3.264), (5, 1.682), (10, 0.996)])
def test_the_minimum_detectable_effect(n: int, effect: float) -> None:
    assert minimum_detectable_effect(n) == pytest.approx(effect, abs=5e-4)


def test_a_detectable_difference_needs_two_tasks_and_shrinks_with_more() -> None:
    assert minimum_detectable_effect(1) is None
    found = [minimum_detectable_effect(n) for n in (2, 3, 20, 1_000, 100_000)]
    assert None not in found
    assert found == sorted(found, key=lambda each: -(each or 0))
    # With many tasks: z(0.975) + z(0.8).
    assert detectable_in_errors(100_000) == pytest.approx(1.959964 + 0.841621, abs=1e-3)
    with pytest.raises(ValueError, match="power"):
        minimum_detectable_effect(5, power=1.5)


@settings(deadline=None)
@given(small)
def test_a_loss_is_a_gain_of_the_opposite(values: list[float]) -> None:
    found, turned = sign_flip(values), sign_flip([-value for value in values])
    if found is None or turned is None:
        assert found is turned
    else:
        assert found.less == pytest.approx(turned.greater)
        assert found.greater == pytest.approx(turned.less)
        assert found.two_sided == pytest.approx(turned.two_sided)


def test_both_ends_of_steps_and_of_draws() -> None:
    steps = [0.25, -0.5, 0.75, 1.0] * 20
    found, turned = sign_flip(steps), sign_flip([-value for value in steps])
    assert found is not None
    assert turned is not None
    assert found.less == pytest.approx(turned.greater)
    plain = [0.1 * n + 0.01 * n * n for n in range(-5, 25)]
    drawn = sign_flip(plain, generator=np.random.default_rng(0), resamples=999)
    assert drawn is not None
    assert drawn.resamples == 999
    assert drawn.less > 0.9
