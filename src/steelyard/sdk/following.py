"""Who follows a launch of the SDK: the caller's `on_event`, a progress display, both or nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from steelyard.components.issues import Phase
from steelyard.engine.events import AttemptObserver, Observer, Progress, RequestResult, Unobserved
from steelyard.sdk.feed import Feed, HandlerFailed

if TYPE_CHECKING:
    from steelyard.engine.launch import Prepared
    from steelyard.results.records import AttemptRecord

T = TypeVar("T")

log = logging.getLogger(__name__)

LAST_EVENTS_S: Final = 30.0
"""How long the handler may take for what still waits once the launch has ended."""


class Followers:
    """The observer of one launch, and what has to be opened and closed for it."""

    def __init__(self, prepared: Prepared, options: Mapping[str, Any]) -> None:
        self._stack = ExitStack()
        self._feed: Feed | None = None
        handler = options.get("on_event")
        if handler is not None:
            is_strict = options.get("on_event_error") == "raise"
            self._feed = Feed(handler, prepared.redactor, is_strict=is_strict)
        self._prepared = prepared
        self._mode = options.get("progress") or "none"
        self.observer: Observer = self._feed or Unobserved()

    def __enter__(self) -> Self:
        if self._mode != "none":
            shown = self._display()
            self.observer = shown if self._feed is None else Both(self._feed, shown)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _display(self) -> Observer:
        """Open the command line's own display, on standard error."""
        from steelyard.cli.news import News
        from steelyard.cli.progress import make_renderer
        from steelyard.engine.run_log import listening

        runtime = self._prepared.plan.orchestration.runtime
        news = News(make_renderer(self._mode), self._prepared.redactor, runtime.log_level)
        self._stack.callback(news.close)
        self._stack.enter_context(listening(news.handler))
        return news

    async def follow(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a launch, and hand over its events meanwhile.

        Raises:
            Exception: what the launch raises, or what the handler did, where that is to stop it.
        """
        feed = self._feed
        if feed is None:
            return await work
        failed: BaseException | None = None
        cancelled: asyncio.CancelledError | None = None
        result: list[T] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                delivery = tasks.create_task(feed.deliver())
                try:
                    result.append(await work)
                except asyncio.CancelledError as error:
                    # Raised below: in here it would end the delivery before the last events.
                    cancelled = error
                finally:
                    feed.close()
                    # A handler that hangs does not keep the launch from returning.
                    limit = asyncio.get_running_loop().call_later(LAST_EVENTS_S, delivery.cancel)
        except ExceptionGroup as group:
            failed = group.exceptions[0]
        finally:
            limit.cancel()
        if delivery.cancelled():
            log.warning(
                "on_event did not return; it was given up %g s after the end", LAST_EVENTS_S
            )
        if isinstance(failed, HandlerFailed):
            failed = failed.__cause__
        if failed is not None or cancelled is not None:
            raise failed or cancelled  # type: ignore[misc] # out here: it says nothing of the group
        return result[0]


class Both(AttemptObserver):
    """Tells two: the caller's feed all, the display what it shows."""

    def __init__(self, feed: Feed, shown: Observer) -> None:
        self._feed = feed
        self._shown = shown

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """Tell both where the requests stand."""
        self._feed.tick(progress)
        self._shown.tick(progress)

    def notice(self, request: str | None, message: str) -> None:
        """Tell both what a person should read."""
        self._feed.notice(request, message)
        self._shown.notice(request, message)

    def request_ended(self, result: RequestResult) -> None:
        """Tell both how a request ended."""
        self._feed.request_ended(result)
        self._shown.request_ended(result)

    def attempt_started(self, request: str, task_id: str, attempt: int, execution: int) -> None:
        """Tell the feed."""
        self._feed.attempt_started(request, task_id, attempt, execution)

    def phase_started(
        self, request: str, task_id: str, attempt: int, execution: int, phase: Phase
    ) -> None:
        """Tell the feed."""
        self._feed.phase_started(request, task_id, attempt, execution, phase)

    def attempt_recorded(self, request: str, record: AttemptRecord) -> None:
        """Tell the feed."""
        self._feed.attempt_recorded(request, record)
