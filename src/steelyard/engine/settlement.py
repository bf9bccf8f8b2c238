"""What an execution that has ended costs the budgets that it drew on.

Pure. `models/allowance.py` says what was spent, `engine/admission.py` books what is said here.
"""

from __future__ import annotations

from steelyard.engine.admission import Start
from steelyard.models.allowance import Charge


def settled(start: Start, charge: Charge, *, unknown_is_free: bool) -> tuple[float, int]:
    """Give the US dollars and the tokens to book for an execution, retries each for itself.

    Where a part of what it spent has no known cost, at least what it had reserved is booked: a
    cost that nobody knows must not look like money saved.

    Args:
        start: what it reserved.
        charge: what it spent, on the agent's calls and on scoring.
        unknown_is_free: the user has said that what has no price costs nothing.
    """
    if charge.is_whole or unknown_is_free:
        return charge.usd, charge.tokens
    return max(charge.usd, start.reserved_usd), max(charge.tokens, start.reserved_tokens)
