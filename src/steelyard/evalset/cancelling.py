"""End a set that another process runs: what runs is closed and cleaned up, what is done is kept."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

from steelyard.config.errors import BadInput, Fault
from steelyard.engine.control_client import OwnerUnreachable, RunNotGoingOn, ask
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.states import CellState
from steelyard.results.documents import RunUnreadable
from steelyard.results.lock import OwnerIdentity, read_owner

_LOOK_AGAIN_S: Final = 0.1


class SetNotRunning(BadInput):
    """Nobody runs the set: there is nothing to end."""


def cancel_set(opened: OpenedSet) -> None:
    """Ask the process that runs a set to end it; returns before it has.

    Raises:
        SetNotRunning: nobody runs it.
        Fault: its process cannot be reached from here.
    """
    if not opened.is_running():
        raise SetNotRunning(
            f"{opened.set_id} is not running: it is {opened.state()}",
            remedy="`steelyard evalset list` shows what is",
        )
    for status in opened.statuses():
        if status.state is not CellState.RUNNING or status.run_dir is None:
            continue
        try:
            ask(status.run_dir, "cancel")
        except (RunNotGoingOn, RunUnreadable, OwnerUnreachable):
            continue  # it ended meanwhile: another one will answer
        return
    _signal_owner(opened)


def await_end(opened: OpenedSet, timeout_s: float) -> bool:
    """Wait until nobody runs a set any more; False where it goes on after that long."""
    deadline_s = time.monotonic() + timeout_s
    while opened.is_running():
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True


def _signal_owner(opened: OpenedSet) -> None:
    """Interrupt the owner itself: between two cells none of them says where it is reached.

    The process is told by boot, namespace, number and start: never one that only has its number.
    """
    owner, here = read_owner(opened.files.lock), OwnerIdentity.of_this_process()
    is_here = owner is not None and (
        (owner.boot_id, owner.pid_namespace, owner.hostname)
        == (here.boot_id, here.pid_namespace, here.hostname)
    )
    if owner is None or not is_here or owner.boot_id is None or not owner.may_live():
        host = "" if owner is None else f" on {owner.hostname}, process {owner.pid}"
        raise Fault(
            f"the process that runs {opened.set_id} cannot be reached from here{host}",
            remedy="cancel it there, or end that process with SIGINT",
        )
    os.kill(owner.pid, signal.SIGINT)
