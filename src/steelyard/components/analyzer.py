"""The contract of an analyzer: reads a finished run, writes a report beside its scores.

An analysis has no severity and changes no score, outcome or exit status.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from steelyard.components.environment import NoParams
from steelyard.components.issues import Issue, Outcome
from steelyard.components.steps import Step
from steelyard.components.values import Trust, Usage


class FinishedAttempt(Protocol):
    """How one attempt ended: what `results.records.AttemptRecord` holds, for reading."""

    @property
    def task_id(self) -> str:
        """The task."""
        ...

    @property
    def attempt(self) -> int:
        """Which of the k tries, counted from 1."""
        ...

    @property
    def outcome(self) -> Outcome:
        """The one word it ended with."""
        ...

    @property
    def metrics(self) -> Mapping[str, float | bool]:
        """Its score; empty where it has none."""
        ...

    @property
    def answer(self) -> str | None:
        """What the agent answered; None where it gave none or the answer lies in a file."""
        ...

    @property
    def answer_file(self) -> str | None:
        """Where a large answer lies, relative to the run; `FinishedRun.answer_text` reads it."""
        ...

    @property
    def trajectory(self) -> Mapping[str, Any] | None:
        """`{path, sha256, steps}` of what it did; `FinishedRun.steps` reads it. None for none."""
        ...

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What went wrong."""
        ...

    @property
    def usage(self) -> Usage:
        """What its model calls consumed."""
        ...

    @property
    def trust(self) -> Trust | None:
        """How far it was held apart from its scorer."""
        ...

    @property
    def details(self) -> Mapping[str, Any]:
        """What its scorer noted."""
        ...

    @property
    def category(self) -> str | None:
        """The group that reports put its task in."""
        ...


class FinishedRun(Protocol):
    """A run that has ended, as `results.reader.RunReader` gives it."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    @property
    def document(self) -> Mapping[str, Any]:
        """`run.json`: the request, the benchmark's metrics, versions."""
        ...

    def records(self) -> Iterator[FinishedAttempt]:
        """Iterate over the attempts, in the order they ended; a new pass with each call.

        They may be too many for memory: keep figures of them, not themselves.
        """
        ...

    def steps(self, attempt: FinishedAttempt) -> Iterator[Step]:
        """Iterate over an attempt's trajectory, whole, in bounded memory; empty where it has none.

        Raises:
            TrajectoryUnreadable: it is missing, damaged, or not what the record says.
        """
        ...

    def answer_text(self, attempt: FinishedAttempt, *, max_bytes: int) -> str | None:
        """Give an answer's beginning, wherever it lies; None where there is none to be read."""
        ...


class TrajectoryUnreadable(Exception):
    """An attempt's trajectory cannot be used: it is gone, damaged or too large."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyzer found."""

    name: str
    """The analyzer's id."""
    version: str
    """The analyzer's version."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """JSON with finite numbers, for programs: goes into `analysis.json`. A sentence for people
    under `summary` is said at the end of the run."""
    markdown: str = ""
    """For people: goes into `analysis.md`."""


class AnalyzerFault(Exception):
    """The analyzer, not the run, failed."""


class Analyzer(ABC):
    """Reads a finished run. Plug-ins subclass it and declare `api = 1`."""

    api: ClassVar[int] = 1
    id: ClassVar[str]
    version: ClassVar[str] = "1"
    """Changes when what it finds changes."""
    Params: ClassVar[type[BaseModel]] = NoParams

    def __init__(self, params: BaseModel) -> None:
        self.params = params

    @classmethod
    def unavailable(cls) -> str | None:
        """Say what this machine lacks to run it, and the remedy; None where nothing."""
        return None

    @abstractmethod
    def analyze(self, run: FinishedRun) -> Analysis:
        """Analyze a run; the same run gives the same analysis. Blocking: called in a thread.

        A run may have no attempts, or none that was scored.

        Raises:
            AnalyzerFault: it cannot be done; what reading the run raises passes through.
        """
