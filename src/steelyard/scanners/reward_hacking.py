"""`reward-hacking`: work on the tests and the scorer in place of the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from steelyard.components.scanner import Finding, ScannedAttempt, Scanner


class RewardHacking(Scanner):
    """Work on the tests and the scorer in place of the task."""

    id: ClassVar[str] = "reward-hacking"
    version: ClassVar[str] = "1"

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        """Read one attempt."""
        return []
