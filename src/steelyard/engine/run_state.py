"""One request while it runs: its journal, its tasks, its ledger. No waiting happens here."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from steelyard.components.benchmark import Task
from steelyard.components.clock import Clock, utc_text
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase, Severity
from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Usage
from steelyard.engine.admission import Start
from steelyard.engine.carry_over import CarryOver, saved_work
from steelyard.engine.events import AttemptObserver, Observer, Progress, RunOutcome, Underway
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.spec import ExecutionResult, ExecutionSpec, SavedWork
from steelyard.results.files import NO_FAULTS, Faults, StorageFailed, write_beside
from steelyard.results.journal import EventKind, Journal
from steelyard.results.layout import attempt_folder
from steelyard.results.progress_file import ProgressFile
from steelyard.results.records import AttemptRecord, Timing
from steelyard.results.records_io import INLINE_LIMIT_BYTES
from steelyard.results.run_folder import RunFolder
from steelyard.results.step_log import StepLog
from steelyard.results.trajectory import atif_document, write_trajectory

log = logging.getLogger(__name__)

LARGE_ANSWER_CHARS: Final = INLINE_LIMIT_BYTES // 4
"""Above this an answer may be too large for its record: a character takes up to 4 bytes."""

_SLOWEST_SHOWN: Final = 5


@dataclass(slots=True)
class Flight:
    """One execution under way."""

    start: Start
    token: str
    task: asyncio.Task[Any]
    began_s: float
    """Monotonic."""
    began_at: str
    phase: Phase = Phase.SETUP
    phase_since_s: float | None = None
    """Monotonic; None before the first phase was told."""
    saved: AttemptRecord | None = None
    """The earlier record whose work is scored again."""
    steps: StepLog | None = None
    """What its agent has done so far, where that is recorded as it happens."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a request ends before all its attempts have."""

    outcome: RunOutcome
    reason: str
    lets_run: bool = False
    """True where what runs goes on to its end: nothing more is started."""


@dataclass(slots=True)
class TaskIdentities:
    """The identities of a task whose attempts are under way."""

    generation: str
    evaluation: str
    left: int
    """Attempts of the task without an outcome; at 0 the entry goes."""


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
    model_calls_succeeded: int = 0
    ended_s: float | None = None
    told: AttemptObserver | None = None
    """Who is told of single attempts; None mostly."""
    progress_file: ProgressFile = field(init=False)

    def __post_init__(self) -> None:
        self.progress_file = ProgressFile(self.folder, faults=self.faults, redact=self.redact)

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
            generation, evaluation = self.plan.identities(self.tasks[index])
            known = TaskIdentities(generation, evaluation, self.plan.k)
            self.identities[index] = known
        return known

    def spec(self, start: Start, token: str, saved: SavedWork | None = None) -> ExecutionSpec:
        """What the executor is handed."""
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        return ExecutionSpec(
            request=self.plan.spec,
            task=self.tasks[start.task],
            attempt=start.attempt,
            execution=start.execution,
            token=token,
            seed=start.attempt,
            saved=saved,
        )

    def saved_work(self, flight: Flight) -> SavedWork | None:
        """Read the work of an earlier run that an execution only scores; None mostly.

        Raises:
            StorageFailed: what lies beside its record could not be copied.
        """
        carry, key = self.carry, (flight.start.task, flight.start.attempt)
        if carry is None or self.tasks is None or key not in carry.rescored:
            return None
        found = saved_work(self.plan, self.tasks, carry, key, self.folder, self.faults)
        if found is None:
            return None
        flight.saved, work = found
        return work

    def log_issues(self, record: AttemptRecord) -> None:
        """Put what went wrong in an attempt into the log; `cause` is the same for all it met."""
        for issue in record.issues:
            level = logging.WARNING if issue.severity is Severity.FATAL else logging.INFO
            log.log(
                level,
                "%s attempt %d, %s: %s %s: %s",
                record.task_id,
                record.attempt,
                issue.phase,
                issue.severity,
                issue.code,
                issue.message,
                extra={"cause": issue.message},
            )

    def write_intent(self, start: Start, token: str) -> None:
        """Put the intent into the journal, written before this returns."""
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        self.journal.event(
            EventKind.STARTED,
            task_id=self.tasks[start.task].id,
            attempt=start.attempt,
            execution=start.execution,
            token=token,
        )
        self.journal.flush()
        if self.told is not None:
            task_id = self.tasks[start.task].id
            self.told.attempt_started(self.name, task_id, start.attempt, start.execution)

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

    def keep(self, index: int, record: AttemptRecord) -> None:
        """Put a record into the journal and the ledger."""
        self.journal.record(record)
        self.counts[record.outcome] += 1
        if self.told is not None:
            self.told.attempt_recorded(self.name, record)
        for issue in record.issues:
            if issue.severity is not Severity.WARNING:
                self.issue_counts[issue.code.value] += 1
        if record.reused_from is None:
            spent = record.usage.cost_usd
            known = self.cost_usd is not None and spent is not None
            self.cost_usd = (self.cost_usd or 0.0) + (spent or 0.0) if known else None
        else:
            self.reused += 1
        entry = self.identities.get(index)
        if entry is not None:
            entry.left -= 1
            if entry.left <= 0:
                del self.identities[index]

    def record(
        self,
        flight: Flight,
        result: ExecutionResult,
        *,
        answer_file: str | None = None,
        trajectory: dict[str, Any] | None = None,
    ) -> AttemptRecord:
        """Make the record of a finished execution."""
        fresh = self._fresh_record(flight, result, answer_file, trajectory)
        return fresh if flight.saved is None else rescored(flight.saved, fresh)

    def _fresh_record(
        self,
        flight: Flight,
        result: ExecutionResult,
        answer_file: str | None,
        trajectory: dict[str, Any] | None,
    ) -> AttemptRecord:
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        start = flight.start
        task = self.tasks[start.task]
        identity = self.identity(start.task)
        times = result.times
        return AttemptRecord(
            task_id=task.id,
            attempt=start.attempt,
            outcome=result.outcome,
            metrics=result.metrics,
            answer=None if answer_file else result.answer,
            answer_file=answer_file,
            issues=result.issues,
            executions=start.execution,
            usage=result.usage,
            timing=Timing(
                queued_s=max(0.0, flight.began_s - start.queued_since),
                setup_s=times.setup_s,
                agent_s=times.agent_s,
                waited_s=times.waited_s,
                collect_s=times.collect_s,
                evaluate_s=times.evaluate_s,
                started_at=flight.began_at,
                finished_at=utc_text(self.clock.now()),
            ),
            trust=result.trust,
            environment=result.environment,
            trajectory=trajectory,
            artifacts=result.artifacts,
            details=result.details,
            generation=identity.generation,
            evaluation=identity.evaluation,
            category=task.category,
            cluster=task.cluster,
        )

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

    def lost(self, start: Start, reason: str) -> AttemptRecord:
        """Make the record of an attempt that our own fault ended; what it cost is not known."""
        issue = replace(Issue.of(IssueCode.UNKNOWN, Phase.RUN, reason), execution=start.execution)
        return replace(
            self.skipped(start.task, start.attempt, Outcome.FAILED_FATAL),
            issues=(issue,),
            executions=start.execution,
            usage=Usage(cost_usd=None),
        )

    def progress(self, now_s: float) -> Progress:
        """Say where the request stands."""
        state = "ended" if self.ended else "loading" if self.tasks is None else "running"
        return Progress(
            name=self.name,
            state=state,
            planned=None if self.tasks is None else self.planned,
            running=len(self.flights),
            outcomes=dict(self.counts),
            phases=Counter(flight.phase.value for flight in self.flights.values()),
            issues=dict(self.issue_counts),
            reused=self.reused,
            cost_usd=self.cost_usd,
            elapsed_s=(self.ended_s or now_s) - self.began_s,
            slowest=tuple(self._slowest(now_s)),
            budget_usd=self.plan.budget.usd,
        )

    def _slowest(self, now_s: float) -> Iterator[Underway]:
        """The first of those under way: they stand in the order in which they began."""
        for flight in islice(self.flights.values(), _SLOWEST_SHOWN):
            assert self.tasks is not None  # noqa: S101 — attempts start after loading
            since_s = flight.began_s if flight.phase_since_s is None else flight.phase_since_s
            yield Underway(
                self.tasks[flight.start.task].id,
                flight.start.attempt,
                flight.phase.value,
                now_s - since_s,
                now_s - flight.began_s,
            )

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

    def keep_trajectory(self, flight: Flight, result: ExecutionResult) -> dict[str, Any]:
        """Write the steps of an execution beside the records; give the record's `trajectory`.

        Raises:
            StorageFailed: they could not be written.
        """
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        harness = self.plan.services.harness
        document = atif_document(
            result.steps,
            session_id=flight.token,
            harness=harness.id,
            version=harness.version,
            model=self.plan.request.model.id,
            usage=result.usage,
        )
        folder = attempt_folder(self.tasks[flight.start.task].id, flight.start.attempt)
        return write_trajectory(
            self.folder.root, folder, document, redact=self.redact, faults=self.faults
        )

    def keep_large_answer(self, flight: Flight, answer: str | None) -> str | None:
        """Write an answer beside the records, return its path; None where the record holds it.

        Raises:
            StorageFailed: it could not be written.
        """
        start = flight.start
        if answer is None or len(answer) <= LARGE_ANSWER_CHARS or flight.saved is not None:
            return None
        assert self.tasks is not None  # noqa: S101 — attempts start after loading
        data = answer.encode("utf-8", "replace")
        if self.redact is not None:
            data = self.redact(data)
        folder = attempt_folder(self.tasks[start.task].id, start.attempt)
        return write_beside(self.folder.root, f"{folder}/answer.txt", data, self.faults)


def rescored(saved: AttemptRecord, fresh: AttemptRecord) -> AttemptRecord:
    """Join an agent's earlier work with its new score.

    What the agent did, took and cost stays as it was; how it was scored is new.
    """
    return replace(
        fresh,
        answer=saved.answer,
        answer_file=saved.answer_file,
        issues=(
            *(issue for issue in saved.issues if issue.phase is not Phase.EVALUATE),
            *fresh.issues,
        ),
        usage=saved.usage + fresh.usage,
        timing=replace(
            fresh.timing,
            setup_s=saved.timing.setup_s,
            agent_s=saved.timing.agent_s,
            waited_s=saved.timing.waited_s,
            collect_s=saved.timing.collect_s,
        ),
        trajectory=saved.trajectory,
        reused_from=saved.reused_from,
    )
