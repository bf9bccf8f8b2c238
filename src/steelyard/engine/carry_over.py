"""Which attempts of a request are taken from an earlier run, which are left to run.

Decided for all of them before the first starts, so that what is taken needs no slot, no
creation token and no reservation. Records are read again when they are written: only numbers
are kept meanwhile.

A run that ended while it was taking from another, or before it had scored all that it was to
score again, holds only part of what was finished. So the sources are a chain: the run that is
reused, then what it had not finished taking from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from steelyard.components.benchmark import Task
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.config.errors import Fault, SteelyardError
from steelyard.engine.kept_execution import Keeper
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.spec import ExecutionResult, SavedWork
from steelyard.results.artifacts import remove_kept
from steelyard.results.checkpoints import Checkpoint, CheckpointDamaged, carry_checkpoint
from steelyard.results.documents import part, read_run_document
from steelyard.results.files import Faults, StorageFailed
from steelyard.results.journal import EventKind
from steelyard.results.layout import attempt_folder
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.results.reuse import Decision, DecisionKind, Rescoring, ReuseSource
from steelyard.results.run_folder import RunFolder

_NOT_ENDED: Final = (Outcome.CANCELLED, Outcome.SKIPPED_BUDGET, Outcome.NOT_STARTED)
_FILTERS: Final = ("sample_ids", "exclude_ids", "shard", "limit")


class WorkLost(Fault):
    """Saved work that was to be scored again and cannot be read any more; names what is wrong."""


@dataclass(slots=True)
class CarryOver:
    """The attempts of a request, divided."""

    chain: tuple[ReuseSource, ...]
    """Newest first; never empty."""
    to_run: list[Sequence[int]] = field(default_factory=list)
    """For each task the attempts that are left to run, ascending."""
    taken: list[tuple[int, int]] = field(default_factory=list)
    """(task index, attempt)."""
    rescored: set[tuple[int, int]] = field(default_factory=set)
    """Among those left to run: the agent does not run, its saved work is scored again."""
    skipped: list[tuple[int, int]] = field(default_factory=list)
    """Needless, because a taken attempt of their task has passed."""
    warnings: list[str] = field(default_factory=list)
    """What was wrong with saved data."""
    refused: dict[tuple[int, int], str] = field(default_factory=dict)
    """Of those left to run: what was wrong with the data that would have spared it."""

    why_run: Counter[str] = field(default_factory=Counter)
    """Why the agent runs again, each reason with its number of attempts."""

    def attempts_of(self, task: int) -> Sequence[int]:
        """The attempts of a task that are left to run."""
        return self.to_run[task]


def source_chain(first: Path, limits: Mapping[str, Any]) -> tuple[ReuseSource, ...]:
    """Open a run to reuse, and behind it each run that still holds what this one has not.

    Raises:
        RunUnreadable: the first cannot be read. One behind it that cannot ends the chain.
    """
    chain = [ReuseSource(first, limits=limits)]
    seen = {first}
    behind, is_needed = _behind(first)
    while behind is not None and behind not in seen:
        seen.add(behind)
        try:
            if is_needed:
                chain.append(ReuseSource(behind, limits=limits))
        except SteelyardError:
            break
        behind, is_needed = _behind(behind)
    return tuple(chain)


def _behind(root: Path) -> tuple[Path | None, bool]:
    """Give the run that this one took from, and whether something may still be only there."""
    source: Path | None = None
    try:
        reader = RunReader(root)
        for event in reader.events():
            if event.get("kind") == EventKind.PLANNED:
                if not event.get("reuse"):
                    return None, False
                source = root.parent / Path(str(event["reuse"])).name
            elif source is not None and event.get("kind") == EventKind.CARRIED:
                return source, _left_something(reader, source, event)
    except SteelyardError:
        return source, True
    return source, True


def _left_something(reader: RunReader, source: Path, carried: Mapping[str, Any]) -> bool:
    """True where a run that has all it took whole may not have all that was to be had.

    Work that is scored again is copied once its turn comes, and a run of fewer tasks leaves the
    others where they are.
    """
    if _filters(reader.document) != _filters(read_run_document(source)):
        return True
    if carried.get("rescored") == 0:
        return False
    outcomes = reader.settled_ledger.outcomes
    return any(outcomes.get(outcome) for outcome in _NOT_ENDED)


def _filters(document: Mapping[str, Any]) -> list[Any]:
    execution = part(part(dict(document), "request"), "execution")
    return [execution.get(name) or None for name in _FILTERS]


def divide(plan: RequestPlan, tasks: Sequence[Task], chain: tuple[ReuseSource, ...]) -> CarryOver:
    """Decide for every attempt by the contract's table. Blocking: for a thread."""
    found = CarryOver(chain, warnings=[text for source in chain for text in source.warnings])
    every = tuple(range(1, plan.k + 1))
    for index, task in enumerate(tasks):
        identities = plan.identities(task)
        left, passed, why = [], False, []
        for attempt in every:
            decision, _ = decide(plan, chain, task, attempt, identities)
            record = decision.record
            if decision.warning is not None:
                found.warnings.append(decision.warning)
                if record is None:
                    found.refused[index, attempt] = decision.warning
            if record is None or decision.kind is DecisionKind.RESCORE:
                left.append(attempt)
                if record is not None:
                    found.rescored.add((index, attempt))
                else:
                    why.append(decision.reason)
            else:
                found.taken.append((index, attempt))
                passed = passed or plan.stops_task(record.outcome, record.metrics)
        if passed:
            found.skipped += [(index, attempt) for attempt in left]
            found.rescored.difference_update((index, attempt) for attempt in left)
            left = []
        else:
            found.why_run.update(why)
        found.to_run.append(every if len(left) == len(every) else tuple(left))
    return found


def taken_records(
    plan: RequestPlan,
    tasks: Sequence[Task],
    carry: CarryOver,
    folder: RunFolder,
    faults: Faults,
) -> Iterator[tuple[int, AttemptRecord]]:
    """Read what is taken once more, answers that lie in files copied; (task index, record).

    A record that can no longer be read becomes FATAL: its attempt is not run in this run, and
    the next reuse runs it.

    Raises:
        StorageFailed: the new run's folder cannot be written.
    """
    for index, attempt in carry.taken:
        task = tasks[index]
        decision, source = decide(plan, carry.chain, task, attempt, plan.identities(task))
        record = decision.record
        reason = decision.warning or decision.reason
        if record is not None:
            try:
                record = source.carry_files(record, folder.root, faults=faults)
            except StorageFailed:
                raise
            except (OSError, SteelyardError) as error:
                _forget(folder, task, attempt)
                record, reason = None, str(error)
        yield index, record or _lost(task, attempt, reason)


def spared(
    plan: RequestPlan, tasks: Sequence[Task], carry: CarryOver
) -> Iterator[tuple[int, int, AttemptRecord | None]]:
    """Give what is not needed any more, with what was spent on it; (task index, attempt, record).

    So a report over two runs has the cost that it would have had over one.
    """
    for index, attempt in carry.skipped:
        task = tasks[index]
        generation, _ = plan.identities(task)
        found = (source.spent_on(task.id, attempt, generation) for source in carry.chain)
        yield index, attempt, next((record for record in found if record is not None), None)


def saved_work(
    plan: RequestPlan,
    tasks: Sequence[Task],
    carry: CarryOver,
    start: tuple[int, int],
    folder: RunFolder,
    keeper: Keeper,
    faults: Faults,
) -> tuple[AttemptRecord, SavedWork]:
    """Read the work that is scored again, what lies beside its record copied. Blocking.

    Raises:
        WorkLost: it can no longer be read; the attempt is then run whole.
        StorageFailed: the new run's folder cannot be written.
    """
    index, attempt = start
    task = tasks[index]
    decision, source = decide(
        plan, carry.chain, task, attempt, plan.identities(task), is_thorough=False
    )
    record, found = decision.record, decision.checkpoint
    if record is None or decision.kind is not DecisionKind.RESCORE:
        raise WorkLost(decision.warning or decision.reason)
    try:
        if found is None:
            answer = source.answer_of(record)
            return source.carry_files(record, folder.root, faults=faults), SavedWork(answer)
        reference = carry_checkpoint(source.root, found, folder.root, faults)
        record = source.carry_files(replace(record, checkpoint=None), folder.root, faults=faults)
    except StorageFailed:
        raise
    except (OSError, SteelyardError, CheckpointDamaged) as error:
        _forget(folder, task, attempt)
        raise WorkLost(str(error)) from error
    inputs = {one.path: str(folder.root / one.kept) for one in found.inputs}
    work = SavedWork(found.answer, found.steps, inputs, reference)
    if record.outcome is Outcome.CANCELLED:
        record = _with_files(record, found, keeper)
    return record, work


def _forget(folder: RunFolder, task: Task, attempt: int) -> None:
    """Remove what was copied of an attempt that then could not be taken.

    The attempt runs whole in this folder: an earlier agent's files must not be scored, nor kept, as
    if they were its own.
    """
    remove_kept(folder.root / attempt_folder(task.id, attempt))


def _with_files(record: AttemptRecord, found: Checkpoint, keeper: Keeper) -> AttemptRecord:
    """Write what a cut-off attempt had no time to: its trajectory, a large answer."""
    place = attempt_folder(found.task_id, found.attempt)
    as_result = ExecutionResult(Outcome.CANCELLED, agent_usage=found.usage, steps=found.steps)
    answer_file = keeper.large_answer(place, found.answer)
    return replace(
        record,
        answer=None if answer_file else found.answer,
        answer_file=None if answer_file is None else answer_file.path,
        answer_sha256=None if answer_file is None else answer_file.sha256,
        trajectory=keeper.trajectory(place, found.token, as_result),
    )


class _Takes:
    """What scoring takes of a task's saved work; the task is rendered only where that decides.

    Of most attempts it does not: their record is taken as it is, or there is nothing of them.
    """

    __slots__ = ("_known", "_plan", "_task", "is_thorough")

    def __init__(self, plan: RequestPlan, task: Task, is_thorough: bool) -> None:
        self._plan = plan
        self._task = task
        self._known: Rescoring | None = None
        self.is_thorough = is_thorough

    @property
    def resumes(self) -> bool:
        return self._plan.request.runtime.checkpoint_resume

    @property
    def answer_suffices(self) -> bool:
        return self._rendered().answer_suffices

    @property
    def from_checkpoint(self) -> bool:
        return self._rendered().from_checkpoint

    @property
    def scores_timed_out(self) -> bool:
        return self._rendered().scores_timed_out

    def _rendered(self) -> Rescoring:
        if self._known is None:
            self._known = self._plan.rescoring(self._task, is_thorough=self.is_thorough)
        return self._known


def decide(
    plan: RequestPlan,
    chain: tuple[ReuseSource, ...],
    task: Task,
    attempt: int,
    identities: tuple[str, str],
    *,
    is_thorough: bool = True,
) -> tuple[Decision, ReuseSource]:
    """Say what becomes of an attempt: the word of the first run of the chain that has its work.

    Where none has, the word of the newest, which says why.

    Args:
        plan: the request.
        chain: the runs to take from.
        task: the task.
        attempt: counted from 1.
        identities: the present ones, of generation and evaluation.
        is_thorough: whether the inputs of a score are read and compared here, or once they are
            copied.
    """
    first: tuple[Decision, ReuseSource] | None = None
    for source in chain:
        decision = source.decide(
            task.id,
            attempt,
            *identities,
            plan.retry_patterns,
            _Takes(plan, task, is_thorough),
        )
        if decision.record is not None:
            return decision, source
        first = first or (decision, source)
    assert first is not None  # noqa: S101 — a chain is never empty
    return first


def _lost(task: Task, attempt: int, reason: str) -> AttemptRecord:
    message = f"its saved record changed while it was being taken: {reason}"
    issue = replace(Issue.of(IssueCode.STORAGE_FAILED, Phase.COLLECT, message), execution=0)
    return AttemptRecord(task.id, attempt, Outcome.FAILED_FATAL, issues=(issue,))
