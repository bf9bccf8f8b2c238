"""What k attempts at a task become."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.stats.estimators import avg_at_k, pass_at_k, pass_hat_k
from steelyard.stats.quantiles import quantile


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat"),
    [
        (10, 3, 5, 0.916667, 0.0),
        (5, 1, 2, 0.4, 0.0),
        (4, 2, 2, 0.833333, 0.166667),
        (1, 1, 1, 1.0, 1.0),
        (1, 0, 1, 0.0, 0.0),
        (5, 5, 5, 1.0, 1.0),
    ],
)
def test_published_values(n: int, c: int, k: int, at: float, hat: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(at, abs=5e-7)
    assert pass_hat_k(n, c, k) == pytest.approx(hat, abs=5e-7)


@settings(deadline=None)
@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_they_are_the_share_of_all_draws(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    attempts = [True] * c + [False] * (n - c)
    draws = list(combinations(attempts, k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_too_few_attempts_are_unknown_and_not_zero() -> None:
    assert pass_at_k(2, 1, 3) is None
    assert pass_hat_k(2, 2, 3) is None
    assert avg_at_k(2, 1.0, 3) is None


def test_the_average_needs_all_k() -> None:
    assert avg_at_k(3, 1.5, 3) == 0.5


@pytest.mark.parametrize(("n", "c", "k"), [(1, 2, 1), (1, -1, 1), (1, 1, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match=r"attempts|k ="):
        pass_at_k(n, c, k)
    with pytest.raises(ValueError, match=r"attempts|k ="):
        pass_hat_k(n, c, k)


def test_more_values_than_attempts_are_refused() -> None:
    with pytest.raises(ValueError, match="k = 1"):
        avg_at_k(2, 2.0, 1)


def test_quantiles_interpolate() -> None:
    assert quantile([], 0.5) is None
    assert quantile([3.0], 0.99) == 3.0
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert quantile([1.0, 2.0, 3.0, 4.0], 1.0) == 4.0
    with pytest.raises(ValueError, match="q ="):
        quantile([1.0], 1.5)
