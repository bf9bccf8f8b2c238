"""One-sided bounds and Friedman's test against SciPy's values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from steelyard.stats.bounds import geometric_mean, mean_bound, ratio_bound
from steelyard.stats.effect import detectable_in_errors, minimum_detectable_effect
from steelyard.stats.ranks import friedman
from steelyard.stats.student import MAX_DEGREES, t_cdf, t_quantile

RATIOS = [1.02, 0.99, 1.04, 1.01, 1.03]


def test_the_bound_of_a_ratio() -> None:
    assert geometric_mean(RATIOS) == pytest.approx(1.017854, abs=5e-7)
    assert ratio_bound(RATIOS, upper=True) == pytest.approx(1.036423, abs=5e-7)
    assert ratio_bound(RATIOS[:3], upper=True) == pytest.approx(1.059890, abs=5e-7)


def test_the_bound_of_a_mean_is_the_end_of_a_ninety_percent_interval() -> None:
    low, high = scipy_stats.t.interval(0.9, 4, loc=np.mean(RATIOS), scale=scipy_stats.sem(RATIOS))
    assert mean_bound(RATIOS, upper=True) == pytest.approx(high)
    assert mean_bound(RATIOS, upper=False) == pytest.approx(low)


def test_there_is_no_bound_without_variation() -> None:
    assert mean_bound([1.0], upper=True) is None
    assert mean_bound([1.0, 1.0, 1.0], upper=True) is None
    assert ratio_bound([1.0, 0.0], upper=True) is None
    assert ratio_bound([1.0, -1.0], upper=True) is None
    assert geometric_mean([]) is None
    with pytest.raises(ValueError, match="finite"):
        mean_bound([1.0, float("nan")], upper=True)
    with pytest.raises(ValueError, match="level"):
        mean_bound([1.0, 2.0], upper=True, level=0.5)


def test_friedman() -> None:
    rows = [(1, 1.2, 1.5), (0.9, 1.1, 1.3), (1.1, 1.3, 1.6), (1, 1.1, 1.4), (0.8, 1.2, 1.1)]
    found = friedman(rows)
    assert found is not None
    assert found.statistic == pytest.approx(8.4)
    assert found.p == pytest.approx(0.014996, abs=5e-7)


def test_friedman_of_too_little_or_of_ties_says_nothing() -> None:
    assert friedman([]) is None
    assert friedman([(1, 2), (1, 2)]) is None
    assert friedman([(1, 2, 3)]) is None
    assert friedman([(1, 1, 1), (2, 2, 2)]) is None
    with pytest.raises(ValueError, match="lengths"):
        friedman([(1, 2, 3), (1, 2)])


def test_the_smallest_effect_that_is_found() -> None:
    for n, expected in ((3, 3.264), (5, 1.682), (10, 0.996)):
        assert minimum_detectable_effect(n) == pytest.approx(expected, abs=5e-4)


def test_effects_that_are_written_down_are_those_that_are_computed() -> None:
    for n in range(2, 32):
        computed = detectable_in_errors(n - 1)
        assert computed is not None
        assert minimum_detectable_effect(n) == pytest.approx(computed / n**0.5, rel=1e-9)
    assert minimum_detectable_effect(1) is None
    assert minimum_detectable_effect(10, power=0.9) != minimum_detectable_effect(10)


def test_quantiles_of_students_t_are_scipys() -> None:
    for degrees in [*range(1, 41), 99, 100, 399, MAX_DEGREES, MAX_DEGREES + 1]:
        for probability in (0.001, 0.05, 0.3, 0.5, 0.8, 0.95, 0.975, 0.9999):
            expected = scipy_stats.t.ppf(probability, degrees)
            assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        for t in (-30.0, -1.0, 0.0, 0.5, 2.0, 9.0):
            expected = scipy_stats.t.cdf(t, degrees)
            assert t_cdf(t, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-14)
    with pytest.raises(ValueError, match="probability"):
        t_quantile(1.0, 3)
    with pytest.raises(ValueError, match="degrees"):
        t_cdf(1.0, 0)
