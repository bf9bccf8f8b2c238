"""Where a task's folders lie inside a session.

Images of the format have `/tests`, `/logs` and `/solution`. A session without an image lets
nothing be written at its root, so there they lie below the working folder. Scripts that want to
work in both look at the variables: `${STEELYARD_LOGS_DIR:-/logs}`.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Final

from steelyard.components.environment import Session

_BELOW: Final = ".harbor"


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths inside, absolute or relative to the working folder."""

    tests: str
    logs: str
    solution: str

    @property
    def verifier(self) -> str:
        """Where the tests leave their verdict."""
        return f"{self.logs}/verifier"

    @property
    def artifacts(self) -> str:
        """Where an agent publishes what a verifier elsewhere is to see."""
        return f"{self.logs}/artifacts"

    def variables(self, session: Session) -> dict[str, str]:
        """Name the folders to programs of a session."""
        return {
            f"STEELYARD_{name}_DIR": posixpath.join(session.workdir, path)
            for name, path in (
                ("TESTS", self.tests),
                ("LOGS", self.logs),
                ("SOLUTION", self.solution),
            )
        }


IN_IMAGE: Final = Layout("/tests", "/logs", "/solution")
IN_FOLDER: Final = Layout(f"{_BELOW}/tests", f"{_BELOW}/logs", f"{_BELOW}/solution")
