"""Random numbers without state: the same question always gets the same answer. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def u(seed: int, run: str, decision: int, label: str) -> float:
    """Draw a number in [0, 1): the first 53 bits of a SHA-256 of the question.

    Args:
        seed: the policy's.
        run: the run's long id.
        decision: which decision of the run, from 0.
        label: what the number is for.
    """
    digest = hashlib.sha256(f"{seed}\x1f{run}\x1f{decision}\x1f{label}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def shuffled(
    items: Sequence[str], *, seed: int, run: str, decision: int, label: str
) -> tuple[str, ...]:
    """Shuffle by Fisher and Yates, with a number of `u` for each exchange."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        other = int(u(seed, run, decision, f"{label}:{last}") * (last + 1))
        order[last], order[other] = order[other], order[last]
    return tuple(order)
