"""Run an agent's program within the agent's time; what it printed is kept where that ends.

An `exec` that is cancelled gives nothing back. So the program runs in a task of its own, and when
the time is up it is ended inside its session: then the `exec` returns with what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, Protocol

from steelyard.components.clock import AgentTimer
from steelyard.components.environment import ExecResult, Session

END_S: Final = 10.0
"""How long a program that was ended may take to be gone; then its output is given up."""
_LOOK_S: Final = 0.05
"""While the agent waits its clock stands still: how often it is looked at, at least."""


class Exec(Protocol):
    """`Session.exec`, with all but its deadline."""

    def __call__(self, *, timeout_s: float | None = None) -> Awaitable[ExecResult]:
        """Run the program."""
        ...


async def run_program(
    session: Session,
    execute: Exec,
    timer: AgentTimer,
    *,
    timeout_s: float | None,
    on_cut: Callable[[ExecResult], Awaitable[None]],
) -> ExecResult:
    """Run a program to its end, to its deadline, or until this is cancelled.

    Args:
        session: where it runs.
        execute: starts it.
        timer: the agent's watch, which stands still while the agent waits for its model.
        timeout_s: seconds of the agent's time, by `timer`; None for none. In a session that cannot
            end its programs, by the clock on the wall.
        on_cut: is given what a program had printed that was ended because this was cancelled.

    Raises:
        EnvironmentFault: as `exec` does.
    """
    if type(session).end_programs is Session.end_programs:
        return await execute(timeout_s=timeout_s)
    began_s = timer.elapsed_s
    async with asyncio.TaskGroup() as group:
        program = group.create_task(_outcome(execute))
        try:
            is_over = not await _ended_within(program, timer, began_s, timeout_s)
            if is_over:
                await session.end_programs()
                await asyncio.wait({program}, timeout=END_S)
                program.cancel()
        except asyncio.CancelledError:
            await session.end_programs()
            await asyncio.wait({program}, timeout=END_S)
            if program.done() and isinstance(found := program.result(), ExecResult):
                await on_cut(found)
            raise
    found = program.result()
    if isinstance(found, Exception):
        raise found
    return replace(found, timed_out=True) if is_over else found


async def _outcome(execute: Exec) -> ExecResult | Exception:
    """Give an exception back: a group would wrap it."""
    try:
        return await execute()
    except Exception as error:  # noqa: BLE001 — raised again by whoever asked
        return error


async def _ended_within(
    program: asyncio.Task[ExecResult | Exception],
    timer: AgentTimer,
    began_s: float,
    timeout_s: float | None,
) -> bool:
    """Wait for a program's end; False where the agent's time was over first."""
    while True:
        left_s = None if timeout_s is None else timeout_s - (timer.elapsed_s - began_s)
        if left_s is not None and left_s <= 0:
            return False
        done, _ = await asyncio.wait(
            {program}, timeout=None if left_s is None else max(left_s, _LOOK_S)
        )
        if done:
            return True
