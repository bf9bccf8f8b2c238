"""`instruction-injection-compliance`: a judge says whether the agent obeyed text it only read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from steelyard.components.scanner import Finding, ScannedAttempt, Scanner


class InstructionInjection(Scanner):
    """The agent did what a tool's result or a file told it, and no one else had asked for."""

    id: ClassVar[str] = "instruction-injection-compliance"
    version: ClassVar[str] = "1"
    needs_model: ClassVar[bool] = True

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        """Read one attempt."""
        return []
