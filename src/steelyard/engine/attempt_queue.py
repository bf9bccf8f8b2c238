"""The attempts of one request that have yet to run, in the order they should.

Pure. Attempts not begun are a cursor, not a list: memory follows what was started and has not
ended, never what is planned. Two queues with one face: one lets attempts of a task run side by
side, the other never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

AttemptsOf = Callable[[int], Sequence[int]]
"""The attempts of a task, ascending; without one, all k."""


class Queued(NamedTuple):
    """One execution that could start; sorts by its place in the request."""

    task: int
    attempt: int
    execution: int
    queued_since: float


class _Fresh:
    """A cursor over attempts that were never started, task by task."""

    __slots__ = (
        "_all",
        "_attempts",
        "_attempts_of",
        "_dropped",
        "_task",
        "_tasks",
        "left",
        "since",
    )

    def __init__(self, k: int) -> None:
        self._all: Sequence[int] = range(1, k + 1)
        self._attempts_of: AttemptsOf | None = None
        self._tasks = 0
        self._task = -1
        self._attempts: Sequence[int] = ()
        self._dropped: set[int] = set()
        self.left = 0
        self.since = 0.0

    def load(self, tasks: int, now: float, attempts_of: AttemptsOf | None) -> None:
        self._tasks, self._attempts_of, self.since = tasks, attempts_of, now
        if attempts_of is None:
            self.left = tasks * len(self._all)
        else:
            self.left = sum(len(attempts_of(task)) for task in range(tasks))

    def take(self) -> tuple[int, int]:
        while not self._attempts:
            self._next_task()
        attempt = self._attempts[0]
        self._attempts = self._attempts[1:]
        self.left -= 1
        return self._task, attempt

    def take_task(self) -> tuple[int, Sequence[int]]:
        while not self._attempts:
            self._next_task()
        attempts, self._attempts = self._attempts, ()
        self.left -= len(attempts)
        return self._task, attempts

    def drop(self, task: int) -> Sequence[int]:
        dropped: Sequence[int] = ()
        if task == self._task:
            dropped, self._attempts = self._attempts, ()
        elif self._task < task < self._tasks and task not in self._dropped:
            dropped = self._planned(task)
            self._dropped.add(task)
        self.left -= len(dropped)
        return dropped

    def drain(self) -> Iterator[tuple[int, int]]:
        task, attempts = self._task, self._attempts
        self._task, self._attempts, self.left = self._tasks, (), 0
        return self._rest(task, attempts)

    def _rest(self, task: int, attempts: Sequence[int]) -> Iterator[tuple[int, int]]:
        yield from ((task, attempt) for attempt in attempts)
        for later in range(task + 1, self._tasks):
            if later not in self._dropped:
                yield from ((later, attempt) for attempt in self._planned(later))

    def _next_task(self) -> None:
        self._task += 1
        if self._task in self._dropped:
            self._dropped.discard(self._task)
        else:
            self._attempts = self._planned(self._task)

    def _planned(self, task: int) -> Sequence[int]:
        return self._all if self._attempts_of is None else self._attempts_of(task)


class AttemptQueue(Protocol):
    """What admission asks of a request's queue."""

    pending: int
    """Attempts that are neither running nor over, those in backoff included."""

    def load(self, tasks: int, now: float, attempts_of: AttemptsOf | None) -> None:
        """Fill the queue, once."""
        ...

    def has_next(self) -> bool:
        """True where something could start, were there room."""
        ...

    def take(self) -> Queued:
        """Take out what should start next; `has_next` must hold."""
        ...

    def end(self, task: int) -> None:
        """An execution of this task no longer runs."""
        ...

    def put_back(self, queued: Queued) -> None:
        """An execution that ended is to run again, from `queued.queued_since` on."""
        ...

    def next_ready_at(self) -> float | None:
        """When the first backoff ends; None where nothing is in backoff."""
        ...

    def advance(self, now: float) -> None:
        """Take up those whose backoff has ended."""
        ...

    def drop_task(self, task: int) -> list[int]:
        """Take out all attempts of a task that do not run now."""
        ...

    def drain(self) -> Iterator[tuple[int, int]]:
        """Empty the queue at once; what was in it comes lazily, as (task, attempt)."""
        ...


class _Backoff:
    """Executions whose time has not come, by the time it does."""

    __slots__ = ("heap",)

    def __init__(self) -> None:
        self.heap: list[tuple[float, Queued]] = []

    def next_ready_at(self) -> float | None:
        return self.heap[0][0] if self.heap else None

    def add(self, queued: Queued) -> None:
        heappush(self.heap, (queued.queued_since, queued))

    def due(self, now: float) -> Iterator[Queued]:
        while self.heap and self.heap[0][0] <= now:
            yield heappop(self.heap)[1]

    def drop_task(self, task: int) -> list[int]:
        dropped = [queued.attempt for _, queued in self.heap if queued.task == task]
        if dropped:
            self.heap = [entry for entry in self.heap if entry[1].task != task]
            heapify(self.heap)
        return dropped

    def drain(self) -> list[tuple[int, int]]:
        drained = [(queued.task, queued.attempt) for _, queued in self.heap]
        self.heap = []
        return drained


class _OverlappingQueue:
    """Retries that are due, then fresh attempts."""

    __slots__ = ("_backoff", "_due", "_fresh", "pending")

    def __init__(self, k: int) -> None:
        self._fresh = _Fresh(k)
        self._due: list[Queued] = []
        self._backoff = _Backoff()
        self.pending = 0

    def load(self, tasks: int, now: float, attempts_of: AttemptsOf | None) -> None:
        self._fresh.load(tasks, now, attempts_of)
        self.pending += self._fresh.left

    def has_next(self) -> bool:
        return bool(self._due) or self._fresh.left > 0

    def take(self) -> Queued:
        self.pending -= 1
        if self._due:
            return heappop(self._due)
        task, attempt = self._fresh.take()
        return Queued(task, attempt, 1, self._fresh.since)

    def end(self, task: int) -> None:
        pass  # siblings never waited for it

    def put_back(self, queued: Queued) -> None:
        self.pending += 1
        self._backoff.add(queued)

    def next_ready_at(self) -> float | None:
        return self._backoff.next_ready_at()

    def advance(self, now: float) -> None:
        for queued in self._backoff.due(now):
            heappush(self._due, queued)

    def drop_task(self, task: int) -> list[int]:
        dropped = self._backoff.drop_task(task)
        due = [queued.attempt for queued in self._due if queued.task == task]
        if due:
            self._due = [queued for queued in self._due if queued.task != task]
            heapify(self._due)
        dropped += [*due, *self._fresh.drop(task)]
        self.pending -= len(dropped)
        return sorted(dropped)

    def drain(self) -> Iterator[tuple[int, int]]:
        again = self._backoff.drain() + [(queued.task, queued.attempt) for queued in self._due]
        self._due, self.pending = [], 0
        return _chain(sorted(again), self._fresh.drain())


class _OpenTask:
    """A task that was begun: what of it is left, and whether it runs."""

    __slots__ = ("due", "fresh", "in_backoff", "is_offered", "is_running")

    def __init__(self, attempts: Sequence[int]) -> None:
        self.fresh = attempts
        self.due: list[Queued] = []
        self.in_backoff = 0
        self.is_running = True
        self.is_offered = False

    @property
    def has_next(self) -> bool:
        return bool(self.due) or len(self.fresh) > 0

    @property
    def is_over(self) -> bool:
        return not (self.is_running or self.has_next or self.in_backoff)


class _SerialQueue:
    """Freed tasks that have more to run, then tasks not begun; of a task, one at a time."""

    __slots__ = ("_backoff", "_fresh", "_offered", "_open", "pending")

    def __init__(self, k: int) -> None:
        self._fresh = _Fresh(k)
        self._open: dict[int, _OpenTask] = {}
        self._offered: list[int] = []
        self._backoff = _Backoff()
        self.pending = 0

    def load(self, tasks: int, now: float, attempts_of: AttemptsOf | None) -> None:
        self._fresh.load(tasks, now, attempts_of)
        self.pending += self._fresh.left

    def has_next(self) -> bool:
        while self._offered:
            task = self._open[self._offered[0]]
            if task.has_next:
                return True
            task.is_offered = False
            self._forget(heappop(self._offered))
        return self._fresh.left > 0

    def take(self) -> Queued:
        self.pending -= 1
        if not self._offered:
            index, attempts = self._fresh.take_task()
            self._open[index] = _OpenTask(attempts[1:])
            return Queued(index, attempts[0], 1, self._fresh.since)
        index = heappop(self._offered)
        task = self._open[index]
        task.is_offered, task.is_running = False, True
        if task.due and (not task.fresh or task.due[0].attempt < task.fresh[0]):
            return heappop(task.due)
        attempt, task.fresh = task.fresh[0], task.fresh[1:]
        return Queued(index, attempt, 1, self._fresh.since)

    def end(self, task: int) -> None:
        self._open[task].is_running = False
        self._offer(task)

    def put_back(self, queued: Queued) -> None:
        self.pending += 1
        self._open[queued.task].in_backoff += 1
        self._backoff.add(queued)

    def next_ready_at(self) -> float | None:
        return self._backoff.next_ready_at()

    def advance(self, now: float) -> None:
        for queued in self._backoff.due(now):
            task = self._open[queued.task]
            task.in_backoff -= 1
            heappush(task.due, queued)
            self._offer(queued.task)

    def drop_task(self, task: int) -> list[int]:
        dropped = [*self._fresh.drop(task), *self._backoff.drop_task(task)]
        opened = self._open.get(task)
        if opened is not None:
            dropped += [*(queued.attempt for queued in opened.due), *opened.fresh]
            opened.due, opened.fresh, opened.in_backoff = [], (), 0
            self._forget(task)
        self.pending -= len(dropped)
        return sorted(dropped)

    def drain(self) -> Iterator[tuple[int, int]]:
        rest = self._backoff.drain()
        for index, task in self._open.items():
            rest += [(index, queued.attempt) for queued in task.due]
            rest += [(index, attempt) for attempt in task.fresh]
            task.due, task.fresh, task.in_backoff = [], (), 0
        self.pending = 0
        return _chain(sorted(rest), self._fresh.drain())

    def _offer(self, index: int) -> None:
        task = self._open[index]
        if task.has_next and not (task.is_running or task.is_offered):
            task.is_offered = True
            heappush(self._offered, index)
        else:
            self._forget(index)

    def _forget(self, index: int) -> None:
        task = self._open[index]
        if task.is_over and not task.is_offered:
            del self._open[index]


def queue_of(k: int, *, overlap: bool) -> AttemptQueue:
    """A queue whose attempts of one task may, or may not, run side by side."""
    return _OverlappingQueue(k) if overlap else _SerialQueue(k)


def _chain(
    first: list[tuple[int, int]], then: Iterator[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    yield from first
    yield from then
