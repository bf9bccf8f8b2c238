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
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine.admission import Admission, Start
from steelyard.engine.checkpointing import let_go_of_inputs
from steelyard.engine.control import Controls, Steered
from steelyard.engine.dead_runs import report_leftovers
from steelyard.engine.events import LaunchResult, Observer, RequestResult, RunOutcome
from steelyard.engine.finish import finish_run
from steelyard.engine.flight import Flight, Stop
from steelyard.engine.flights import Flights
from steelyard.engine.loading import in_daemon
from steelyard.engine.log_context import enter_run
from steelyard.engine.open_all import give_place, open_all
from steelyard.engine.opening import load, take_over
from steelyard.engine.outcomes import launch_result
from steelyard.engine.plan import Plan
from steelyard.engine.retries import ATTEMPT_BACKOFF
from steelyard.engine.run_log import run_logs
from steelyard.engine.run_state import RunState
from steelyard.engine.settlement import settled
from steelyard.engine.spec import ExecutionResult, Executor
from steelyard.engine.watch import Watch
from steelyard.models.allowance import NO_CHARGE
from steelyard.models.backoff import Backoff
from steelyard.results.files import NO_FAULTS, Faults
from steelyard.results.journal import EventKind
from steelyard.results.syncer import Syncer

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
        self._syncer = Syncer()
        self._watch = Watch(clock, observer, self._on_storage_failure)
        self._runs: list[RunState] = []
        self._flights = Flights()
        self._backoff = backoff
        self._token_stem = secrets.token_hex(8)
        self._stop: Stop | None = None
        self._exit_status: int | None = None
        self._open_runs = 0
        self._wake: asyncio.TimerHandle | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="steelyard")
        self._loaders = asyncio.Semaphore(_LOADED_AT_ONCE)
        self._results: dict[int, RequestResult] = {}
        self._loading: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> LaunchResult:
        """Run every request to its end; write each one's summary.

        Raises:
            BadInput: a run directory is taken or cannot be made; nothing has started.
        """
        began_s = self._clock.monotonic()
        self._loop = asyncio.get_running_loop()
        self._runs += await open_all(
            self._plan, self._clock, self._syncer, redactor=self._redactor, faults=self._faults
        )
        self._open_runs = len(self._runs)
        for index, run in enumerate(self._runs):
            run.tell(self._observer)
            for warning in run.folder.warnings:
                run.journal.event(EventKind.WARNING, message=warning)
                self._observer.notice(run.name, warning)
            give_place(self._admission, index, run.plan)
        self._set_deadline()
        self._controls.bind(self._steered())
        logs = run_logs(
            [(run.name, run.folder.files.log) for run in self._runs],
            self._plan.orchestration.runtime.file_log_level,
            self._redactor,
            self._plan.orchestration.runtime.file_log_format,
        )
        try:
            async with asyncio.TaskGroup() as self._group:
                self._background = (
                    self._group.create_task(self._watch.tick_on(self._runs)),
                    self._group.create_task(self._watch.measure_lag()),
                )
                for index, run in enumerate(self._runs):
                    self._loading[index] = self._group.create_task(self._load(index))
                    looking = report_leftovers(run.plan, run.folder.run_id, self._observer.notice)
                    self._group.create_task(looking)
                if self._stop is not None:  # cancelled before there was anything to stop
                    self._end_all(self._stop)
        finally:
            self._controls.release()
            for timer in (*self._timers, self._wake):
                if timer is not None:
                    timer.cancel()
            for run in self._runs:
                run.journal.close()
            await self._syncer.close()
            self._watch.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
            logs.close()
        requests = tuple(self._results[index] for index in range(len(self._runs)))
        return launch_result(
            requests,
            self._exit_status,
            elapsed_s=self._clock.monotonic() - began_s,
            loop_lag_p99_ms=self._watch.lag.quantile_ms(0.99),
        )

    # -- stopping ------------------------------------------------------------------------------

    def cancel(self, exit_status: int, reason: str) -> None:
        """Stop everything; called again, give up the clean-up too."""
        self._exit_status = exit_status
        if self._stop is None:
            self._stop_all(Stop(RunOutcome.CANCELLED, reason))
        else:
            self._abandon()

    def _set_deadline(self) -> None:
        limit_s = self._plan.timeout_s
        if limit_s:
            stop = Stop(RunOutcome.TIMED_OUT, f"the orchestration's {limit_s:g} s have passed")
            self._timers.append(self._loop.call_later(limit_s, self._stop_all, stop))

    def _stop_all(self, stop: Stop) -> None:
        if self._stop is None:
            self._stop = stop
            self._end_all(stop)

    def _end_all(self, stop: Stop) -> None:
        for index in range(len(self._runs)):
            self._stop_run(index, stop)
        # A session's own clean-up is bounded by the same grace; this is for what ignores it.
        if self._runs and self._plan.cleanup_grace_s:  # 0 is no limit
            after_s = self._plan.cleanup_grace_s + 1.0
            self._timers.append(self._loop.call_later(after_s, self._abandon))

    def _stop_run(self, index: int, stop: Stop) -> None:
        """Start nothing more of a request and end what is under way."""
        run = self._runs[index]
        if run.ended or (run.stop is not None and (stop.lets_run or not run.stop.lets_run)):
            return
        run.stop = stop
        log.info("%s stops: %s", run.name, stop.reason.split("\n", 1)[0])
        self._admission.close_request(index)  # what never started is derived, not listed
        run.end_waiting()
        run.journal.event(EventKind.REQUEST_STOPPED, outcome=stop.outcome, reason=stop.reason)
        run.journal.flush()
        loading = self._loading.get(index)
        if loading is not None and loading is not asyncio.current_task():
            loading.cancel()
        if not stop.lets_run:
            for flight in run.flights.values():
                flight.task.cancel()
        self._settle(index)

    def _drain(self, reason: str) -> bool:
        """Start nothing more; whoever has all of it under way ends as if nothing had been said."""
        cut = [
            index
            for index, run in enumerate(self._runs)
            if not run.ended
            and run.stop is None
            and (run.tasks is None or self._admission.pending(index))
        ]
        for index in cut:
            self._stop_run(index, Stop(RunOutcome.CANCELLED, reason, lets_run=True))
        return bool(cut)

    def _steered(self) -> Steered:
        return Steered(
            admission=self._admission,
            runs=self._runs,
            clock=self._clock,
            dispatch=self._dispatch,
            drain=self._drain,
            cancel=self.cancel,
            is_stopping=lambda: self._stop is not None,
            notice=self._observer.notice,
        )

    def _on_storage_failure(self, index: int) -> None:
        self._stop_run(index, Stop(RunOutcome.FAILED, str(self._runs[index].journal.failure)))

    def _abandon(self) -> None:
        for run in self._runs:
            for flight in run.flights.values():
                flight.task.cancel()

    # -- loading -------------------------------------------------------------------------------

    async def _load(self, index: int) -> None:
        run = self._runs[index]
        enter_run(run.name, run.folder.run_id)
        try:
            async with self._loaders:
                loaded = await in_daemon(load, run.plan, run.folder.run_id)
        except asyncio.CancelledError:
            return  # the request was stopped while its tasks were loading
        finally:
            self._loading.pop(index, None)
        if run.ended or run.stop is not None:
            return
        if loaded.reuse_note is not None:
            run.reuse_note = loaded.reuse_note
            self._observer.notice(run.name, loaded.reuse_note)
            log.info("%s: %s", run.name, loaded.reuse_note)
        if loaded.tasks is None:
            self._stop_run(index, Stop(RunOutcome.FAILED, loaded.problem or "no tasks"))
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
                self._stop_broken(error)
        run.is_loaded = True
        if run.journal.failure is not None:
            self._on_storage_failure(index)
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
            run = self._runs[start.request]
            enter_run(run.name, run.folder.run_id)
            try:
                await self._attempt(run, start)
            except Exception as error:
                log.exception("the driver failed")
                reason = self._stop_broken(error)
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

    def _stop_broken(self, error: Exception) -> str:
        """Our own bug: what is recorded is kept, nothing more is started. Gives the reason."""
        reason = f"internal error: {type(error).__name__}: {error}"
        self._stop_all(Stop(RunOutcome.FAILED, reason))
        return reason

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
            self._stop_run(start.request, Stop(RunOutcome.FAILED, fault))
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
            self._on_storage_failure(start.request)
        self._settle(start.request)

    def _skip_unaffordable(self) -> bool:
        """Close the ledger of what no running attempt can free enough budget for."""
        hopeless = self._admission.skipped_by_budget()
        for index in hopeless:
            run = self._runs[index]
            for task, attempt in self._admission.close_request(index):
                run.keep(task, run.not_to_start(task, attempt, Outcome.SKIPPED_BUDGET))
            run.journal.flush()
            self._settle(index)
        return bool(hopeless)

    # -- the end of a request ------------------------------------------------------------------

    def _settle(self, index: int) -> None:
        """Finish a request once nothing of it is pending or under way."""
        run = self._runs[index]
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
        run = self._runs[index]
        enter_run(run.name, run.folder.run_id)
        result = await finish_run(run, self._threads, self._faults, lambda: bool(self._stop))
        self._results[index] = result
        await self._watch.write_last(run, result)
        self._observer.request_ended(result)
        self._open_runs -= 1
        if not self._open_runs:
            for task in self._background:
                task.cancel()
