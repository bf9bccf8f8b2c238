"""How large a difference must be for this many tasks to show it. Pure."""

from __future__ import annotations

from math import isnan, sqrt


def detectable_in_errors(degrees: int, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
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


def minimum_detectable_effect(n: int, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
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
    found = detectable_in_errors(n - 1, power=power, alpha=alpha)
    return None if found is None else found / sqrt(n)
