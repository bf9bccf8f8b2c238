"""How large a difference must be for this many tasks to show it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan, sqrt
from types import MappingProxyType
from typing import Final

POWER: Final = 0.8
ALPHA: Final = 0.05
_USUAL: Final[Mapping[int, float]] = MappingProxyType(
    {
        2: 11.549888435882366,
        3: 3.264043549699574,
        4: 2.1279493432594156,
        5: 1.6819969659555545,
        6: 1.4345447820404096,
        7: 1.2725666554542223,
        8: 1.15603467799478,
        9: 1.0669732162170398,
        10: 0.9960013714555671,
        11: 0.9376906639008077,
        12: 0.8886542652937455,
        13: 0.8466548479920034,
        14: 0.8101466719194098,
        15: 0.7780225697862123,
        16: 0.7494656445142142,
        17: 0.7238580380084079,
        18: 0.7007225007963541,
        19: 0.6796836712199811,
        20: 0.6604416546241393,
        21: 0.6427535327571188,
        22: 0.6264201330588137,
        23: 0.6112763746048202,
        24: 0.5971841002927435,
        25: 0.5840266715517105,
        26: 0.5717048347150576,
        27: 0.5601335195851219,
        28: 0.5492393312488196,
        29: 0.5389585642520577,
        30: 0.5292356151149881,
    }
)
"""What `minimum_detectable_effect` computes for few pairs at the usual power: SciPy is slow to
start, and `fix status` shows this every time. A test computes them again."""


def detectable_in_errors(
    degrees: int, *, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Give the smallest difference that a two-sided t-test finds, in standard errors.

    The noncentrality d at which the noncentral t exceeds the critical values of the central one
    with probability `power` (Cohen 1988, ch. 2).

    Args:
        degrees: degrees of freedom: pairs (or clusters) less one.
        power: chance of finding it, in (alpha, 1).
        alpha: chance of finding what is not there, in (0, 1).

    Returns:
        A multiple of the standard error; None below one degree of freedom.

    Raises:
        ValueError: power or alpha is out of range.
    """
    if not 0 < alpha < power < 1:
        raise ValueError(f"alpha = {alpha}, power = {power}: write 0 < alpha < power < 1")
    if degrees < 1:
        return None
    from scipy.optimize import brentq  # type: ignore[import-untyped]
    from scipy.special import nctdtr, stdtrit  # type: ignore[import-untyped]

    critical = float(stdtrit(degrees, 1 - alpha / 2))

    def shortfall(noncentrality: float) -> float:
        upper = 1 - float(nctdtr(degrees, noncentrality, critical))
        lower = float(nctdtr(degrees, noncentrality, -critical))
        # SciPy gives no number for some of the tails that are as good as 0.
        return upper + (0.0 if isnan(lower) else lower) - power

    high = critical + 1.0
    while shortfall(high) < 0:
        high *= 2
    return float(brentq(shortfall, 0.0, high, xtol=1e-10))


def minimum_detectable_effect(
    n: int, *, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Give the smallest mean difference of n pairs that is found, in their standard deviations.

    Args:
        n: pairs.
        power: chance of finding it.
        alpha: chance of finding what is not there, two-sided.

    Returns:
        `detectable_in_errors(n - 1) / sqrt(n)`; None below two pairs.

    Raises:
        ValueError: power or alpha is out of range.
    """
    if (power, alpha) == (POWER, ALPHA) and n in _USUAL:
        return _USUAL[n]
    found = detectable_in_errors(n - 1, power=power, alpha=alpha)
    return None if found is None else found / sqrt(n)
