"""Run a launch for a caller who does not await: also where their thread runs a loop already.

A signal stops the launch in order; only then it takes the effect that it had before: SIGINT is
`KeyboardInterrupt` as a rule, SIGTERM and SIGHUP the end of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Generic, TypeVar

from steelyard.config.errors import BadInput

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""As on the command line."""


def run_to_end(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a loop of its own.

    Where this thread runs a loop, as in a notebook or inside a coroutine, that loop stands still
    meanwhile: the work is done in a thread of its own. `await` the async form to keep it going.

    Raises:
        KeyboardInterrupt: SIGINT was received; the coroutine was cancelled and has ended.
        Exception: what the coroutine raises.
    """
    work = _Work(make)
    with _stopping_on_signals(work.cancel):
        if _has_loop():
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(work.run,), name="steelyard-launch")
            thread.start()
            thread.join()
        else:
            work.run()
    return work.result()


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Work(Generic[T]):
    """A coroutine on its own loop, in whichever thread `run` is called."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False
        self._returned: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run it to its end; keep what came of it."""
        try:
            # With a factory it leaves the loop alone that this thread may have set for itself.
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                self._returned.append(runner.run(self._main()))
        except BaseException as error:  # noqa: BLE001 — handed on by `result`
            self._error = error

    async def _main(self) -> T:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self._is_cancelled:
            raise asyncio.CancelledError
        return await self._make()

    def cancel(self) -> None:
        """Ask it to stop, from any thread or signal handler; again, to give up its clean-up."""
        self._is_cancelled = True
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    def result(self) -> T:
        """Give what it returned, or raise what it raised."""
        if self._error is not None:
            if isinstance(self._error, BadInput):
                # What is wrong with the input is no matter of where in Steelyard it was found.
                self._error = self._error.with_traceback(None)
            try:
                raise self._error
            finally:
                self._error = None  # else the traceback holds itself
        return self._returned.pop()


@contextmanager
def _stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop the block's work on a signal; afterwards let the signal do what it did before.

    Only the main thread may set handlers; elsewhere signals are left alone. So is one that is
    ignored, or whose handler Python cannot put back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[signal.Signals] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        received.append(signal.Signals(number))
        stop()

    before = {number: signal.getsignal(number) for number in SIGNALS}
    ours = [n for n, was in before.items() if was is not None and was is not signal.SIG_IGN]
    for number in ours:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
    if received:
        signal.raise_signal(received[0])
        # A handler of the caller's own came back: they do not want to be interrupted, but there
        # is no whole result to return.
        raise KeyboardInterrupt(f"{received[0].name} was received")
