"""The seed of an attempt, from the one that a request was given. Pure."""

from __future__ import annotations

import hashlib
from typing import Final

SEED_VARIABLE: Final = "STEELYARD_SEED"
"""In every program of an agent's session, where the request was given a seed."""
_31_BITS: Final = 0x7FFF_FFFF


def attempt_seed(seed: int | None, attempt: int) -> int:
    """Give what an attempt draws its random numbers from.

    Args:
        seed: the request's, 0 to 2**63 - 1; None where it has none.
        attempt: counted from 1.

    Returns:
        Without a seed the attempt's number. With one, itself for the first attempt, and for the
        others 31 positive bits of a SHA-256 of both: cells of a sweep with one seed can be paired
        attempt by attempt, on any machine.
    """
    if seed is None:
        return attempt
    if attempt == 1:
        return seed
    digest = hashlib.sha256(f"{seed}/{attempt}".encode("ascii")).digest()
    return int.from_bytes(digest[:4], "big") & _31_BITS or 1
