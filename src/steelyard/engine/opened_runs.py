"""The requests of a launch: which are open, which wait for their turn, how the others ended.

What is open holds files and memory, so that no more of it is open than is needed; of what has
ended, or has not begun, only what is told of it is kept.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from steelyard.engine.events import Progress, RequestResult, RunOutcome
from steelyard.engine.flight import Stop
from steelyard.engine.outcomes import closed_ledger
from steelyard.engine.plan import Plan
from steelyard.engine.run_state import RunState

ALL_AT_ONCE: Final = 64
"""Up to so many requests are all opened before anything starts: what is wrong with a folder then
stops the launch before it has cost anything."""
AHEAD: Final = 8
"""Requests of one provider that are open though nothing of them runs yet: while their attempts
start, the next are opened and loaded."""
BESIDE: Final = 32
"""Requests that may be open beside those that could all run at once: they end, or wait for a
retry."""


class OpenedRuns:
    """The requests of a launch, by their place in declaration order."""

    def __init__(self, plan: Plan) -> None:
        self.going: dict[int, RunState] = {}
        """Opened, and without a result yet."""
        self.results: dict[int, RequestResult] = {}
        self.at_most = plan.orchestration.runtime.max_concurrent_requests
        self.opens_late = len(plan.requests) > ALL_AT_ONCE or self.at_most is not None
        """True where a request is opened when its turn comes near, not before all begin."""
        self.control: str | None = None
        """Where `steelyard ctl` reaches the launch, for each `progress.json`."""
        self._plan = plan
        self._opening: dict[int, str] = {}
        self._unopened: dict[str, deque[int]] = {}
        self._told = [_unopened(request.request.name) for request in plan.requests]
        self._made: list[Path] = []
        self._roots: list[Path] = []
        for index in range(len(plan.requests)):
            self._unopened.setdefault(self._provider(index), deque()).append(index)

    def __len__(self) -> int:
        return len(self._plan.requests)

    @property
    def are_over(self) -> bool:
        """True once every request has its result."""
        return len(self.results) == len(self)

    @property
    def has_unopened(self) -> bool:
        """True while there is one whose turn has not come."""
        return bool(self._unopened)

    @property
    def roots(self) -> tuple[Path, ...]:
        """The run directories made so far, absolute."""
        # Resolved for who asks, once: each costs a look at every folder above it.
        self._roots += [root.resolve() for root in self._made[len(self._roots) :]]
        return tuple(self._roots)

    # -- opening -------------------------------------------------------------------------------

    def next_to_open(self, has_ready: Callable[[int], bool], most_running: int) -> int | None:
        """Take the next request to open; None where none is to be opened now. Pure but for that.

        The first in declaration order of those whose provider has fewer than `AHEAD` requests at
        hand: what waits for a full provider holds back nobody who does not need it.

        Args:
            has_ready: whether an open request has an attempt that waits for room alone.
            most_running: how many attempts may run at once.
        """
        held = len(self.going) + len(self._opening)
        if not self._unopened or held >= min(self.at_most or held + 1, most_running + BESIDE):
            return None
        at_hand = Counter(self._opening.values())
        for index, run in self.going.items():
            if not run.ended and run.stop is None and (run.tasks is None or has_ready(index)):
                at_hand[self._provider(index)] += 1
        short = [(of[0], name) for name, of in self._unopened.items() if at_hand[name] < AHEAD]
        if not short:
            return None
        index, provider = min(short)
        self._unopened[provider].popleft()
        if not self._unopened[provider]:
            del self._unopened[provider]
        self._opening[index] = provider
        return index

    def take_all(self) -> Iterator[int]:
        """Take every request that is not opened, in declaration order."""
        left = sorted(index for of in self._unopened.values() for index in of)
        self._unopened = {}
        yield from left

    def add(self, index: int, run: RunState) -> None:
        """A request was opened."""
        self._opening.pop(index, None)
        run.progress_file.control = self.control
        self.going[index] = run
        self._made.append(run.folder.root)

    # -- ending --------------------------------------------------------------------------------

    def end(self, index: int, result: RequestResult, now_s: float) -> None:
        """A request has its result: let go of what it held. `now_s` is monotonic."""
        self.results[index] = result
        run = self.going.pop(index)
        if self._told[index].state != "ended":
            self._told[index] = run.progress(now_s)
        run.journal.close()

    def end_unopened(self, index: int, outcome: RunOutcome, reason: str) -> RequestResult:
        """A request ends without a run directory: it is not to begin, or could not."""
        self._opening.pop(index, None)
        name = self._plan.requests[index].request.name
        result = RequestResult(name, outcome, reason, None, 0, closed_ledger({}, 0), None)
        self.results[index] = result
        self._told[index] = _unopened(name, has_ended=True)
        return result

    def close(self) -> None:
        """Let go of what is still held, whatever it came to."""
        for run in self.going.values():
            run.journal.close()

    # -- what is told --------------------------------------------------------------------------

    def progress(self, now_s: float) -> tuple[Progress, ...]:
        """Say where each request stands; of what does not change, in the same objects again."""
        for index, run in self.going.items():
            if self._told[index].state != "ended":  # as it stays while its summary is made
                self._told[index] = run.progress(now_s)
        return tuple(self._told)

    def _provider(self, index: int) -> str:
        return self._plan.requests[index].spec.environment.id


def cut_short(runs: Mapping[int, RunState], pending: Callable[[int], int]) -> list[int]:
    """Give those of which something had still to start."""
    return [
        index
        for index, run in runs.items()
        if not run.ended and run.stop is None and (run.tasks is None or pending(index))
    ]


def can_stop(run: RunState, stop: Stop) -> bool:
    """True where a reason to stop is news to a request: one that lets nothing run on wins."""
    return not run.ended and (run.stop is None or (run.stop.lets_run and not stop.lets_run))


def _unopened(name: str, *, has_ended: bool = False) -> Progress:
    return Progress(
        name=name,
        state="ended" if has_ended else "waiting",
        planned=0 if has_ended else None,
        running=0,
        outcomes={},
        phases={},
        issues={},
        reused=0,
        cost_usd=0.0,
        elapsed_s=0.0,
    )
