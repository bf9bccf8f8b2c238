"""Run a planned submission of a set: its folder, its lock, its one launch, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.components.clock import Clock, SystemClock
from steelyard.config.errors import BadInput, SteelyardError
from steelyard.engine.control import Controls
from steelyard.engine.events import LaunchResult, Observer, RunOutcome
from steelyard.engine.launch import launch
from steelyard.engine.outcomes import EXIT_STATUS, orchestration_outcome
from steelyard.evalset.gates import Held, baseline_of, gates_of, hold
from steelyard.evalset.manifest import SetGates
from steelyard.evalset.report.report import read_set
from steelyard.evalset.set_folder import OwnedSet, create_set, own_set
from steelyard.evalset.set_plan import SetPlan
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.set_reason import set_reason
from steelyard.evalset.states import CellState
from steelyard.evalset.submissions import Submission
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.results.gates import GATE_NOT_MET

_OUTCOME_OF: Mapping[CellState, RunOutcome] = {
    CellState.COMPLETED: RunOutcome.COMPLETED,
    CellState.FAILED: RunOutcome.FAILED,
    CellState.TIMED_OUT: RunOutcome.TIMED_OUT,
    CellState.CANCELLED: RunOutcome.CANCELLED,
    CellState.SKIPPED_BUDGET: RunOutcome.BUDGET_EXCEEDED,
    CellState.PENDING: RunOutcome.CANCELLED,
    CellState.INTERRUPTED: RunOutcome.CANCELLED,
    CellState.RUNNING: RunOutcome.CANCELLED,
}


class SetWentOn(BadInput):
    """Another process has gone on with a set since this one has looked at it.

    What is missing, and what is left of the budget, is no longer what was planned with.
    """

    def __init__(self, opened: OpenedSet) -> None:
        super().__init__(
            f"another process has gone on with {opened.set_id} meanwhile; nothing was started here",
            remedy=f"`steelyard evalset status {opened.set_id}` says how it ended; "
            f"`steelyard evalset resume {opened.set_id}` runs what is missing now",
        )


@dataclass(frozen=True, slots=True)
class SetResult:
    """How a submission ended."""

    opened: OpenedSet
    submission: Submission
    launch: LaunchResult
    held: Held | None = None
    """What came of the manifest's gates and baseline; None where it has none."""

    @property
    def outcome(self) -> RunOutcome:
        """The set's, the cells that did not run included."""
        return self.submission.outcome or RunOutcome.FAILED

    @property
    def exit_status(self) -> int:
        """Of the command."""
        return self.submission.exit_status or 0


async def run_set(
    plan: SetPlan,
    *,
    clock: Clock | None = None,
    observer: Observer | None = None,
    controls: Controls | None = None,
    faults: Faults = NO_FAULTS,
    handle_signals: bool = False,
    reap: bool = False,
    on_begun: Callable[[OpenedSet], None] | None = None,
) -> SetResult:
    """Run a planned submission to its end.

    Args:
        plan: what `plan_submission` or `plan_resume` gave; used once.
        clock: the system's by default.
        observer: is told of progress, on the event loop.
        controls: a new handle, to steer it with while it runs.
        faults: what a test does to writes.
        handle_signals: whether SIGINT, SIGTERM and SIGHUP cancel it.
        reap: whether what dead runs of these cells left is ended first.
        on_begun: is told of the set once its folder is there.

    Raises:
        BadInput: its folder is taken, or another process runs it or has gone on with it; nothing
            has started.
        CancelledError: it was cancelled from outside; all cells have ended.
    """
    clock = clock or SystemClock()
    owned = _owned(plan, clock, faults)
    try:
        if on_begun is not None:
            on_begun(owned.opened)
        places = [cell.index for cell in plan.cells]
        submission = owned.begin(plan.kind, places, plan.budget_usd, clock=clock)
        cells_dir = owned.opened.files.cells
        prepared = replace(plan.prepared, plan=plan.prepared.plan.placed_in(cells_dir))
        try:
            result = await launch(
                prepared,
                observer=observer,
                controls=controls,
                faults=faults,
                handle_signals=handle_signals,
                reap=reap,
            )
        except BadInput as error:
            failed = RunOutcome.FAILED
            owned.end(submission, failed, error.exit_status, str(error), clock=clock)
            raise
        except BaseException as error:
            outcome = RunOutcome.CANCELLED
            said = f"{type(error).__name__}: {error}"
            owned.end(submission, outcome, EXIT_STATUS[outcome], said, clock=clock)
            raise
        outcome, status = _ended(plan, result)
        reason = None if outcome is RunOutcome.COMPLETED else set_reason(result.requests)
        held, fault = await asyncio.to_thread(_held, plan, owned.opened)
        if held is not None and not held.is_met:
            status = status or GATE_NOT_MET
        ended = owned.end(submission, outcome, status, reason, clock=clock)
        if fault is not None:
            raise fault
        return SetResult(owned.opened, ended, result, held)
    finally:
        owned.release()


def _held(plan: SetPlan, opened: OpenedSet) -> tuple[Held | None, SteelyardError | None]:
    """Hold the set against the gates of its manifest; what keeps it from being held is no loss."""
    if gates_of(opened) == SetGates() and baseline_of(opened) is None:
        return None, None
    results_dir = Path(plan.prepared.plan.orchestration.runtime.results_dir)
    try:
        return hold(opened, read_set(opened, with_digests=True), results_dir), None
    except SteelyardError as error:
        return None, error


def _owned(plan: SetPlan, clock: Clock, faults: Faults) -> OwnedSet:
    redact = plan.prepared.redactor.raw
    if plan.opened is None:
        return create_set(
            plan.namespace,
            plan.document,
            set_id=plan.set_id,
            clock=clock,
            faults=faults,
            redact=redact,
        )
    owned = own_set(plan.opened, faults=faults, redact=redact)
    try:
        found = owned.opened
        if len(found.submissions()) != plan.submissions or found.document != plan.opened.document:
            raise SetWentOn(found)
    except BaseException:
        owned.release()
        raise
    if plan.document != plan.opened.document:
        try:
            return owned.replace_document(plan.document)
        except BaseException:
            owned.release()
            raise
    return owned


def _ended(plan: SetPlan, result: LaunchResult) -> tuple[RunOutcome, int]:
    """Judge the set: the cells that ran, and those that did not."""
    outcomes = [request.outcome for request in result.requests]
    outcomes += [_OUTCOME_OF[status.state] for status in plan.kept]
    outcome = orchestration_outcome(outcomes)
    is_same = outcome is result.outcome
    return outcome, result.exit_status if is_same else EXIT_STATUS[outcome]
