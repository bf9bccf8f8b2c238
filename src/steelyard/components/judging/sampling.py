"""Ask several times at once, with marks that nobody could know."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from steelyard.components.issues import AttemptFault

T = TypeVar("T")
Draw = Callable[[], str]
"""Gives a text that nobody could know beforehand."""


async def together(waiting: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Wait for all; the first that fails ends the others, so that nothing more is spent.

    Raises:
        AttemptFault: the first one's, one that stops the request before others.
    """
    if len(waiting) == 1:
        return [await waiting[0]]
    first: AttemptFault | None = None
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(one) for one in waiting]
    except* AttemptFault as faults:
        first = _first_of(faults)
    if first is not None:
        raise first
    return [task.result() for task in tasks]


def _first_of(faults: BaseExceptionGroup[AttemptFault]) -> AttemptFault:
    """Give the first fault, one that stops the request before others."""
    found = [fault for fault in faults.exceptions if isinstance(fault, AttemptFault)]
    return next((fault for fault in found if fault.request_fault), found[0])


def unguessable() -> str:
    """Draw 16 hexadecimal digits that no answer can have known."""
    return secrets.token_hex(8)
