"""One request while it runs: its journal, its tasks, its ledger. No waiting happens here."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.components.benchmark import Task
from steelyard.components.clock import Clock, utc_text
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase, Severity
from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Usage
from steelyard.engine.admission import Start
from steelyard.engine.carry_over import CarryOver, WorkLost, saved_work
from steelyard.engine.events import AttemptObserver, Observer, Progress
from steelyard.engine.execution_record import (
    KeptAnswer,
    Lasted,
    Unfinished,
    execution_record,
    rescored,
    with_earlier,
    without_saved,
)
from steelyard.engine.flight import Flight, Stop, TaskIdentities
from steelyard.engine.issue_log import log_issues
from steelyard.engine.kept_execution import Keeper, has_files, is_cheap
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.retries import RetryPolicy, Scope, can_rescore, has_allowance, wait_s
from steelyard.engine.run_progress import progress_of
from steelyard.engine.seeds import attempt_seed
from steelyard.engine.spec import AttemptPlace, ExecutionResult, ExecutionSpec, SavedWork
from steelyard.models.allowance import NO_CHARGE, Charge
from steelyard.models.backoff import Backoff
from steelyard.results.files import NO_FAULTS, Faults, StorageFailed
from steelyard.results.journal import EventKind, Journal
from steelyard.results.layout import attempt_folder, execution_folder
from steelyard.results.progress_file import ProgressFile
from steelyard.results.records import AttemptRecord, Timing
from steelyard.results.run_folder import RunFolder
from steelyard.results.step_log import StepLog

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunState:
    """A request while it runs."""

    plan: RequestPlan
    folder: RunFolder
    journal: Journal
    clock: Clock
    began_s: float
    faults: Faults = NO_FAULTS
    redact: Callable[[bytes], bytes] | None = None
    tasks: Sequence[Task] | None = None
    carry: CarryOver | None = None
    reuse_note: str | None = None
    counts: Counter[Outcome] = field(default_factory=Counter)
    issue_counts: Counter[str] = field(default_factory=Counter)
    flights: dict[str, Flight] = field(default_factory=dict)
    identities: dict[int, TaskIdentities] = field(default_factory=dict)
    stop: Stop | None = None
    is_loaded: bool = False
    """True once its tasks are queued and what is taken from an earlier run is recorded."""
    ended: bool = False
    reused: int = 0
    cost_usd: float | None = 0.0
    tokens: int = 0
    """Of model calls of attempts that have ended, those taken from an earlier run left out."""
    model_calls_succeeded: int = 0
    ended_s: float | None = None
    told: AttemptObserver | None = None
    """Who is told of single attempts; None mostly."""
    unfinished: dict[tuple[int, int], Unfinished] = field(default_factory=dict)
    """(task, attempt) of what was executed before and has no record: it waits, or runs again."""
    retried: int = 0
    """Executions that were or are to be replaced by another."""
    unpaid_retries: int = 0
    """Retries that the budget did not allow."""
    progress_file: ProgressFile = field(init=False)
    keeper: Keeper = field(init=False)
    retries: RetryPolicy = field(init=False)

    def __post_init__(self) -> None:
        self.progress_file = ProgressFile(self.folder, faults=self.faults, redact=self.redact)
        self.keeper = Keeper(self.folder.root, self.plan, redact=self.redact, faults=self.faults)
        self.retries = self.plan.retry_policy

    @property
    def name(self) -> str:
        """The request's name."""
        return self.plan.request.name

    @property
    def planned(self) -> int:
        """Attempts planned; 0 until the tasks are loaded."""
        return len(self.tasks or ()) * self.plan.k

    def identity(self, index: int) -> TaskIdentities:
        """The identities of a task, computed once for all its attempts."""
        known = self.identities.get(index)
        if known is None:
            assert self.tasks is not None  # noqa: S101 — attempts start after loading
            task = self.tasks[index]
            generation, evaluation = self.plan.identities(task)
            content = self.plan.content(task)
            known = TaskIdentities(generation, evaluation, content, self.plan.k)
            self.identities[index] = known
        return known

    def spec(self, flight: Flight) -> ExecutionSpec:
        """What the executor is handed."""
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        start = flight.start
        earlier = self.unfinished.get((start.task, start.attempt))
        return ExecutionSpec(
            request=self.plan.spec,
            task=self.tasks[start.task],
            attempt=start.attempt,
            execution=start.execution,
            token=flight.token,
            seed=attempt_seed(self.plan.spec.seed, start.attempt),
            saved=flight.work,
            place=AttemptPlace(str(self.folder.root), self.identity(start.task).generation),
            earlier=NO_CHARGE if earlier is None else earlier.charge,
        )

    async def take_saved_work(self, flight: Flight) -> None:
        """Give an execution the work that it only scores; there is none mostly.

        Work that can no longer be read is named in the journal, and the attempt runs whole.

        Raises:
            StorageFailed: what lies beside the record of an earlier run could not be copied.
        """
        carry, key = self.carry, (flight.start.task, flight.start.attempt)
        if (earlier := self.unfinished.get(key)) is not None:
            flight.work = earlier.saved
        elif carry is not None and self.tasks is not None and key in carry.rescored:
            try:
                flight.saved, flight.work = await asyncio.to_thread(
                    saved_work,
                    self.plan,
                    self.tasks,
                    carry,
                    key,
                    self.folder,
                    self.keeper,
                    self.faults,
                )
            except WorkLost as lost:
                carry.refused[key] = str(lost)
                log.warning("%s: %s", self.name, lost)
                self.journal.event(EventKind.WARNING, message=str(lost))

    def note_intent(self, start: Start, token: str) -> int:
        """Put the intent into the journal, whose next flush writes it; give its `seq`."""
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        task_id = self.tasks[start.task].id
        seq = self.journal.event(
            EventKind.STARTED,
            task_id=task_id,
            attempt=start.attempt,
            execution=start.execution,
            token=token,
        )
        if self.told is not None:
            self.told.attempt_started(self.name, task_id, start.attempt, start.execution)
        return seq

    def tell(self, observer: Observer) -> None:
        """Tell an observer of single attempts, where it is one that listens to them."""
        self.told = observer if isinstance(observer, AttemptObserver) else None

    def enter_phase(self, token: str, phase: Phase) -> None:
        """Note the phase of an execution; for progress only."""
        flight = self.flights[token]
        flight.phase, flight.phase_since_s = phase, self.clock.monotonic()
        if self.told is not None and self.tasks is not None:
            start = flight.start
            task_id = self.tasks[start.task].id
            self.told.phase_started(self.name, task_id, start.attempt, start.execution, phase)

    def keep(self, index: int, record: AttemptRecord, spent: Usage | None = None) -> None:
        """Put a record into the journal and the ledger.

        Args:
            index: the task's.
            record: how an attempt ended.
            spent: what was not counted before; without it, all where it is new work of this run.
        """
        earlier = self.unfinished.pop((index, record.attempt), None)
        if spent is None and earlier is None and record.reused_from is None:
            spent = record.usage
        self.journal.record(record)
        self.counts[record.outcome] += 1
        if self.told is not None:
            self.told.attempt_recorded(self.name, record)
        for issue in record.last_issues:
            if issue.severity is not Severity.WARNING:
                self.issue_counts[issue.code.value] += 1
        if spent is not None:
            self._add_cost(spent)
        self.reused += record.reused_from is not None
        entry = self.identities.get(index)
        if entry is not None:
            entry.left -= 1
            if entry.left <= 0:
                del self.identities[index]

    def end_attempt(self, flight: Flight, result: ExecutionResult) -> None:
        """Record the attempt whose last execution has ended. Never raises."""
        start = flight.start
        try:
            alone = self._alone(flight, result)
        except StorageFailed as error:
            self.journal.fail(error)
            alone = self._record(flight, result)
        record = self._joined(flight, alone)
        if self.carry is not None and self.carry.refused:
            why = self.carry.refused.pop((start.task, start.attempt), None)
            record = without_saved(record, why)
        self.keep(start.task, record, spent=result.usage)
        if flight.steps is None and is_cheap(result):
            self.journal.flush_soon()  # a log of steps goes, below, once its record is written
        else:
            self.journal.flush()
        self.end_steps(flight, is_kept=alone.trajectory is not None)
        if record.issues:
            log_issues(record)

    def await_retry(
        self, flight: Flight, result: ExecutionResult, cause: Issue, wait_s: float
    ) -> bool:
        """Keep an execution that another one is to replace. False where it could not be written.

        Args:
            flight: the execution.
            result: how it ended.
            cause: what makes another one worth it.
            wait_s: from now until that may start.
        """
        start, saved = flight.start, self.work_at_hand(flight, result)
        scope = Scope.WHOLE if saved is None else Scope.SCORING
        try:
            # What is scored again stays: the attempt's folder is its place already.
            alone = self._alone(flight, result, is_replaced=scope is Scope.WHOLE)
            self.keeper.execution(alone, flight.token, scope, cause, wait_s)
        except StorageFailed as error:
            self.journal.fail(error)
            return False
        record = self._joined(flight, alone)
        ended_s = self.clock.monotonic()
        charge = self._charge(start, result)
        self.unfinished[start.task, start.attempt] = Unfinished(record, saved, ended_s, charge)
        self.journal.event(
            EventKind.RETRY,
            task_id=record.task_id,
            attempt=start.attempt,
            execution=start.execution,
            token=flight.token,
            cause=cause.code.value,
            scope=scope.value,
            wait_s=round(wait_s, 6),
            usage=record.usage.as_json(),
        )
        self.journal.flush()
        self.end_steps(flight, is_kept=True)
        self._add_cost(result.usage)
        self.retried += 1
        what = "scored again" if saved is not None else "tried again"
        then = f"; {what} in {wait_s:.1f} s ({start.execution} of {self.retries.max_retries})"
        log_issues(record, then)
        return True

    def may_retry(self, flight: Flight, result: ExecutionResult) -> bool:
        """True where what went wrong in an execution is all that decides on another one."""
        if not result.issues or self.stop is not None or self.journal.failure is not None:
            return False
        start, calls = flight.start, self.model_calls_succeeded + result.model_calls_succeeded
        stops_request = result.fault_of_request(calls) is not None
        if not self.retries.may_retry(result, start.execution, stops_request=stops_request):
            return False
        spec = self.plan.spec
        if has_allowance(self._charge(start, result), spec.attempt_usd, spec.attempt_tokens):
            return True
        return self.work_at_hand(flight, result) is not None and not self.plan.asks_judges

    def _charge(self, start: Start, result: ExecutionResult) -> Charge:
        """What budgets count for an attempt up to the end of this execution."""
        earlier = self.unfinished.get((start.task, start.attempt))
        return result.charged if earlier is None else earlier.charge + result.charged

    def retry_wait_s(self, flight: Flight, result: ExecutionResult, backoff: Backoff) -> float:
        """Draw the wait before the next execution; the same run id gives the same."""
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        start = flight.start
        task_id = self.tasks[start.task].id
        seed = f"{self.folder.run_id}/{task_id}/{start.attempt}/{start.execution}"
        return wait_s(backoff, result, start.execution, seed=seed)

    def work_at_hand(self, flight: Flight, result: ExecutionResult) -> SavedWork | None:
        """Give the agent's work where scoring alone is to be repeated; None: all of it is."""
        if flight.work is not None:
            return flight.work
        return result.work if can_rescore(result) else None

    def end_waiting(self) -> None:
        """Record the attempts that wait for a retry that will not be: as they stand."""
        under_way = {(one.start.task, one.start.attempt) for one in self.flights.values()}
        for (task, attempt), earlier in list(self.unfinished.items()):
            if (task, attempt) not in under_way:
                self.keep(task, earlier.record)

    def _folder(self, start: Start, *, earlier: bool = False) -> str:
        """Where files of an execution lie, of one that is replaced below its attempt's."""
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        task_id = self.tasks[start.task].id
        if earlier:
            return execution_folder(task_id, start.attempt, start.execution)
        return attempt_folder(task_id, start.attempt)

    def _alone(
        self, flight: Flight, result: ExecutionResult, *, is_replaced: bool = False
    ) -> AttemptRecord:
        """Make the record of an execution alone, its files written."""
        if not has_files(result):
            return self._record(flight, result)
        if flight.work is not None:  # the work that it scored lies where it was made
            return self._record(flight, replace(result, answer=None))
        folder = self._folder(flight.start, earlier=is_replaced)
        return self._record(
            flight,
            result,
            answer_file=self.keeper.large_answer(folder, result.answer),
            trajectory=self.keeper.trajectory(folder, flight.token, result),
        )

    def _record(
        self,
        flight: Flight,
        result: ExecutionResult,
        *,
        answer_file: KeptAnswer | None = None,
        trajectory: dict[str, Any] | None = None,
    ) -> AttemptRecord:
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        start = flight.start
        identity = self.identity(start.task)
        return execution_record(
            self.tasks[start.task],
            start,
            result,
            Lasted(flight.began_s, flight.began_at, utc_text(self.clock.now())),
            (identity.generation, identity.evaluation, identity.content),
            answer_file=answer_file,
            trajectory=trajectory,
        )

    def _joined(self, flight: Flight, alone: AttemptRecord) -> AttemptRecord:
        """Join an execution with what came before it: in an earlier run, in this one."""
        start = flight.start
        earlier = self.unfinished.get((start.task, start.attempt))
        if earlier is not None:
            return with_earlier(earlier, alone, start.queued_since)
        return alone if flight.saved is None else rescored(flight.saved, alone)

    def skipped(self, index: int, attempt: int, outcome: Outcome) -> AttemptRecord:
        """Make the record of an attempt that will never start."""
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        task = self.tasks[index]
        return AttemptRecord(
            task_id=task.id,
            attempt=attempt,
            outcome=outcome,
            usage=NO_USAGE,
            timing=Timing(finished_at=utc_text(self.clock.now())),
            category=task.category,
            cluster=task.cluster,
        )

    def not_to_start(self, index: int, attempt: int, outcome: Outcome) -> AttemptRecord:
        """Make the record of an attempt of which nothing more will start.

        Where it waited for a retry its last execution's outcome stands, unless a sibling has made
        it needless; what it did and spent is kept either way.
        """
        earlier = self.unfinished.get((index, attempt))
        if earlier is None:
            return self.skipped(index, attempt, outcome)
        if outcome is Outcome.SKIPPED_PASSED:
            return replace(earlier.record, outcome=outcome, metrics={})
        self.unpaid_retries += outcome is Outcome.SKIPPED_BUDGET
        return earlier.record

    def lost(self, start: Start, reason: str) -> AttemptRecord:
        """Make the record of an attempt that our own fault ended; what it cost is not known."""
        issue = replace(Issue.of(IssueCode.UNKNOWN, Phase.RUN, reason), execution=start.execution)
        earlier = self.unfinished.get((start.task, start.attempt))
        before = () if earlier is None else earlier.record.issues
        return replace(
            self.skipped(start.task, start.attempt, Outcome.FAILED_FATAL),
            issues=(*before, issue),
            executions=start.execution,
            usage=(NO_USAGE if earlier is None else earlier.record.usage) + Usage(cost_usd=None),
        )

    def progress(self, now_s: float) -> Progress:
        """Say where the request stands."""
        return progress_of(self, now_s)

    def _add_cost(self, spent: Usage) -> None:
        self.tokens += spent.input_tokens + spent.output_tokens
        known = self.cost_usd is not None and spent.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (spent.cost_usd or 0.0) if known else None

    def add_step(self, flight: Flight, step: Step) -> None:
        """Append a step to the log of an execution under way. Never raises."""
        if self.tasks is None or self.journal.failure is not None:
            return
        try:
            if flight.steps is None:
                folder = attempt_folder(self.tasks[flight.start.task].id, flight.start.attempt)
                flight.steps = StepLog(
                    self.folder.root, folder, redact=self.redact, faults=self.faults
                )
            flight.steps.append(step)
        except StorageFailed as error:
            self.journal.fail(error)

    def end_steps(self, flight: Flight, *, is_kept: bool) -> None:
        """Close the log of an execution; remove it where its record names the trajectory."""
        if flight.steps is None:
            return
        flight.steps.close()
        if is_kept and self.journal.failure is None:
            try:
                flight.steps.remove()
            except StorageFailed as error:
                log.warning("a log of steps stays beside its trajectory: %s", error)
