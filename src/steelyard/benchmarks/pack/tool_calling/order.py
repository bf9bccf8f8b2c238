"""How many of the wanted calls were made, in the order that is asked for. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def met_in_any_order(fits: Sequence[Sequence[int]], needed: Sequence[int]) -> int:
    """Count the wanted calls that different calls meet: a maximum bipartite matching.

    Each wanted call is tried in turn, and takes another's partner where that one finds a new one
    (augmenting paths; Kuhn 1955). `sum(needed)` candidates of each are enough: the others hold at
    most all but one of them.

    Args:
        fits: for each entry the calls that fit it, ascending.
        needed: for each entry how many of them are wanted.
    """
    most = sum(needed)
    candidates = [calls[:most] for calls in fits]
    entry_of: dict[int, int] = {}

    def takes_one(entry: int, tried: set[int]) -> bool:
        tried.add(entry)
        for call in candidates[entry]:
            other = entry_of.get(call)
            if other is None or (other not in tried and takes_one(other, tried)):
                entry_of[call] = entry
                return True
        return False

    return sum(takes_one(entry, set()) for entry, count in enumerate(needed) for _ in range(count))


def met_in_order(fits: Sequence[Sequence[int]], needed: Sequence[int], calls: int) -> int:
    """Count the wanted calls that stand in order among those that were made, others between.

    The length of a longest common subsequence, where "the same" is "fits": O(wanted * calls).

    Args:
        fits: for each entry the calls that fit it.
        needed: for each entry how many of them are wanted, one after the other.
        calls: how many were made.
    """
    best = [0] * (calls + 1)
    for entry, count in enumerate(needed):
        fitting = set(fits[entry])
        for _ in range(count):
            diagonal = 0
            for call in range(calls):
                above = best[call + 1]
                if call in fitting:
                    best[call + 1] = diagonal + 1
                best[call + 1] = max(best[call + 1], best[call], above)
                diagonal = above
    return best[calls]
