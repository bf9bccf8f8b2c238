"""Why a set did not complete, said of the whole set and not of one of its cells. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.components.issues import Outcome
from steelyard.engine.events import RequestResult


def set_reason(requests: Sequence[RequestResult]) -> str | None:
    """Add up why cells did not complete; None where none says why.

    Args:
        requests: the cells of one submission, as their launch ended.
    """
    said = [request for request in requests if request.reason]
    if len(requests) == 1 or not said:
        return said[0].reason if said else None
    parts = []
    for outcome, what in (
        (Outcome.SKIPPED_BUDGET, "the budget left {} unstarted"),
        (Outcome.FAILED_FATAL, "{} ended FATAL"),
    ):
        told = _told(requests, outcome, what)
        if told is not None:
            parts.append(told)
    if parts:
        return "; ".join(parts)
    reasons = dict.fromkeys(request.reason for request in said)
    first, more = next(iter(reasons)), len(reasons) - 1
    return first if not more else f"{first}; and {more} more reason{'s' * (more > 1)}"


def _told(requests: Sequence[RequestResult], outcome: Outcome, what: str) -> str | None:
    """Count an outcome over all cells; None where no attempt has it."""
    counts = [request.counts.get(outcome, 0) for request in requests]
    if not sum(counts):
        return None
    attempts = f"{sum(counts)} of {sum(request.planned for request in requests)} attempts"
    return f"{what.format(attempts)}, in {sum(map(bool, counts))} of {len(requests)} cells"
