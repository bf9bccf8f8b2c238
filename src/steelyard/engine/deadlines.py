"""The limit of a phase: that it has passed, and the agent's, which waiting moves."""

from __future__ import annotations

import asyncio


class TimeUp(Exception):
    """The limit of the phase under way has passed."""


class RunDeadline:
    """The agent's deadline as a scope of asyncio. A `Deadline`."""

    def __init__(self, scope: asyncio.Timeout, limit_s: float | None = None) -> None:
        self.limit_s = limit_s
        """What was granted."""
        self._scope = scope
        self._left_s: float | None = None

    def pause(self) -> None:
        """Take the deadline away, unless it has passed."""
        at = self._scope.when()
        if at is not None and not self._scope.expired():
            self._left_s = max(0.0, at - asyncio.get_running_loop().time())
            self._scope.reschedule(None)

    def resume(self) -> None:
        """Give back what was left."""
        if self._left_s is not None:
            self._scope.reschedule(asyncio.get_running_loop().time() + self._left_s)
            self._left_s = None

    def restart(self, seconds: float | None) -> None:
        """Grant so much from now on, unless it has passed; None for no end."""
        self.limit_s = seconds
        if self._left_s is not None:
            self._left_s = seconds
        elif not self._scope.expired():
            now = asyncio.get_running_loop().time()
            self._scope.reschedule(None if seconds is None else now + seconds)

    def extend(self, seconds: float) -> None:
        """Move it later, unless it has passed."""
        if self._left_s is not None:
            self._left_s += seconds
            return
        at = self._scope.when()
        if at is not None and not self._scope.expired():
            self._scope.reschedule(at + seconds)
