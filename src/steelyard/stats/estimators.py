"""What k attempts at one task become: one figure per task."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, fsum


def avg_at_k(values: Sequence[float], k: int) -> float | None:
    """Mean of the values of k attempts.

    Args:
        values: those of the attempts that count.
        k: attempts planned, k >= 1.

    Returns:
        The mean; None unless all k are counted.

    Raises:
        ValueError: k is below 1, or there are more than k values.
    """
    if k < 1 or len(values) > k:
        raise ValueError(f"{len(values)} values of k = {k} attempts")
    return fsum(values) / k if len(values) == k else None


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Chance that at least one of k attempts succeeds.

    Unbiased: 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, eq. 1, arXiv 2107.03374).

    Args:
        n: attempts counted.
        c: successes among them, 0 <= c <= n.
        k: attempts drawn, k >= 1.

    Returns:
        A fraction in [0, 1]; None when n < k.

    Raises:
        ValueError: c or k is out of range.
    """
    _check(n, c, k)
    return None if n < k else 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Chance that all of k attempts succeed, pass^k.

    Unbiased: C(c, k) / C(n, k) (Yao et al. 2024, arXiv 2406.12045).

    Args:
        n: attempts counted; none may have been skipped.
        c: successes among them, 0 <= c <= n.
        k: attempts drawn, k >= 1.

    Returns:
        A fraction in [0, 1]; None when n < k.

    Raises:
        ValueError: c or k is out of range.
    """
    _check(n, c, k)
    return None if n < k else comb(c, k) / comb(n, k)


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"{c} successes of {n} attempts")
    if k < 1:
        raise ValueError(f"k = {k}, must be at least 1")
