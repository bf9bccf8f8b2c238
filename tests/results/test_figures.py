"""Written figures: short, in order, and never what the exact one is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.results.figures import figure, pair, share, usd

NUMBERS = st.floats(-1e4, 1e4) | st.floats(0, 1) | st.floats(0.999, 1.001) | st.floats(-1e-3, 1e-3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5119, "0.512"),
        (1.0, "1.000"),
        (0, "0.000"),
        (0.9996, "0.9996"),
        (0.99996, "0.99996"),
        (-0.0001, "-0.0001"),
        (-0.0, "0.000"),
        (0.0004, "0.0004"),
        (1e-15, "0.000"),
        (1 - 1e-15, "1.000"),
        (-1e-15, "0.000"),
        (12.0, "12.000"),
        (True, "1.000"),
    ],
)
def test_a_figure_looks_whole_only_where_it_is(value: float, text: str) -> None:
    assert figure(value) == text


@given(NUMBERS, NUMBERS)
def test_figures_are_written_in_their_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert float(figure(low)) <= float(figure(high))


@given(NUMBERS)
def test_a_figure_is_off_by_half_of_its_last_digit_at_most(value: float) -> None:
    assert abs(float(figure(value)) - value) <= 0.000501
    assert not figure(value).startswith("-0.000") or float(figure(value)) < 0


def test_an_interval_is_written_as_its_value_is() -> None:
    assert pair([0.41, 0.99961]) == "[0.410, 0.9996]"


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 9, "0%"), (9, 9, "100%"), (999, 1000, ">99%"), (1, 1000, "<1%"), (150, 164, "91%")],
)
def test_only_all_is_all_and_only_none_is_none(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text


@pytest.mark.parametrize(
    ("amount", "digits", "text"),
    [
        (0.1234, 4, "0.1234"),
        (0.00002, 4, "0.00002"),
        (2, 2, "2.00"),
        (0.001, 2, "0.001"),
        (0.0015, 2, "0.0015"),
        (1.234567, 2, "1.23"),
        (0, 4, "0.0000"),
        (4.6e-7, 6, "0.00000046"),
    ],
)
def test_money_that_was_spent_is_never_nothing(amount: float, digits: int, text: str) -> None:
    assert usd(amount, digits) == text
