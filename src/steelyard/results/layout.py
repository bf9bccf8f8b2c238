"""Where everything of a run lies; names only, nothing is made here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from steelyard.config.errors import BadInput
from steelyard.config.names import is_path_component, normalise

MAX_TASK_FOLDER_BYTES: Final = 120


class RunIdInUse(BadInput):
    """An explicit run id names a folder that exists."""

    def __init__(self, root: Path) -> None:
        super().__init__(
            f"the run id {root.name!r} is in use: {root} exists",
            remedy="choose another `output.run_id`, or leave it out for one made from the time",
        )


class ResultsNotWritable(BadInput):
    """The results folder cannot be written."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f"the results folder {folder} cannot be written: {reason}",
            remedy="choose another with `--results-dir` or `runtime.results_dir`",
        )


@dataclass(frozen=True, slots=True)
class RunPaths:
    """`<results_dir>/[<run_name>/]<namespace>/<run_id>/` and what lies in it."""

    results_dir: Path
    run_name: str | None
    namespace: str
    """The request's name, or model, benchmark and harness joined; made safe here."""
    run_id: str | None = None
    """None: `create_run` makes one from the time."""

    @property
    def namespace_dir(self) -> Path:
        """The folder of all runs of a request: where reuse looks."""
        base = self.results_dir / normalise(self.run_name) if self.run_name else (self.results_dir)
        return base / normalise(self.namespace)

    @property
    def root(self) -> Path:
        """The folder of this run.

        Raises:
            ValueError: the run id is not chosen yet.
        """
        if self.run_id is None:
            raise ValueError("the run id is not chosen yet")
        return self.namespace_dir / normalise(self.run_id)

    @property
    def files(self) -> RunFiles:
        """The files of this run; raises like `root`."""
        return RunFiles(self.root)

    def with_run_id(self, run_id: str) -> RunPaths:
        """Give the same paths with a run id."""
        return replace(self, run_id=run_id)

    def check(self) -> None:
        """Find out, without making anything, whether the run could be created.

        Raises:
            RunIdInUse: the explicit run id is taken.
            ResultsNotWritable: the nearest folder that exists cannot be written.
        """
        folder = self.namespace_dir
        try:
            folder.lstat()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:  # a path that no system can hold
            reason = getattr(error, "strerror", None) or str(error)
            raise ResultsNotWritable(self.results_dir, reason) from error
        while not folder.exists() and folder != folder.parent:
            if folder.is_symlink():
                raise ResultsNotWritable(folder, "it is a link that leads nowhere")
            folder = folder.parent
        if not folder.is_dir():
            raise ResultsNotWritable(folder, "it is not a folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ResultsNotWritable(folder, "permission denied")
        if self.run_id is not None and self.root.exists():
            raise RunIdInUse(self.root)


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of a run directory, for those who have only its path."""

    root: Path

    @property
    def lock(self) -> Path:
        """Held by the owner while the run is alive."""
        return self.root / "lock"

    @property
    def document(self) -> Path:
        """`run.json`, written once."""
        return self.root / "run.json"

    @property
    def events(self) -> Path:
        """Intents and phases."""
        return self.root / "events.jsonl"

    @property
    def attempts(self) -> Path:
        """The records."""
        return self.root / "attempts.jsonl"

    @property
    def progress(self) -> Path:
        """A small snapshot, replaced as the run goes on."""
        return self.root / "progress.json"

    @property
    def log(self) -> Path:
        """The file log."""
        return self.root / "run.log"

    @property
    def metrics(self) -> Path:
        """Derived figures."""
        return self.root / "metrics.json"

    @property
    def calibration(self) -> Path:
        """What its benchmark's ceiling and floor say of its tasks, where that was asked for."""
        return self.root / "calibration.json"

    @property
    def summary(self) -> Path:
        """Derived figures, for people."""
        return self.root / "summary.md"

    @property
    def analysis(self) -> Path:
        """What analyzers found."""
        return self.root / "analysis.json"

    @property
    def analysis_text(self) -> Path:
        """What analyzers found, for people."""
        return self.root / "analysis.md"


def attempt_folder(task_id: str, attempt: int) -> str:
    """The folder of an attempt, relative to the run directory."""
    return f"tasks/{task_folder(task_id)}/attempt-{attempt}"


def execution_folder(task_id: str, attempt: int, execution: int) -> str:
    """The folder of an execution that a later one replaced, relative to the run directory."""
    return f"{attempt_folder(task_id, attempt)}/execution-{execution}"


def task_folder(task_id: str) -> str:
    """Give the one folder name of a task id; two ids never share one.

    An id that is a safe name in lower case is its own folder. Any other ends in `~` and a hash of
    the id; no safe name holds a `~`, so the two kinds cannot meet, on file systems that ignore
    case neither.
    """
    name = normalise(task_id)
    is_plain = is_path_component(task_id) and task_id == task_id.lower()
    if is_plain and len(name.encode()) <= MAX_TASK_FOLDER_BYTES:
        return name
    digest = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    cut = name.encode()[:MAX_TASK_FOLDER_BYTES].decode("utf-8", "ignore")
    return f"{cut}~{digest}"


def default_run_ids(started: datetime) -> Iterator[str]:
    """Give `YYYYMMDD_HHMMSS` of the start in UTC, then the same with `-2`, `-3`, ..."""
    base = started.astimezone(UTC).strftime("%Y%m%d_%H%M%S")
    yield base
    number = 2
    while True:
        yield f"{base}-{number}"
        number += 1
