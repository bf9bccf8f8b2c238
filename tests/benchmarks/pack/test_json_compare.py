from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.pack.bounded import json_compare
from steelyard.benchmarks.pack.bounded.json_checks import equals_expected
from steelyard.benchmarks.pack.bounded.json_compare import Comparison, TooCostly
from tests.benchmarks.pack.test_json_text import VALUES


def equal(expected: Any, found: Any, **rules: Any) -> bool:
    return Comparison.of(rules).difference(expected, found) is None


def share(expected: Any, found: Any, **rules: Any) -> tuple[int, int]:
    return Comparison.of(rules).shared_leaves(expected, found)


RULES = st.fixed_dictionaries(
    {"ignore_order": st.booleans(), "subset": st.booleans(), "tolerance": st.sampled_from([0, 0.1])}
)


@given(VALUES, RULES)
def test_every_value_equals_itself_by_any_rules(value: Any, rules: dict[str, Any]) -> None:
    assert equal(value, value, **rules)
    same, total = share(value, value)
    assert same == total > 0


@given(VALUES, VALUES, st.booleans())
def test_equality_is_symmetric(one: Any, other: Any, ignore_order: bool) -> None:
    assert equal(one, other, ignore_order=ignore_order) == equal(
        other, one, ignore_order=ignore_order
    )
    assert share(one, other) == share(other, one)


@given(VALUES, VALUES)
def test_equal_digests_are_equal_values(one: Any, other: Any) -> None:
    for rules in ({"ignore_order": True}, {"ignore_order": False}):
        comparison = Comparison.of(rules)
        same = comparison.key_of(one) == comparison.key_of(other)
        assert same == (Comparison.of(rules).difference(one, other) is None)


@given(st.lists(VALUES, max_size=6), st.randoms(use_true_random=False), RULES)
def test_without_order_any_permutation_is_equal(
    values: list[Any], chance: random.Random, rules: dict[str, Any]
) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)
    assert equal(values, shuffled, **{**rules, "ignore_order": True})
    assert equal({"a": values}, {"a": shuffled}, **{**rules, "ignore_order": True})


@given(
    st.lists(st.integers(0, 6).map(lambda n: n / 2), max_size=4),
    st.lists(st.integers(0, 6).map(lambda n: n / 2), max_size=5),
    st.booleans(),
)
def test_matching_within_a_tolerance_finds_a_matching_where_there_is_one(
    expected: list[float], found: list[float], subset: bool
) -> None:
    def fits(order: tuple[float, ...]) -> bool:
        pairs = zip(expected, order, strict=False)
        return all(abs(one - other) <= 0.5 for one, other in pairs)

    sizes = len(found) >= len(expected) if subset else len(found) == len(expected)
    wanted = sizes and any(fits(order) for order in permutations(found))
    assert equal(expected, found, ignore_order=True, tolerance=0.5, subset=subset) == wanted


@pytest.mark.parametrize(
    ("expected", "found", "rules", "is_equal"),
    [
        (1, 1.0, {}, True),
        (1, True, {}, False),
        (0, False, {}, False),
        (None, False, {}, False),
        ("1", 1, {}, False),
        (10**400, 1.5, {"tolerance": 1.0}, False),
        (10**400, 10**400 + 1, {"relative": 0.1}, True),
        (2**53, 2**53 + 1, {}, False),
        (100, 101, {"relative": 0.01}, True),
        (100, 102, {"relative": 0.01, "tolerance": 1.0}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {}, True),
        ({"a": 1}, {"a": 1, "b": 2}, {}, False),
        ({"a": 1}, {"a": 1, "b": 2}, {"subset": True}, True),
        ({"a": 1, "b": 2}, {"a": 1}, {"subset": True}, False),
        ({"a": 1}, {"a": 1, "at": 5}, {"ignore_keys": ["at"]}, True),
        ([{"at": 1}], [{"at": 2}], {"ignore_keys": ["at"], "ignore_order": True}, True),
        ([1, 2], [2, 1], {}, False),
        ([1, 1, 2], [1, 2, 2], {"ignore_order": True}, False),
        ([1, 2], [2, 3, 1], {"ignore_order": True, "subset": True}, True),
        ([1, 2], [1, 2, 3], {"subset": True}, False),
        ([[1], [1, 2]], [[2, 1], [1]], {"ignore_order": True, "subset": True}, True),
        ("\ud800", "\ud800", {"ignore_order": True}, True),
        ([], {}, {}, False),
    ],
)
def test_rules_of_equality(
    expected: Any, found: Any, rules: dict[str, Any], is_equal: bool
) -> None:
    assert equal(expected, found, **rules) == is_equal


def test_a_greedy_pairing_is_undone_where_it_was_wrong() -> None:
    assert equal([1.0, 1.4], [1.0, 0.6], ignore_order=True, tolerance=0.45)


def test_large_arrays_without_order_are_counted_not_matched() -> None:
    values = list(range(100_000))
    assert equal(values, values[::-1], ignore_order=True)


def test_matching_that_would_not_end_is_0_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_compare, "MAX_STEPS", 1000)
    values = [{} for _ in range(100)]
    with pytest.raises(TooCostly):
        equal(values, values, ignore_order=True, subset=True)
    rules = {"ignore_order": True, "subset": True}
    text = "[" + ",".join(["{}"] * 100) + "]"
    assert equals_expected(text, "whole", values, rules, False)[0] == 0


@pytest.mark.parametrize(
    ("expected", "found", "rules", "counted"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {}, (1, 2)),
        ({"a": 1}, {"a": 1, "b": [1, 2, 3]}, {}, (1, 4)),
        ({"a": 1}, {"a": 1, "b": [1, 2, 3]}, {"subset": True}, (1, 1)),
        ({"a": [1, 2, 3]}, {"a": [1, 2]}, {}, (2, 3)),
        ({"a": {"b": 1}}, {"a": 1}, {}, (0, 1)),
        ({"a": [1, 2]}, {}, {}, (0, 2)),
        ([], [], {}, (1, 1)),
        ({"a": 1, "at": 1}, {"a": 1, "at": 2}, {"ignore_keys": ["at"]}, (1, 1)),
    ],
)
def test_leaves_are_counted_at_their_places(
    expected: Any, found: Any, rules: dict[str, Any], counted: tuple[int, int]
) -> None:
    assert share(expected, found, **rules) == counted


@given(VALUES, VALUES)
def test_partial_credit_is_1_only_for_what_is_equal(one: Any, other: Any) -> None:
    import json

    value, reason = equals_expected(json.dumps(other), "whole", one, {}, True)
    assert 0 <= value <= 1
    assert (value == 1) == equal(one, other) == (reason is None)


def test_the_first_difference_is_named_by_its_place() -> None:
    said = Comparison().difference({"a": [{"b c": 1}]}, {"a": [{"b c": [1, 2]}]})
    assert said == "$.a[0]['b c']: expected 1, found an array of 2"
