"""What executions share: provider slots, creation tokens, and who waits for which.

Pure: no clock, no waiting. `engine/admission.py` decides, this keeps count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may run at once, and how fast environments may open."""

    task_concurrency: int
    """Executions at once, over all requests; at least 1."""
    provider_limits: Mapping[str, int] = field(default_factory=dict)
    """Executions at once through a provider; 0 or absent for no limit."""
    env_open_qps: Mapping[str, float] = field(default_factory=dict)
    """Environments opened a second; 0 or absent for no pacing."""


class WaitList:
    """Requests that wait for one resource, in declaration order."""

    __slots__ = ("_heap", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._heap: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, request: int) -> None:
        """Let a request wait; it must not wait here already."""
        heappush(self._heap, request)

    def first(self) -> int | None:
        """The earliest declared request that waits; None where none does."""
        return self._heap[0] if self._heap else None

    def pop(self) -> int:
        """Take out the earliest declared request."""
        return heappop(self._heap)

    def remove(self, request: int) -> None:
        """Take out a request that has nothing to wait for any more."""
        self._heap.remove(request)
        heapify(self._heap)


class Provider:
    """Slots and creation tokens of one environment provider.

    Tokens come from a bucket that holds one: opens are at least `1 / qps` seconds apart. A bigger
    bucket would send its burst exactly when the provider is coldest.
    """

    __slots__ = ("interval_s", "limit", "name", "next_open", "pacing", "running", "slots")

    def __init__(self, name: str, limit: int, qps: float) -> None:
        self.name = name
        self.limit = limit
        self.interval_s = 1.0 / qps if qps > 0 else 0.0
        self.running = 0
        self.next_open = 0.0
        self.slots = WaitList(f"provider {name}")
        self.pacing = WaitList(f"creation rate of {name}")

    @property
    def is_full(self) -> bool:
        """True where the limit leaves no slot."""
        return 0 < self.limit <= self.running

    def take_token(self, now: float) -> None:
        """Spend the creation token; the next one comes an interval later."""
        self.next_open = now + self.interval_s


class PrefixSums:
    """Sums of the first so many of a growing list of integers, in O(log n) (Fenwick 1994)."""

    __slots__ = ("_tree", "_values")

    def __init__(self) -> None:
        self._values: list[int] = []
        self._tree: list[int] = [0]

    def grow(self, size: int) -> None:
        """Make room for indices below `size`; new values are 0."""
        if size <= len(self._values):
            return
        size = max(size, 2 * len(self._values))
        values = self._values + [0] * (size - len(self._values))
        self._values, self._tree = [0] * size, [0] * (size + 1)
        for index, value in enumerate(values):
            self.set(index, value)

    def __getitem__(self, index: int) -> int:
        return self._values[index]

    def set(self, index: int, value: int) -> None:
        """Replace one value."""
        change = value - self._values[index]
        if not change:
            return
        self._values[index] = value
        position = index + 1
        while position < len(self._tree):
            self._tree[position] += change
            position += position & -position

    def before(self, index: int) -> int:
        """The sum of all values with a smaller index."""
        total, position = 0, index
        while position:
            total += self._tree[position]
            position -= position & -position
        return total
