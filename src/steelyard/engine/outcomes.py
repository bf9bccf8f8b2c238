"""From outcomes of attempts to the outcome of a request, of an orchestration, to an exit status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from steelyard.components.issues import Outcome
from steelyard.engine.events import LaunchResult, RequestResult, RunOutcome

EXIT_STATUS: Final[Mapping[RunOutcome, int]] = MappingProxyType(
    {
        RunOutcome.COMPLETED: 0,
        RunOutcome.PARTIAL_FAILURE: 1,
        RunOutcome.FAILED: 1,
        RunOutcome.BUDGET_EXCEEDED: 4,
        RunOutcome.TIMED_OUT: 5,
        RunOutcome.CANCELLED: 130,
    }
)
"""`cancelled` by SIGTERM is 143 instead; bad input is 2 and a missed gate 3, decided elsewhere."""

_STRONGEST_FIRST: Final = (RunOutcome.CANCELLED, RunOutcome.TIMED_OUT, RunOutcome.BUDGET_EXCEEDED)


def request_outcome(
    counts: Mapping[Outcome, int], planned: int, *, unpaid_retries: int = 0
) -> RunOutcome:
    """Judge a request that was not stopped: completed when all ended and none ended FATAL."""
    if counts.get(Outcome.SKIPPED_BUDGET) or unpaid_retries:
        return RunOutcome.BUDGET_EXCEEDED
    ended = sum(counts.values()) - counts.get(Outcome.NOT_STARTED, 0)
    whole = ended == planned and not counts.get(Outcome.FAILED_FATAL)
    return RunOutcome.COMPLETED if whole else RunOutcome.FAILED


def orchestration_outcome(requests: Sequence[RunOutcome]) -> RunOutcome:
    """Judge the whole: what stopped it, else how many of its requests failed."""
    for outcome in _STRONGEST_FIRST:
        if outcome in requests:
            return outcome
    failed = sum(outcome is RunOutcome.FAILED for outcome in requests)
    if not failed:
        return RunOutcome.COMPLETED
    return RunOutcome.FAILED if failed == len(requests) else RunOutcome.PARTIAL_FAILURE


def closed_ledger(counts: Mapping[Outcome, int], planned: int) -> dict[Outcome, int]:
    """Give every outcome its count; what has none never started."""
    ledger = {outcome: counts.get(outcome, 0) for outcome in Outcome}
    ledger[Outcome.NOT_STARTED] += planned - sum(ledger.values())
    return ledger


def launch_result(
    requests: tuple[RequestResult, ...],
    cancelled_status: int | None,
    *,
    elapsed_s: float,
    loop_lag_p99_ms: float | None,
) -> LaunchResult:
    """Say how an orchestration ended; `cancelled_status` is the exit status of who cancelled it."""
    outcome = orchestration_outcome([request.outcome for request in requests])
    status = EXIT_STATUS[outcome]
    if outcome is RunOutcome.CANCELLED and cancelled_status is not None:
        status = cancelled_status
    return LaunchResult(outcome, status, requests, elapsed_s, loop_lag_p99_ms)
