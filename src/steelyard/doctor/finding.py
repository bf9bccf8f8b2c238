"""What one look at the machine found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """How it stands."""

    WORKS = "works"
    WARNING = "warning"
    """Something will go wrong, or go slower, for some."""
    BROKEN = "broken"
    """Something that a run needs does not work."""
    ABSENT = "absent"
    """Not here, and needed by nobody who does not ask for it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    area: str
    state: State
    message: str
    remedy: str | None = None
    """The exact command or setting for this system; given wherever the state is not WORKS."""

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form."""
        return {
            "area": self.area,
            "state": self.state.value,
            "message": self.message,
            "remedy": self.remedy,
        }


def works(area: str, message: str) -> Finding:
    """Say that something works."""
    return Finding(area, State.WORKS, message)
