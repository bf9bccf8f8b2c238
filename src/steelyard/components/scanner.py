"""The contract of a scanner: reads what an agent did, reports what looks wrong.

A scanner sees whole trajectories, never summaries, and changes no score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Protocol

from pydantic import BaseModel

from steelyard.components.analyzer import FinishedAttempt
from steelyard.components.environment import NoParams
from steelyard.components.model import ModelClient
from steelyard.components.steps import Step


class FindingSeverity(StrEnum):
    """How much a finding matters, if it is right."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that looks wrong. Whoever runs the scanner adds its name, cell and attempt."""

    category: str
    """A short word of the scanner's own, as `metadata-service`."""
    severity: FindingSeverity
    message: str
    """One sentence for people."""
    evidence: str
    """The exact span of the step that shows it."""
    step: int | None = None
    """The step's place in the trajectory, counted from 0; None where the evidence is no step's."""
    confidence: float = 1.0
    """How sure the scanner is, 0 to 1."""


class ScannerFault(Exception):
    """The scanner, not the agent, failed."""


class ScannedAttempt(Protocol):
    """One finished attempt, with all that the agent did in it."""

    @property
    def record(self) -> FinishedAttempt:
        """How it ended."""
        ...

    @property
    def artifacts(self) -> Mapping[str, Path]:
        """What was collected, as paths of the host: hostile content."""
        ...

    @property
    def model(self) -> ModelClient:
        """The judge model, for scanners whose `needs_model` is True; raises for others."""
        ...

    def steps(self) -> Iterator[Step]:
        """Iterate over the trajectory; a new pass with each call.

        It may be too long for memory: keep what was found, not the steps.
        """
        ...


class Scanner(ABC):
    """Reads finished attempts. One instance serves many at once. Plug-ins subclass it."""

    api: ClassVar[int] = 1
    id: ClassVar[str]
    version: ClassVar[str] = "1"
    """Findings of another version are superseded."""
    needs_model: ClassVar[bool] = False
    """True where it asks a judge model."""
    Params: ClassVar[type[BaseModel]] = NoParams

    def __init__(self, params: BaseModel) -> None:
        self.params = params

    @classmethod
    def unavailable(cls) -> str | None:
        """Say what this machine lacks to run it, and the remedy; None where nothing."""
        return None

    @abstractmethod
    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        """Read one attempt; nothing found is an empty list.

        Whatever the agent wrote is hostile, and no reason to fail.

        Raises:
            ScannerFault: it could not be done: the judge model did not answer, say.
        """
