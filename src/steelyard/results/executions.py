"""The executions of an attempt that a later one replaced: `execution-<j>/execution.json`.

An attempt without retries has none of these files. What is summed or joined over all executions
stands in the attempt's record; here each stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.issues import Issue, Outcome
from steelyard.components.values import Usage
from steelyard.results.files import NO_FAULTS, Faults, write_beside
from steelyard.results.kept_files import KeptFileUnreadable, read_kept
from steelyard.results.layout import attempt_folder, execution_folder
from steelyard.results.lines import redacted_json
from steelyard.results.records import AttemptRecord, Timing
from steelyard.results.records_io import record_to_json, timing_from_json

EXECUTION_SCHEMA: Final = "execution/1"
_OF_RECORD: Final = (
    "task_id", "attempt", "outcome", "metrics", "answer", "answer_file", "issues", "usage",
    "timing", "trust", "environment", "trajectory", "artifacts", "details",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EarlierExecution:
    """One execution that a retry replaced."""

    execution: int
    """Counted from 1."""
    outcome: Outcome
    issues: tuple[Issue, ...]
    usage: Usage
    timing: Timing
    trajectory: Mapping[str, Any] | None
    retry: Mapping[str, Any]
    """`{scope, cause, wait_s}` of what followed it."""

    def as_json(self) -> dict[str, Any]:
        """Give what `show --json` says of it."""
        return {
            "execution": self.execution,
            "outcome": self.outcome.value,
            "issues": [issue.as_json() for issue in self.issues],
            "usage": self.usage.as_json(),
            "timing": asdict(self.timing),
            "trajectory": None if self.trajectory is None else dict(self.trajectory),
            "retry": dict(self.retry),
        }


def write_execution(
    root: Path,
    record: AttemptRecord,
    *,
    token: str,
    retry: Mapping[str, Any],
    redact: Callable[[bytes], bytes] | None = None,
    faults: Faults = NO_FAULTS,
) -> str:
    """Write an execution's file; give its path below the run directory.

    Args:
        root: the run directory.
        record: the execution alone, as a record.
        token: under which it ran.
        retry: why it was not the last: `{scope, cause, wait_s}`.
        redact: applied to what is written.
        faults: what a test does to writes.

    Raises:
        StorageFailed: it could not be written.
    """
    data = record_to_json(record)
    if retry["scope"] == "whole":
        # The next execution moves them out of its way: where they will lie when this is read.
        folder = attempt_folder(record.task_id, record.attempt)
        moved = execution_folder(record.task_id, record.attempt, record.executions)
        for artifact in data["artifacts"]:
            artifact["path"] = str(artifact["path"]).replace(
                f"{folder}/artifacts/", f"{moved}/artifacts/", 1
            )
    document = {
        "schema": EXECUTION_SCHEMA,
        "execution": record.executions,
        "token": token,
        **{name: data[name] for name in _OF_RECORD},
        "retry": dict(retry),
    }
    folder = execution_folder(record.task_id, record.attempt, record.executions)
    written = redacted_json(document, redact) + b"\n"
    return write_beside(root, f"{folder}/execution.json", written, faults)


def earlier_executions(root: Path, record: AttemptRecord) -> list[EarlierExecution]:
    """Read the executions before the last, in order; those whose file is damaged are left out."""
    found = []
    for number in range(1, record.executions):
        folder = execution_folder(record.task_id, record.attempt, number)
        try:
            data = orjson.loads(read_kept(root, f"{folder}/execution.json"))
            found.append(_execution(data))
        except (KeptFileUnreadable, ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def _execution(data: Mapping[str, Any]) -> EarlierExecution:
    return EarlierExecution(
        int(data["execution"]),
        Outcome(data["outcome"]),
        tuple(map(Issue.from_json, data["issues"])),
        Usage.from_json(data["usage"]),
        timing_from_json(data["timing"]),
        data["trajectory"],
        dict(data["retry"]),
    )
