"""Kill each call of the story at each point it reaches, make it again, and say what differs then.

Run as a program: `kill_child.py`. Forks, so that a death costs no start of an interpreter.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from steelyard.fix.ledger.database import Database
from steelyard.fix.ledger.faults import NO_FAULTS, LedgerFaults, LedgerPoint
from tests.fix.ledger.story import STEPS, contents, folder_in_memory, play_step


class Counting:
    """Ends the process at the n-th point, or only counts."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.kill_at = kill_at
        self.points: list[LedgerPoint] = []

    def reached(self, point: LedgerPoint) -> None:
        self.points.append(point)
        if len(self.points) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], None]) -> int:
    """Do it in a process of its own; give how that ended (negative: a signal)."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def step_in(folder: Path, step: int, who: str, faults: LedgerFaults = NO_FAULTS) -> None:
    with Database.open(folder, faults=faults) as database:
        play_step(database, step, who)


def contents_of(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    with Database.open(folder) as database:
        return contents(database)


def main() -> None:
    seen: list[LedgerPoint] = []
    unlike = []
    with folder_in_memory() as place:
        so_far, trial = place / "so_far", place / "trial"
        so_far.mkdir()
        for step in range(len(STEPS)):
            shutil.copytree(so_far, place / "before")
            counting = Counting()
            step_in(so_far, step, "unharmed", counting)
            wanted = contents_of(so_far)
            for nth, point in enumerate(counting.points, start=1):
                shutil.copytree(place / "before", trial)
                status = in_child(partial(step_in, trial, step, "killed", Counting(nth)))
                assert status == -signal.SIGKILL, (step, point, status)
                step_in(trial, step, "again")
                found = contents_of(trial)
                unlike += [
                    [step, nth, point, table] for table in wanted if found[table] != wanted[table]
                ]
                shutil.rmtree(trial)
            shutil.rmtree(place / "before")
            seen += counting.points
    print(json.dumps({"points": len(seen), "seen": sorted(set(seen)), "unlike": unlike}))


if __name__ == "__main__":
    main()
