"""The end of a request: its outcome last in the journal, its summary, its result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor as Threads
from typing import Any

from steelyard.components.issues import Outcome
from steelyard.config.errors import SteelyardError
from steelyard.engine.analysis import analyze_finished
from steelyard.engine.events import RequestResult, RunOutcome
from steelyard.engine.outcomes import closed_ledger, request_outcome
from steelyard.engine.run_state import RunState
from steelyard.engine.unfit import unfit_warning
from steelyard.results.consumption import dollars
from steelyard.results.figures import usd
from steelyard.results.files import Faults, StorageFailed
from steelyard.results.journal import EventKind
from steelyard.results.reader import RunReader
from steelyard.results.summary import summarise, write_summary

log = logging.getLogger(__name__)


async def finish_run(
    run: RunState,
    threads: Threads,
    faults: Faults,
    is_stopping: Callable[[], bool] = lambda: False,
) -> RequestResult:
    """Close the ledger, sync it, and write what is derived from it. Never raises."""
    if run.tasks is not None and (unfit := unfit_warning(run.plan, run.tasks)) is not None:
        run.journal.event(EventKind.WARNING, message=unfit)
    counts = closed_ledger(run.counts, run.planned)
    outcome, reason = _outcome(run, counts)
    run.journal.flush()
    if run.journal.failure is not None:
        counts = _kept(run, counts)
    await run.journal.finish(
        outcome.value, {word.value: count for word, count in counts.items() if count}, reason
    )
    if run.journal.failure is not None and outcome is RunOutcome.COMPLETED:
        outcome, reason = RunOutcome.FAILED, str(run.journal.failure)
    metrics: dict[str, Any] | None = None
    try:
        metrics = await asyncio.get_running_loop().run_in_executor(
            threads, write_summary, run.folder.root, faults
        )
    except StorageFailed as error:
        log.warning("%s has no summary: %s", run.name, error)
        metrics = _unwritten(run)
    except SteelyardError as error:
        log.warning("%s has no summary: %s", run.name, error)
    except Exception:
        log.exception("%s has no summary", run.name)
    if metrics is not None:
        await analyze_finished(run, threads, faults, is_stopping=is_stopping)
    return RequestResult(
        run.name, outcome, reason, run.folder.root, run.planned, counts, metrics, run.reuse_note
    )


def _kept(run: RunState, counts: dict[Outcome, int]) -> dict[Outcome, int]:
    """Count what reached the disk: once it has failed, the last of what ended did not."""
    try:
        kept = RunReader(run.folder.root).settled_ledger.outcomes
    except SteelyardError:
        return counts
    return closed_ledger({word: kept.get(word, 0) for word in Outcome}, run.planned)


def _unwritten(run: RunState) -> dict[str, Any] | None:
    """Give the figures of a run whose disk takes no summary."""
    try:
        return summarise(run.folder.root)
    except SteelyardError:
        return None


def _outcome(run: RunState, counts: dict[Outcome, int]) -> tuple[RunOutcome, str | None]:
    if run.stop is not None:
        return run.stop.outcome, run.stop.reason
    outcome = request_outcome(counts, run.planned, unpaid_retries=run.unpaid_retries)
    if outcome is RunOutcome.FAILED:
        fatal = counts[Outcome.FAILED_FATAL]
        worst = run.issue_counts.most_common(1)
        share = "all" if len(run.issue_counts) == 1 else "most"
        named = f", {share} of them {worst[0][0]}" if worst else ""
        if worst and fatal == 1:
            named = f", by {worst[0][0]}" if share == "all" else ""
        return outcome, f"{fatal} of {run.planned} attempts ended FATAL{named}"
    if outcome is RunOutcome.BUDGET_EXCEEDED:
        left = []
        if skipped := counts[Outcome.SKIPPED_BUDGET]:
            left.append(f"{skipped} of {run.planned} attempts unstarted")
        if run.unpaid_retries:
            left.append(f"{run.unpaid_retries} retries unmade")
        limit = run.plan.budget.usd  # what the whole launch may spend is said at its end
        spent = "" if limit is None else f": {dollars(run.cost_usd)} of ${usd(limit, 2)} spent"
        return outcome, f"the budget left {' and '.join(left)}{spent}"
    return outcome, None
