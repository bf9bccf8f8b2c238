"""From what the engine tells observers to the handler's events: in order, and never in its way.

The engine's side only appends to a queue. One task hands the events over; where the handler is
slower than the run, events are left out and counted, so that memory does not grow.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.components.issues import Phase
from steelyard.config.redaction import Redactor
from steelyard.engine.events import AttemptObserver, Progress, RequestResult
from steelyard.sdk.events import (
    AttemptFinished,
    AttemptStarted,
    Event,
    EventsLost,
    Notice,
    PhaseStarted,
    RunFinished,
    RunProgress,
)

if TYPE_CHECKING:
    from steelyard.results.records import AttemptRecord
    from steelyard.sdk.options import EventHandler

log = logging.getLogger(__name__)

MAX_WAITING: Final = 10_000
"""Events that may wait for the handler."""
_AT_ONCE: Final = 64
"""Events handed over before others get their turn of the loop."""


class HandlerFailed(Exception):
    """The handler raised, and that is to end the launch; the cause is what it raised."""


class Feed(AttemptObserver):
    """An observer that hands everything on to an `on_event` handler."""

    def __init__(self, handler: EventHandler, redactor: Redactor, *, is_strict: bool) -> None:
        self._handler = handler
        self._redact = redactor
        self._is_strict = is_strict
        self._waiting: deque[Event] = deque()
        self._lost = 0
        self._failures = 0
        self._more = asyncio.Event()
        self._is_closed = False

    # -- the engine's side ---------------------------------------------------------------------

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """Pass on where each request stands."""
        for each in progress:
            if each.state in ("ended", "waiting"):
                continue
            self._put(
                RunProgress(
                    each.name,
                    each.planned,
                    each.running,
                    dict(each.outcomes),
                    each.reused,
                    each.cost_usd,
                    each.elapsed_s,
                )
            )

    def notice(self, request: str | None, message: str) -> None:
        """Pass on what a person should read."""
        self._put(Notice(request, self._redact.text(message)))

    def request_ended(self, result: RequestResult) -> None:
        """Pass on how a request ended; never left out."""
        reason = None if result.reason is None else self._redact.text(result.reason)
        self._put(
            RunFinished(result.name, result.outcome, reason, result.run_dir, dict(result.counts)),
            is_vital=True,
        )

    def attempt_started(self, request: str, task_id: str, attempt: int, execution: int) -> None:
        """Pass on that an execution begins."""
        self._put(AttemptStarted(request, self._redact.text(task_id), attempt, execution))

    def phase_started(
        self, request: str, task_id: str, attempt: int, execution: int, phase: Phase
    ) -> None:
        """Pass on that an execution has come to a phase."""
        self._put(PhaseStarted(request, self._redact.text(task_id), attempt, execution, phase))

    def attempt_recorded(self, request: str, record: AttemptRecord) -> None:
        """Pass on how an attempt ended."""
        text = self._redact.text
        metrics: Mapping[str, float | bool] = self._redact.tree(record.metrics)
        self._put(
            AttemptFinished(
                request,
                text(record.task_id),
                record.attempt,
                record.outcome,
                metrics,
                tuple(replace(issue, message=text(issue.message)) for issue in record.issues),
                record.usage,
                record.executions,
                record.timing.agent_s,
                record.reused_from is not None,
            )
        )

    def _put(self, event: Event, *, is_vital: bool = False) -> None:
        if len(self._waiting) >= MAX_WAITING and not is_vital:
            self._lost += 1
            return
        if self._lost:
            self._waiting.append(EventsLost(self._lost))
            self._lost = 0
        self._waiting.append(event)
        self._more.set()

    # -- the handler's side --------------------------------------------------------------------

    def close(self) -> None:
        """Say that nothing more comes: `deliver` ends once what waits is handed over."""
        self._is_closed = True
        self._more.set()

    async def deliver(self) -> None:
        """Hand over events until the feed is closed and empty.

        Raises:
            HandlerFailed: the handler raised, and that is to end the launch.
        """
        while True:
            for _ in range(min(len(self._waiting), _AT_ONCE)):
                await self._hand_over(self._waiting.popleft())
            if self._waiting:
                await asyncio.sleep(0)
                continue
            if self._is_closed:
                if self._lost:
                    lost, self._lost = self._lost, 0
                    await self._hand_over(EventsLost(lost))
                return
            self._more.clear()
            await self._more.wait()

    async def _hand_over(self, event: Event) -> None:
        try:
            returned = self._handler(event)
            if inspect.isawaitable(returned):
                await returned
        except Exception as error:
            if self._is_strict:
                raise HandlerFailed from error
            self._failures += 1
            # Once with its traceback: a handler that fails, fails at each event.
            if self._failures == 1:
                log.exception("on_event failed at %s; the run goes on", event.kind)
