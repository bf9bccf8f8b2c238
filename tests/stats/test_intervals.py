"""Intervals against published and SciPy's values; None where the data cannot say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from steelyard.stats.clustered import clustered_error
from steelyard.stats.intervals import (
    TooFewValues,
    acceleration,
    bca_bootstrap,
    t_interval,
    wilson,
)

SAMPLE = [12.1, 11.8, 12.6, 13.0, 12.2, 11.9, 12.4, 12.8, 12.0, 15.5]
CLUSTERED = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(0, 10, 0.0, 0.277533), (8, 10, 0.490162, 0.943318), (45, 50, 0.786398, 0.956524)],
)
def test_wilson(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-7)


@settings(deadline=None)
@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_scipys(drawn: tuple[int, int]) -> None:
    expected = scipy_stats.binomtest(*drawn).proportion_ci(method="wilson")
    assert wilson(*drawn) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_nothing_is_unknown() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("successes", "n"), [(2, 1), (-1, 1)])
def test_wilson_refuses_impossible_counts(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson(successes, n)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_is_a_fraction(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        wilson(1, 2, level)


def test_t_interval_is_scipys() -> None:
    found = clustered_error(SAMPLE, range(len(SAMPLE)))
    assert found is not None
    expected = scipy_stats.ttest_1samp(SAMPLE, 0).confidence_interval(0.95)
    assert t_interval(found.mean, found.naive, 9) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("error", "degrees"), [(None, 5), (0.0, 5), (0.1, 0)])
def test_t_interval_is_unknown_where_it_would_have_no_width(
    error: float | None, degrees: int
) -> None:
    assert t_interval(0.5, error, degrees) is None


def test_the_clustered_errors() -> None:
    found = clustered_error(CLUSTERED, [i // 3 for i in range(12)])
    assert found is not None
    assert found.naive == pytest.approx(0.150756, abs=5e-7)
    assert found.cr0 == pytest.approx(0.186339, abs=5e-7)
    assert found.cr1 == pytest.approx(0.215166, abs=5e-7)


def test_with_one_value_a_cluster_cr1_is_the_naive_error() -> None:
    found = clustered_error(SAMPLE, range(len(SAMPLE)))
    assert found is not None
    assert found.cr1 == pytest.approx(found.naive)


def test_too_few_clusters_have_no_error() -> None:
    assert clustered_error([], []) is None
    one = clustered_error([1.0, 0.0], ["a", "a"])
    assert one is not None
    assert (one.cr0, one.cr1) == (None, None)
    single = clustered_error([1.0], ["a"])
    assert single is not None
    assert single.naive is None
    with pytest.raises(ValueError, match="clusters"):
        clustered_error([1.0], [])


def test_the_bootstrap_and_its_acceleration() -> None:
    assert acceleration(SAMPLE) == pytest.approx(0.108328, abs=5e-7)
    found = bca_bootstrap(SAMPLE, np.mean, np.random.default_rng(0))
    assert found == pytest.approx((12.22, 13.7124), abs=0.05)


def test_the_bootstrap_depends_on_its_generator_alone() -> None:
    runs = [
        bca_bootstrap(SAMPLE, np.median, np.random.default_rng(7), resamples=500) for _ in range(2)
    ]
    np.random.seed(3)
    assert runs[0] == runs[1]


def test_a_bootstrap_below_eight_values_is_refused() -> None:
    with pytest.raises(TooFewValues, match="at least 8"):
        bca_bootstrap(SAMPLE[:7], np.mean, np.random.default_rng(0))


def test_equal_values_have_neither_interval_nor_acceleration() -> None:
    assert bca_bootstrap([1.0] * 9, np.mean, np.random.default_rng(0)) is None
    assert acceleration([1.0] * 9) is None
    assert acceleration([]) is None
