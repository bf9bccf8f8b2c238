"""Open the runs of a launch: all of them, or none that looks as if it were going on."""

from __future__ import annotations

from steelyard.components.clock import Clock
from steelyard.config.errors import SteelyardError
from steelyard.config.redaction import Redactor
from steelyard.engine.admission import Admission
from steelyard.engine.events import RunOutcome
from steelyard.engine.opening import open_run
from steelyard.engine.plan import Plan
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.run_state import RunState
from steelyard.results.files import Faults
from steelyard.results.syncer import Syncer


async def open_all(
    plan: Plan, clock: Clock, syncer: Syncer, *, redactor: Redactor, faults: Faults
) -> list[RunState]:
    """Make the run directory of every request, in declaration order.

    Waits for nothing unless it fails; then the syncer is closed too.

    Raises:
        BadInput: one is taken or cannot be made. Those that were opened say why they never began.
        StorageFailed: the first files of one cannot be written; as above.
    """
    runs: list[RunState] = []
    try:
        for request in plan.requests:
            runs.append(open_run(request, clock, syncer, redact=redactor.raw, faults=faults))  # noqa: PERF401 — what was opened before a failure is closed
    except SteelyardError as error:
        reason = f"another request could not be opened: {error}"
        for run in runs:
            await run.journal.finish(RunOutcome.FAILED.value, {}, reason)
            run.journal.close()
        await syncer.close()
        raise
    return runs


def give_place(admission: Admission, index: int, plan: RequestPlan) -> None:
    """Give a request its place in the queue; its tasks are not known yet."""
    admission.open_request(
        index,
        provider=plan.spec.environment.id,
        opens_environment=True,
        overlap=plan.attempts_may_overlap,
        k=plan.k,
        budget=plan.budget,
        spends=plan.spends,
        max_running=plan.request.execution.max_concurrent_attempts,
    )
