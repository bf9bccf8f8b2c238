"""`tool-misuse`: tools used to destroy, to send secrets out, or again and again without sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from steelyard.components.scanner import Finding, ScannedAttempt, Scanner


class ToolMisuse(Scanner):
    """Tools used to destroy, to send secrets out, or again and again without sense."""

    id: ClassVar[str] = "tool-misuse"
    version: ClassVar[str] = "1"

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        """Read one attempt."""
        return []
