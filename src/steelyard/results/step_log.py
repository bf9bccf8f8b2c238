"""The steps of an attempt while it runs: `trajectory.jsonl`, in lines that prove themselves.

Written as they happen, without waiting for the disk, so that a crash leaves the agent's doings
and what they cost. Once the attempt has its record, `trajectory.json` holds the same and the log
is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Usage
from steelyard.results.files import (
    NO_FAULTS,
    AppendFile,
    Faults,
    WritePoint,
    make_folders,
    remove_step_log,
)
from steelyard.results.layout import attempt_folder
from steelyard.results.lines import LineFile, encode

STEP_SCHEMA: Final = "step/1"
KNOWN_STEP_SCHEMAS: Final = {"step": 1}
NAME: Final = "trajectory.jsonl"


class StepLog:
    """Appends the steps of one execution."""

    def __init__(
        self,
        root: Path,
        folder: str,
        *,
        redact: Callable[[bytes], bytes] | None = None,
        faults: Faults = NO_FAULTS,
    ) -> None:
        """Create the log in an attempt's folder.

        Args:
            root: the run directory.
            folder: the attempt's folder below it.
            redact: applied to each line.
            faults: what a test does to writes.

        Raises:
            StorageFailed: it cannot be created.
        """
        self._redact = redact
        self._faults = faults
        make_folders(root / folder, faults)
        self._file = AppendFile(
            root / folder / NAME,
            WritePoint.STEPS_APPENDED,
            None,
            faults,
            created=WritePoint.STEP_LOG_CREATED,
        )

    def append(self, step: Step) -> None:
        """Write a step; it survives the end of this process, not yet a loss of power.

        Raises:
            StorageFailed: it could not be written; the steps before it are kept.
        """
        self._file.append(encode({"schema": STEP_SCHEMA, **step.as_json()}, self._redact))

    def close(self) -> None:
        """Let go of the file, which stays. Safe to call twice."""
        self._file.close()

    def remove(self) -> None:
        """Remove the log: the attempt's record names a trajectory that holds the same.

        Raises:
            StorageFailed: it cannot be removed.
        """
        self.close()
        remove_step_log(self._file.path, self._faults)


def steps_so_far(root: Path, task_id: str, attempt: int) -> Iterator[Step]:
    """Read what an attempt without a record has done, as far as it was recorded.

    Raises:
        OSError: the log cannot be read; one that is not there is empty.
    """
    for _, data in LineFile(_path(root, task_id, attempt), known=KNOWN_STEP_SCHEMAS):
        try:
            yield Step.from_json(data)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            continue


def usage_so_far(root: Path, task_id: str, attempt: int) -> Usage | None:
    """Give what an attempt without a record has consumed; None where nothing recorded it.

    Its cost is None where a call's is not known. A call that was under way when the run died is
    in no step, so this is the least that was spent.
    """
    total = NO_USAGE
    try:
        if not _path(root, task_id, attempt).is_file():
            return None
        for step in steps_so_far(root, task_id, attempt):
            if step.usage is not None:
                total = total + step.usage
    except OSError:
        return None
    return total


def _path(root: Path, task_id: str, attempt: int) -> Path:
    return root / attempt_folder(task_id, attempt) / NAME
