"""Student's quantiles without SciPy agree with SciPy's, however they are computed."""

from __future__ import annotations

import pytest
from scipy.special import stdtrit

from steelyard.stats.student import t_quantile

DEGREES = [*range(1, 30), 45, 99, 100, 101, 199, 250, 399, 400, 401, 402, 500, 1_000, 5_000, 10**6]


@pytest.mark.parametrize("probability", [0.005, 0.025, 0.05, 0.3, 0.5, 0.9, 0.95, 0.975, 0.999])
def test_quantiles_agree_with_scipys(probability: float) -> None:
    for degrees in DEGREES:
        expected = float(stdtrit(degrees, probability))
        assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-11, abs=1e-12)
