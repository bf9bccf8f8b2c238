"""What k attempts at one task become: one figure per task."""

from __future__ import annotations

from math import comb


def avg_at_k(n: int, total: float, k: int) -> float | None:
    """Mean of the values of k attempts, total / k.

    Args:
        n: attempts counted, 0 <= n <= k.
        total: the sum of their values.
        k: attempts planned, k >= 1.

    Returns:
        The mean, in the values' unit; None unless all k are counted.

    Raises:
        ValueError: n or k is out of range.
    """
    if k < 1 or not 0 <= n <= k:
        raise ValueError(f"{n} values of k = {k} attempts")
    return total / k if n == k else None


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
