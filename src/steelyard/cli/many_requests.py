"""What is said of a launch of many requests: all of them in a line, and of single ones the few that
matter. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from steelyard.cli.output import counted
from steelyard.cli.pace import Standing
from steelyard.engine.events import Progress, RequestResult, RunOutcome
from steelyard.results.figures import usd

MANY: Final = 64
"""With more requests than these, what goes well is said of all together."""
NAMED: Final = 10
"""Of those that run, so many have a line of their own beside each line for all."""
INTERVAL_S: Final = 10.0


def total_line(snapshot: Sequence[Progress], total: Standing) -> str:
    """Say in one line where all requests together stand; stable words, for grep."""
    ended = sum(request.state == "ended" for request in snapshot)
    waiting = sum(request.state == "waiting" for request in snapshot)
    parts = [
        f"{ended}/{len(snapshot)} requests ended",
        f"{len(snapshot) - ended - waiting} going on",
        f"{counted(total.ended, 'attempt')} ended",
        f"{total.running} running",
    ]
    if total.failed:
        parts.append(f"{total.failed} failed")
    costs = [request.cost_usd for request in snapshot]
    if spent := sum(cost for cost in costs if cost is not None):
        parts.append(f"{'at least ' if None in costs else ''}${usd(spent)}")
    parts.append(f"{total.elapsed_s:.0f} s")
    if total.left_s is not None:
        parts.append(f"about {total.left_s:.0f} s left")
    return f"all: {', '.join(parts)}"


def worth_a_line(snapshot: Sequence[Progress]) -> list[Progress]:
    """Give the few that have gone on the longest, of those that go on for long."""
    going = [
        request
        for request in snapshot
        if request.state in ("loading", "running") and request.elapsed_s >= INTERVAL_S
    ]
    return sorted(going, key=lambda request: -request.elapsed_s)[:NAMED]


class Endings:
    """Which ends of requests are said one by one: where there are few, all of them."""

    def __init__(self) -> None:
        self._is_many = False
        self._unbegun: Counter[str] = Counter()

    def see(self, snapshot: Sequence[Progress]) -> bool:
        """Learn how many there are; True where they are many."""
        self._is_many = self._is_many or len(snapshot) > MANY
        return self._is_many

    def takes(self, result: RequestResult) -> bool:
        """False where an end is not to be said by itself: it is well, or one of many alike."""
        if not self._is_many:
            return True
        if result.run_dir is None:
            self._unbegun[f"{result.outcome}: {result.reason or 'no reason is known'}"] += 1
            return False
        return result.outcome is not RunOutcome.COMPLETED

    def rest(self) -> list[str]:
        """Say, once, how many have not begun, and why."""
        said = [f"{counted(n, 'request')} never began: {why}" for why, n in self._unbegun.items()]
        self._unbegun.clear()
        return said
