"""The start of a request: its run directory, then, in a thread, its tasks and its reuse source."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from steelyard.components.benchmark import Task
from steelyard.components.clock import Clock
from steelyard.components.contract import checked_tasks, own_code, said
from steelyard.components.issues import Outcome
from steelyard.config.errors import BadInput, SteelyardError, Where
from steelyard.config.schema.request import ExecutionSettings
from steelyard.engine.carry_over import CarryOver, divide, source_chain, spared, taken_records
from steelyard.engine.plan_checks import unknown_tasks
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.run_state import RunState
from steelyard.engine.unfit import unfit_warning
from steelyard.results.documents import part
from steelyard.results.files import Faults, StorageFailed
from steelyard.results.identity import identity_differences
from steelyard.results.journal import EventKind, Journal
from steelyard.results.reuse import ASKED_ANEW, ReuseSource, choose_source, fired_limits
from steelyard.results.run_folder import create_run
from steelyard.results.syncer import Syncer

log = logging.getLogger(__name__)

_TAKEN_AT_ONCE: Final = 20
_REASONS_SAID: Final = 3
"""Why attempts run again; `explain-reuse` has all."""


def open_run(
    plan: RequestPlan,
    clock: Clock,
    syncer: Syncer,
    *,
    redact: Callable[[bytes], bytes] | None,
    faults: Faults,
) -> RunState:
    """Make the run directory and own it.

    Raises:
        BadInput: it is taken, or cannot be made.
        StorageFailed: its first files cannot be written.
    """
    folder = create_run(plan.paths, plan.document(), clock=clock, faults=faults, redact=redact)
    try:
        journal = Journal(folder, clock=clock, syncer=syncer, faults=faults, redact=redact)
    except StorageFailed:
        folder.lock.release()
        raise
    return RunState(plan, folder, journal, clock, clock.monotonic(), faults, redact)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What loading a request brought."""

    tasks: Sequence[Task] | None
    """None where they could not be loaded."""
    problem: str | None = None
    carry: CarryOver | None = None
    """What is taken from an earlier run."""
    reuse_note: str | None = None
    """Which run is taken from, which were passed over, and why."""


def load(plan: RequestPlan, own_run_id: str) -> Loaded:
    """Load the tasks, choose among them, find the run to reuse. Blocking: for a thread."""
    try:
        tasks = selected(all_tasks(plan), plan.request.execution)
        chain, note, passed = _reuse(plan, own_run_id)
        carry = divide(plan, tasks, chain) if chain else None
        if carry is not None:
            note = f"{note}: {_taken(carry, len(tasks) * plan.k)}"
            if ASKED_ANEW in carry.why_run:
                note += f"; changed: {_changed(plan, chain[0])}"
        if note is not None:
            note += passed
        if (unfit := unfit_warning(plan, tasks)) is not None:
            log.warning("%s: %s", plan.request.name, unfit)
    except SteelyardError as error:
        return Loaded(None, str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 — the boundary of the thread
        return Loaded(None, f"its tasks could not be loaded: {said(error)}")
    return Loaded(tasks, None, carry, note)


def all_tasks(plan: RequestPlan) -> Sequence[Task]:
    """Load every task of the request's benchmark. Blocking.

    Raises:
        BadInput: loading raised, or what it gave is no list of tasks with ids of their own.
    """
    benchmark = plan.services.benchmark
    what = f"the benchmark {plan.info.id!r}: load_tasks()"
    return checked_tasks(plan.info.id, own_code(what, benchmark, benchmark.load_tasks))


def _reuse(plan: RequestPlan, own_run_id: str) -> tuple[tuple[ReuseSource, ...], str | None, str]:
    """Give the runs to take from, which they are in words, and which were passed over."""
    runtime = plan.request.runtime
    if not (runtime.reuse or runtime.reuse_run_id):
        return (), None, ""
    choice = choose_source(
        plan.paths.namespace_dir, plan.shape, runtime.reuse_run_id, exclude=own_run_id
    )
    passed = "".join(f"; passed over {run_id}: {why}" for run_id, why in choice.passed_over)
    if choice.taken is None:
        return (), "nothing to reuse, starting fresh", passed
    root = plan.paths.namespace_dir / choice.taken
    chain = source_chain(root, fired_limits(plan.request))
    behind = "".join(f" and {source.run_id}" for source in chain[1:])
    return chain, f"reusing {choice.taken}{behind}", passed


def _taken(carry: CarryOver, planned: int) -> str:
    """Say what becomes of the attempts, and why what runs again does."""
    parts = [f"{len(carry.taken)} of {planned} attempts taken"]
    if carry.rescored:
        parts.append(f"{len(carry.rescored)} scored again")
    if carry.skipped:
        parts.append(f"{len(carry.skipped)} not needed")
    if count := sum(carry.why_run.values()):
        reasons = carry.why_run.most_common(_REASONS_SAID)
        if len(carry.why_run) == 1:
            why = reasons[0][0]
        else:
            why = "; ".join(f"{number}: {reason}" for reason, number in reasons)
        more = "; …" if len(carry.why_run) > _REASONS_SAID else ""
        parts.append(f"{count} run ({why}{more})")
    return ", ".join(parts)


def _changed(plan: RequestPlan, source: ReuseSource) -> str:
    """Name what an agent is asked, or is, and was not in an earlier run."""
    saved = part(part(source.document, "identities"), "generation")
    present = plan.document()["identities"]["generation"]
    found = [
        f"{one['field']} was {one['was']!r:.60}, is {one['is']!r:.60}"
        for one in identity_differences(saved, present)
    ]
    more = f"; and {len(found) - _REASONS_SAID} more" if len(found) > _REASONS_SAID else ""
    return "; ".join(found[:_REASONS_SAID]) + more if found else "what the tasks show"


async def take_over(run: RunState, tasks: Sequence[Task], carry: CarryOver) -> None:
    """Record what an earlier run has ended, a few at a time, while the rest runs.

    It ends with `carried`, which says how many are to be scored again: until they have been, the
    earlier run is still needed.
    """
    for warning in carry.warnings:
        run.journal.event(EventKind.WARNING, message=warning)
        log.warning("%s: %s", run.name, warning)
    try:
        records = taken_records(run.plan, tasks, carry, run.folder, run.faults)
        # What lies beside them is copied in a thread: it may be large.
        while some := await asyncio.to_thread(lambda: list(islice(records, _TAKEN_AT_ONCE))):
            for task, record in some:
                run.keep(task, record)
            run.journal.flush()
    except StorageFailed as error:
        run.journal.fail(error)
    needless = spared(run.plan, tasks, carry)
    while more := await asyncio.to_thread(lambda: list(islice(needless, _TAKEN_AT_ONCE))):
        for task, attempt, spent in more:
            run.keep(task, spent or run.skipped(task, attempt, Outcome.SKIPPED_PASSED))
        run.journal.flush()
    run.journal.event(EventKind.CARRIED, attempts=len(carry.taken), rescored=len(carry.rescored))
    run.journal.flush()


class NoTasks(BadInput):
    """A request whose filters leave nothing to run."""


def selected(tasks: Sequence[Task], execution: ExecutionSettings) -> Sequence[Task]:
    """Apply `sample_ids`, `exclude_ids`, `shard` and `limit`, in that order.

    Raises:
        BadInput: a named id does not exist, or nothing is left.
    """
    problems = unknown_tasks((task.id for task in tasks), execution, lambda path: Where(field=path))
    if problems:
        raise BadInput.of(problems)
    chosen = list(tasks)
    if execution.sample_ids is not None:
        wanted = set(execution.sample_ids)
        chosen = [task for task in chosen if task.id in wanted]
    if execution.exclude_ids:
        unwanted = set(execution.exclude_ids)
        chosen = [task for task in chosen if task.id not in unwanted]
    if execution.shard is not None:
        part, parts = (int(number) for number in execution.shard.split("/"))
        chosen = chosen[part - 1 :: parts]
    if execution.limit is not None:
        chosen = chosen[: execution.limit]
    if not chosen:
        raise NoTasks(
            f"no tasks are left of {len(tasks)}",
            remedy="loosen sample_ids, exclude_ids, shard or limit"
            if tasks
            else "the benchmark holds no tasks",
        )
    return chosen
