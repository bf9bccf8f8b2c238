"""Requests that end before all their attempts have: a signal, a deadline, a fault, a drain.

Nothing more of them starts; what is under way is ended, or goes on where the reason lets it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from steelyard.engine.admission import Admission
from steelyard.engine.events import Observer, RunOutcome
from steelyard.engine.flight import Stop
from steelyard.engine.opened_runs import OpenedRuns, can_stop, cut_short
from steelyard.engine.plan import Plan
from steelyard.results.journal import EventKind

log = logging.getLogger(__name__)


class Stopping:
    """Stops requests of a launch, or all of them.

    Args:
        plan: its limits of time.
        runs: its requests.
        admission: lets nothing more of a stopped request start.
        observer: told of those that never begin.
        settle: ends a request of which nothing is left.
        end_if_over: ends the launch where no request is left.
    """

    def __init__(
        self,
        plan: Plan,
        runs: OpenedRuns,
        admission: Admission,
        observer: Observer,
        *,
        settle: Callable[[int], None],
        end_if_over: Callable[[], None],
    ) -> None:
        self.stop: Stop | None = None
        """Why all stop; None where they do not."""
        self.exit_status: int | None = None
        """Of whoever cancelled it."""
        self.loading: dict[int, asyncio.Task[None]] = {}
        """Requests whose tasks are being loaded."""
        self._drained: Stop | None = None
        self._has_begun = False
        self._timers: list[asyncio.TimerHandle] = []
        self._plan = plan
        self._runs = runs
        self._admission = admission
        self._observer = observer
        self._settle = settle
        self._end_if_over = end_if_over

    @property
    def pending(self) -> Stop | None:
        """What stops whoever begins only now."""
        return self.stop or self._drained

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin the orchestration's time; what was stopped before it had begun is stopped now."""
        self._has_begun = True
        self._loop = loop
        limit_s = self._plan.timeout_s
        if limit_s:
            stop = Stop(RunOutcome.TIMED_OUT, f"the orchestration's {limit_s:g} s have passed")
            self._timers.append(loop.call_later(limit_s, self.all, stop))
        if self.stop is not None:  # cancelled before there was anything to stop
            self._end_all(self.stop)

    def close(self) -> None:
        """Forget what was to be done later."""
        for timer in self._timers:
            timer.cancel()

    def cancel(self, exit_status: int, reason: str) -> None:
        """Stop everything; called again, give up the clean-up too."""
        self.exit_status = exit_status
        if self.stop is None:
            self.all(Stop(RunOutcome.CANCELLED, reason))
        else:
            self._abandon()

    def all(self, stop: Stop) -> None:
        """Stop every request, those that have not begun too. The first reason stands."""
        if self.stop is None:
            self.stop = stop
            self._end_all(stop)

    def broken(self, error: Exception) -> str:
        """Our own bug: what is recorded is kept, nothing more is started. Gives the reason."""
        reason = f"internal error: {type(error).__name__}: {error}"
        self.all(Stop(RunOutcome.FAILED, reason))
        return reason

    def one(self, index: int, stop: Stop) -> None:
        """Start nothing more of a request and end what is under way."""
        run = self._runs.going.get(index)
        if run is None or not can_stop(run, stop):
            return
        run.stop = stop
        log.info("%s stops: %s", run.name, stop.reason.split("\n", 1)[0])
        self._admission.close_request(index)  # what never started is derived, not listed
        run.end_waiting()
        run.journal.event(EventKind.REQUEST_STOPPED, outcome=stop.outcome, reason=stop.reason)
        run.journal.flush()
        loading = self.loading.get(index)
        if loading is not None and loading is not asyncio.current_task():
            loading.cancel()
        if not stop.lets_run:
            for flight in run.flights.values():
                flight.task.cancel()
        self._settle(index)

    def drain(self, reason: str) -> bool:
        """Start nothing more; whoever has all of it under way ends as if nothing had been said.

        False where nothing was left to start.
        """
        stop = self._drained = Stop(RunOutcome.CANCELLED, reason, lets_run=True)
        has_cut = self._end_unopened(stop)
        for index in cut_short(self._runs.going, self._admission.pending):
            has_cut = True
            self.one(index, stop)
        return has_cut

    def on_storage_failure(self, index: int) -> None:
        """Stop a request whose files can no longer be written."""
        run = self._runs.going.get(index)
        if run is not None:
            self.one(index, Stop(RunOutcome.FAILED, str(run.journal.failure)))

    def _end_all(self, stop: Stop) -> None:
        if not self._has_begun:
            return
        self._end_unopened(stop)
        for index in tuple(self._runs.going):
            self.one(index, stop)
        # A session's own clean-up is bounded by the same grace; this is for what ignores it.
        if self._plan.cleanup_grace_s:  # 0 is no limit
            after_s = self._plan.cleanup_grace_s + 1.0
            self._timers.append(self._loop.call_later(after_s, self._abandon))

    def _end_unopened(self, stop: Stop) -> bool:
        """Give those that will not begin their results; False where there are none."""
        left = tuple(self._runs.take_all())
        for index in left:
            result = self._runs.end_unopened(index, stop.outcome, stop.reason)
            self._observer.request_ended(result)
        self._end_if_over()
        return bool(left)

    def _abandon(self) -> None:
        for run in self._runs.going.values():
            for flight in run.flights.values():
                flight.task.cancel()
