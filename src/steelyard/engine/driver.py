"""Drive a launch: wait, admit, execute, record. Owns every task of it.

Decisions are elsewhere: `admission` says what starts next, `outcomes` what it all came to. A worker
coroutine takes one start after the other and ends when there is none; a waiting attempt costs
two numbers in a queue.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final

from steelyard.components.clock import Clock, utc_text
from steelyard.components.issues import Issue, Outcome
from steelyard.components.values import Usage
from steelyard.config.errors import SteelyardError
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine.admission import Admission, Start
from steelyard.engine.checkpointing import let_go_of_inputs
from steelyard.engine.control import Controls, Steered
from steelyard.engine.dead_runs import report_leftovers
from steelyard.engine.events import LaunchResult, Observer, RunOutcome
from steelyard.engine.finish import finish_run
from steelyard.engine.flight import Flight, Stop
from steelyard.engine.flights import Flights
from steelyard.engine.loading import in_daemon
from steelyard.engine.log_context import enter_run
from steelyard.engine.opened_runs import OpenedRuns
from steelyard.engine.opener import Opener, has_earlier_runs
from steelyard.engine.opening import load, take_over
from steelyard.engine.outcomes import launch_result
from steelyard.engine.plan import Plan
from steelyard.engine.retries import ATTEMPT_BACKOFF
from steelyard.engine.run_state import RunState
from steelyard.engine.settlement import settled
from steelyard.engine.spec import ExecutionResult, Executor
from steelyard.engine.stopping import Stopping
from steelyard.engine.watch import Watch
from steelyard.models.allowance import NO_CHARGE
from steelyard.models.backoff import Backoff
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.results.journal import EventKind

log = logging.getLogger(__name__)

_LOADED_AT_ONCE: Final = 4


class Driver:
    """Runs a plan to its end. Made for one launch; call `run` once."""

    def __init__(
        self,
        plan: Plan,
        executor: Executor,
        *,
        clock: Clock,
        observer: Observer,
        redactor: Redactor | None = None,
        controls: Controls | None = None,
        faults: Faults = NO_FAULTS,
        backoff: Backoff = ATTEMPT_BACKOFF,
    ) -> None:
        self._plan = plan
        self._executor = executor
        self._clock = clock
        self._observer = observer
        self._controls = controls or Controls()
        self._redactor = redactor or Redactor(SecretStore({}))
        self._faults = faults
        self._admission = Admission(plan.limits, budget=plan.budget())
        self._runs = OpenedRuns(plan)
        self._stopping = Stopping(
            plan,
            self._runs,
            self._admission,
            observer,
            settle=self._settle,
            end_if_over=self._end_if_over,
        )
        self._watch = Watch(clock, observer, self._stopping.on_storage_failure)
        self._flights = Flights()
        self._backoff = backoff
        self._token_stem = secrets.token_hex(8)
        self._wake: asyncio.TimerHandle | None = None
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="steelyard")
        self._reporting: dict[int, asyncio.Task[None]] = {}
        self._loaders = asyncio.Semaphore(_LOADED_AT_ONCE)

    async def run(self) -> LaunchResult:
        """Run every request to its end; write each one's summary.

        Raises:
            BadInput: a run directory is taken or cannot be made; nothing has started.
        """
        began_s = self._clock.monotonic()
        self._loop = asyncio.get_running_loop()
        self._opener = Opener(
            self._plan,
            self._runs,
            self._admission,
            clock=self._clock,
            observer=self._observer,
            redactor=self._redactor,
            faults=self._faults,
        )
        if not self._runs.opens_late:
            await self._opener.all()
        self._controls.bind(self._steered())
        try:
            async with asyncio.TaskGroup() as self._group:
                self._background = (
                    self._group.create_task(self._watch.tick_on(self._runs)),
                    self._group.create_task(self._watch.measure_lag()),
                )
                for index in self._runs.going:
                    self._group.create_task(self._load(index))
                self._stopping.begin(self._loop)
                self._open_more()
        finally:
            self._controls.release()
            self._stopping.close()
            if self._wake is not None:
                self._wake.cancel()
            self._runs.close()
            await self._opener.close()
            self._watch.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
        results = self._runs.results
        return launch_result(
            tuple(results[index] for index in range(len(self._runs))),
            self._stopping.exit_status,
            elapsed_s=self._clock.monotonic() - began_s,
            loop_lag_p99_ms=self._watch.lag.quantile_ms(0.99),
        )

    def cancel(self, exit_status: int, reason: str) -> None:
        """Stop everything; called again, give up the clean-up too."""
        self._stopping.cancel(exit_status, reason)

    def _steered(self) -> Steered:
        return Steered(
            admission=self._admission,
            runs=self._runs,
            clock=self._clock,
            dispatch=self._dispatch,
            drain=self._stopping.drain,
            cancel=self._stopping.cancel,
            is_stopping=lambda: self._stopping.stop is not None,
            notice=self._observer.notice,
        )

    # -- opening and loading -------------------------------------------------------------------

    def _open_more(self) -> None:
        """Open the requests whose turn it is."""
        for index in self._opener.due():
            self._group.create_task(self._begin(index))

    async def _begin(self, index: int) -> None:
        """Open a request while others go on, and load its tasks."""
        try:
            await self._opener.one(index, self._threads)
        except Exception as error:
            if not isinstance(error, SteelyardError):
                log.exception("a request could not be opened")
            result = self._runs.end_unopened(index, RunOutcome.FAILED, str(error) or repr(error))
            self._observer.request_ended(result)
            self._open_more()
            self._end_if_over()
            return
        if (stop := self._stopping.pending) is not None:  # meanwhile
            self._stopping.one(index, stop)
        await self._load(index)

    async def _load(self, index: int) -> None:
        run = self._runs.going.get(index)
        if run is None or run.stop is not None:
            return  # stopped before it could begin
        enter_run(run.name, run.folder.run_id)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 — loading is a task of its own
        self._stopping.loading[index] = task
        if has_earlier_runs(run):
            said = report_leftovers(run.plan, run.folder.run_id, self._observer.notice)
            self._reporting[index] = self._group.create_task(said)
        try:
            async with self._loaders:
                loaded = await in_daemon(load, run.plan, run.folder.run_id)
        except asyncio.CancelledError:
            return  # the request was stopped while its tasks were loading
        finally:
            self._stopping.loading.pop(index, None)
        if run.ended or run.stop is not None:
            return
        if loaded.reuse_note is not None:
            run.reuse_note = loaded.reuse_note
            self._observer.notice(run.name, loaded.reuse_note)
            log.info("%s: %s", run.name, loaded.reuse_note)
        if loaded.tasks is None:
            self._stopping.one(index, Stop(RunOutcome.FAILED, loaded.problem or "no tasks"))
            return
        run.tasks, run.carry = loaded.tasks, loaded.carry
        carry = loaded.carry
        source = None if carry is None else carry.chain[0].run_id
        run.journal.event(EventKind.PLANNED, tasks=len(run.tasks), k=run.plan.k, reuse=source)
        run.journal.flush()
        self._admission.add_tasks(
            index,
            len(run.tasks),
            self._clock.monotonic(),
            attempts_of=None if carry is None else carry.attempts_of,
        )
        self._dispatch()
        if carry is not None:
            try:
                await take_over(run, run.tasks, carry)
            except Exception as error:
                log.exception("taking over from an earlier run failed")
                self._stopping.broken(error)
        run.is_loaded = True
        if run.journal.failure is not None:
            self._stopping.on_storage_failure(index)
        self._settle(index)

    # -- the way of an attempt -----------------------------------------------------------------

    def _dispatch(self) -> None:
        """Give every start that admission has a worker of its own."""
        while (start := self._next()) is not None:
            self._group.create_task(self._work(start))

    def _next(self) -> Start | None:
        now = self._clock.monotonic()
        start = self._admission.start_next(now)
        while start is None and self._skip_unaffordable():
            start = self._admission.start_next(now)  # what they held back may start
        if start is None:
            self._set_alarm(now)
            if self._runs.has_unopened and self._admission.has_free_slot():
                self._open_more()
        return start

    def _set_alarm(self, now: float) -> None:
        """Wake when time alone lets something start."""
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        at = self._admission.next_wake(now)
        if at is not None:
            self._wake = self._loop.call_later(max(0.0, at - now), self._dispatch)

    async def _work(self, start: Start | None) -> None:
        while start is not None:
            run = self._runs.going[start.request]
            enter_run(run.name, run.folder.run_id)
            try:
                await self._attempt(run, start)
            except Exception as error:
                log.exception("the driver failed")
                reason = self._stopping.broken(error)
                if self._admission.is_running(start.request, start.task, start.attempt):
                    # Else the request would wait for its end for ever.
                    lost = run.lost(start, reason)
                    run.keep(start.task, lost, spent=Usage(cost_usd=None))
                    run.journal.flush()
                    self._release(run, start, passed=False)
                return
            start = self._next()
            if start is not None:
                self._dispatch()

    async def _attempt(self, run: RunState, start: Start) -> None:
        if run.stop is not None:
            self._release(run, start, passed=False)
            return
        token = f"{self._token_stem}-{start.request}-{start.task}-{start.attempt}-{start.execution}"
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 — a worker is a task
        flight = Flight(start, token, task, self._clock.monotonic(), utc_text(self._clock.now()))
        self._flights.begin(run, flight)
        try:
            result = await self._flights.executed(self._executor, run, flight)
            cause = await self._cause_of_retry(run, flight, result)
        finally:
            self._flights.end(flight)
        self._conclude(run, flight, result, cause)

    async def _cause_of_retry(
        self, run: RunState, flight: Flight, result: ExecutionResult
    ) -> Issue | None:
        """Give the issue that makes another execution worth it; None where none does."""
        if not run.may_retry(flight, result):
            return None
        policy = run.retries
        if policy.is_quick(result):
            return policy.cause(result)
        searched = partial(copy_context().run, policy.cause, result)
        try:
            return await self._loop.run_in_executor(self._threads, searched)
        except asyncio.CancelledError:
            flight.task.uncancel()
            return None

    def _conclude(
        self, run: RunState, flight: Flight, result: ExecutionResult, cause: Issue | None
    ) -> None:
        """Record a finished execution and free what it held, its record not yet synced."""
        start = flight.start
        is_retried = cause is not None and run.may_retry(flight, result)  # else stopped meanwhile
        run.model_calls_succeeded += result.model_calls_succeeded
        if cause is not None and is_retried:
            wait_s = run.retry_wait_s(flight, result, self._backoff)
            if run.await_retry(flight, result, cause, wait_s):
                self._release(run, start, passed=False, result=result, retry_in_s=wait_s)
                return
        run.end_attempt(flight, result)
        if result.drops_inputs:
            self._group.create_task(let_go_of_inputs(run, start))
        if (fault := result.fault_of_request(run.model_calls_succeeded)) is not None:
            # Before the release: the last attempt's would end the request without its reason.
            self._stopping.one(start.request, Stop(RunOutcome.FAILED, fault))
        self._release(
            run, start, passed=run.plan.stops_task(result.outcome, result.metrics), result=result
        )

    def _release(
        self,
        run: RunState,
        start: Start,
        *,
        passed: bool,
        result: ExecutionResult | None = None,
        retry_in_s: float | None = None,
    ) -> None:
        """Give back what an execution held; with a success, drop the task's other attempts."""
        now = self._clock.monotonic()
        charge = NO_CHARGE if result is None else result.charged
        is_free = self._plan.counts_unknown_as_free
        spent_usd, spent_tokens = settled(start, charge, unknown_is_free=is_free)
        if retry_in_s is None:
            self._admission.finish(start, now, spent_usd=spent_usd, spent_tokens=spent_tokens)
        else:
            self._admission.retry(
                start, now + retry_in_s, now, spent_usd=spent_usd, spent_tokens=spent_tokens
            )
        if passed:
            for attempt in self._admission.drop_attempts(start.request, start.task):
                record = run.not_to_start(start.task, attempt, Outcome.SKIPPED_PASSED)
                run.keep(start.task, record)
            run.journal.flush()
        if run.journal.failure is not None:
            self._stopping.on_storage_failure(start.request)
        self._settle(start.request)

    def _skip_unaffordable(self) -> bool:
        """Close the ledger of what no running attempt can free enough budget for."""
        hopeless = self._admission.skipped_by_budget()
        for index in hopeless:
            run = self._runs.going[index]
            for task, attempt in self._admission.close_request(index):
                run.keep(task, run.not_to_start(task, attempt, Outcome.SKIPPED_BUDGET))
            run.journal.flush()
            self._settle(index)
        return bool(hopeless)

    # -- the end of a request ------------------------------------------------------------------

    def _settle(self, index: int) -> None:
        """Finish a request once nothing of it is pending or under way."""
        run = self._runs.going[index]
        # What an earlier run has finished is taken over whole, even where all must stop: the next
        # reuse looks at this run first.
        is_ready = run.is_loaded or (run.stop is not None and run.tasks is None)
        is_busy = run.flights or self._admission.pending(index) or self._admission.running(index)
        if run.ended or is_busy or not is_ready:
            return
        run.ended = True
        run.ended_s = self._clock.monotonic()
        self._group.create_task(self._finish(index))

    async def _finish(self, index: int) -> None:
        run = self._runs.going[index]
        enter_run(run.name, run.folder.run_id)
        result = await finish_run(
            run, self._threads, self._faults, lambda: self._stopping.stop is not None
        )
        await self._watch.write_last(run, result)
        self._runs.end(index, result, self._clock.monotonic())
        self._opener.logs.end(run.folder.files.log)
        self._observer.request_ended(result)
        self._open_more()
        self._end_if_over()
        if (reporting := self._reporting.pop(index, None)) is not None:
            await reporting  # it may ask the provider
        await self._executor.release(run.plan.spec)

    def _end_if_over(self) -> None:
        """End what goes on beside the requests once all have ended."""
        if self._runs.are_over:
            for task in self._background:
                task.cancel()
