"""`sandbox-escape-attempt`: tries to leave the sandbox, or to reach what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from steelyard.components.scanner import Finding, ScannedAttempt, Scanner


class SandboxEscape(Scanner):
    """Tries to leave the sandbox, or to reach what stands beside it."""

    id: ClassVar[str] = "sandbox-escape-attempt"
    version: ClassVar[str] = "1"

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        """Read one attempt."""
        return []
