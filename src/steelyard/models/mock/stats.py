"""What the mock has seen, for `/stats`."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from steelyard.models.mock.reply import Received


class Stats:
    """Counts of one server; `reset` begins anew."""

    def __init__(self, keep_bodies: int) -> None:
        self._keep_bodies = keep_bodies
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything but what is in flight."""
        self.calls = 0
        self.max_in_flight = self.in_flight
        self.by_path: Counter[str] = Counter()
        self.by_model: Counter[str] = Counter()
        self.by_status: Counter[str] = Counter()
        self.by_fault: Counter[str] = Counter()
        self.input_tokens = 0
        self.output_tokens = 0
        self.bodies: deque[dict[str, Any]] = deque(maxlen=self._keep_bodies)

    def enter(self) -> None:
        """A request came, of any path."""
        self.in_flight += 1

    def leave(self) -> None:
        """A request is over."""
        self.in_flight -= 1

    def count(self, received: Received) -> None:
        """Count a model call that came."""
        self.calls += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self.by_path[received.path] += 1
        if self._keep_bodies:
            self.bodies.append(
                {
                    "path": received.path,
                    "headers": sorted(received.headers),
                    "body": received.body.decode("utf-8", "replace"),
                }
            )

    def as_json(self) -> dict[str, Any]:
        """Give the document of `/stats`; header values are never in it."""
        return {
            "calls": self.calls,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "by_path": dict(self.by_path),
            "by_model": dict(self.by_model),
            "by_status": dict(self.by_status),
            "by_fault": dict(self.by_fault),
            "tokens": {"input": self.input_tokens, "output": self.output_tokens},
            "bodies": list(self.bodies),
        }
