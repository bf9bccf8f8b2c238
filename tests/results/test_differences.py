"""Means of differences, and what stands in the place of an interval that cannot be."""

from __future__ import annotations

import pytest

from steelyard.results.comparison import NO_SPREAD, difference_over, exact_test
from steelyard.results.scores import estimate_over_tasks


def test_clusters_that_are_equal_but_for_rounding_have_no_interval() -> None:
    third = 1 / 3
    values = [third, -1.0, -third, -third]  # two clusters, whose sums are both -2/3
    found = difference_over(values, ["a", "a", "b", "b"])
    assert (found.standard_error, found.interval, found.note) == (None, None, NO_SPREAD)
    assert found.value == pytest.approx(-third)


def test_one_yes_or_no_in_clusters_of_one_is_mcnemars_and_in_larger_ones_is_not() -> None:
    values = [1.0, 1.0, -1.0, 0.0]  # sums 2 and -1 in two clusters
    alone = exact_test(values, list("abcd"), is_one_binary_attempt=True)
    grouped = exact_test(values, list("aabb"), is_one_binary_attempt=True)
    assert (alone.name, grouped.name) == ("mcnemar", "sign_flip")
    assert [alone.p, grouped.p] == pytest.approx([1.0, 1.0])


def test_only_a_share_that_is_0_everywhere_has_the_interval_of_a_proportion() -> None:
    def interval(bounds: tuple[float, float] | None) -> object:
        found = estimate_over_tasks([0.0] * 6, range(6), is_one_binary_attempt=False, bounds=bounds)
        return found["interval_method"]

    assert interval((0.0, 1.0)) == "wilson"
    assert interval(None) is None  # dollars, or edits: nothing says how much they may vary
    assert interval((0.0, float("inf"))) is None
