"""Run what may block for ever without holding the process back when it ends.

The threads of a pool are waited for at the interpreter's end; a loader of tasks that hangs would
turn a signal into a wait without end.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def in_daemon(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a thread of its own; cancelled, leave it behind.

    Raises:
        Exception: what the function raises.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()

    def settle(act: Callable[[], None]) -> None:
        if not future.done():
            act()

    def work() -> None:
        try:
            result = function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 — handed on to whoever waits
            act = _raising(future, error)
        else:
            act = _giving(future, result)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, act)

    # In the caller's context, so that what it logs is known to be of this run.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="steelyard-loader", daemon=True).start()
    return await future


def _giving(future: asyncio.Future[R], result: R) -> Callable[[], None]:
    return lambda: future.set_result(result)


def _raising(future: asyncio.Future[R], error: BaseException) -> Callable[[], None]:
    return lambda: future.set_exception(error)
