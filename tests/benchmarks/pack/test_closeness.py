"""Close is what people who write decimals call close."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.pack.bounded.closeness import is_close


@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "relative", "close"),
    [
        (1.1, 1.0, 0.1, 0, True),
        (1.3, 1.0, 0.3, 0, True),
        (0.3, 0.4, 0.1, 0, True),
        (1.1000001, 1.0, 0.1, 0, False),
        (1.000000001, 1.0, 1e-9, 0, True),
        (1.0000000011, 1.0, 1e-9, 0, False),
        (101, 100, 0, 0.01, True),
        (10.1, 10, 0, 0.01, True),
        (-1.1, -1, 0, 0.1, True),
        (2**53 + 1, 2**53, 0, 0, False),
        (Fraction("9007199254740993"), Fraction("9007199254740992"), 0, 0, False),
        (10**400, 10**400 + 1, 1, 0, True),
        (10**400, 10**400 + 2, 1, 0, False),
        (10**400, 1.0, 0.5, 0, False),
        (float("inf"), 1.0, 5, 0, False),
        (Fraction("1e-400"), Fraction(0), 0, 0, False),
    ],
)
def test_a_number_at_its_limit_is_close(
    found: float | Fraction,
    expected: float | Fraction,
    tolerance: float,
    relative: float,
    close: bool,
) -> None:
    assert is_close(found, expected, tolerance=tolerance, relative=relative) is close


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**4), st.integers(0, 4))
def test_a_decimal_is_as_close_as_its_distance_in_decimals(
    expected: int, tolerance: int, digits: int
) -> None:
    scale = 10**digits
    at, off = expected / scale, tolerance / scale
    assert is_close((expected + tolerance) / scale, at, tolerance=off, relative=0)
    assert is_close((expected - tolerance) / scale, at, tolerance=off, relative=0)
    assert not is_close((expected + tolerance + 1) / scale, at, tolerance=off, relative=0)
