"""A recorded attempt as scanners see it: its whole trajectory and what was collected, streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from steelyard.components.model import ModelClient
from steelyard.components.scanner import ScannerFault
from steelyard.components.steps import Step
from steelyard.results.kept_artifacts import artifact_paths
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord


class RecordedAttempt:
    """A `ScannedAttempt` of a run directory."""

    def __init__(
        self, reader: RunReader, record: AttemptRecord, model: ModelClient | None = None
    ) -> None:
        self._reader = reader
        self._model = model
        self.record = record
        self.has_shown_work = False
        """Whether any step was read in which the agent called a tool, or said anything."""
        self.was_read_whole = False
        """Whether the trajectory was read to its end."""

    @cached_property
    def artifacts(self) -> Mapping[str, Path]:
        """What was collected, by its path there; raises `ArtifactChanged`."""
        return artifact_paths(self._reader.root, self.record)

    @property
    def model(self) -> ModelClient:
        """The judge model.

        Raises:
            ScannerFault: the scanner did not say that it needs one.
        """
        if self._model is None:
            raise ScannerFault("there is no judge model: its class must say `needs_model = True`")
        return self._model

    def steps(self) -> Iterator[Step]:
        """Iterate over the trajectory; a new pass with each call.

        Raises:
            TrajectoryUnreadable: it is missing, damaged, or not what the record says.
        """
        for step in self._reader.steps(self.record):
            if not self.has_shown_work and is_work(step):
                self.has_shown_work = True
            yield step
        self.was_read_whole = True


def is_work(step: Step) -> bool:
    """Say whether a scanner has anything to read in a step: a call, or words of the agent."""
    if step.source != "agent":
        return False
    return bool(step.tool_calls or step.message.strip() or (step.reasoning or "").strip())
