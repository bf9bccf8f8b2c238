"""Make a run's directory: folder, lock, `run.json`, in that order, each whole or not there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.clock import Clock, utc_text
from steelyard.results.files import (
    NO_FAULTS,
    Faults,
    WritePoint,
    make_new_folder,
    replace_atomically,
    sync_folder,
)
from steelyard.results.layout import (
    ResultsNotWritable,
    RunFiles,
    RunIdInUse,
    RunPaths,
    default_run_ids,
)
from steelyard.results.lines import redacted_json
from steelyard.results.lock import RunLock, network_file_system
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain

RUN_SCHEMA: Final = "run/1"
_OURS: Final = frozenset({"schema", "run_id", "created_at", "ordered_at"})


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run directory that this process owns."""

    paths: RunPaths
    """With the run id that was chosen."""
    files: RunFiles
    lock: RunLock
    document: Mapping[str, Any]
    """What `run.json` says."""
    warnings: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.root.name

    @property
    def root(self) -> Path:
        """The run's directory."""
        return self.files.root


def create_run(
    paths: RunPaths,
    document: Mapping[str, Any],
    *,
    clock: Clock,
    faults: Faults = NO_FAULTS,
    redact: Callable[[bytes], bytes] | None = None,
) -> RunFolder:
    """Make a run directory that nobody else has, and own it.

    Args:
        paths: where; without a run id one is made from the time.
        document: what `run.json` says, secrets in their `$secret` form. `schema`, `run_id` and
            `created_at` are added. Results are summarised from `benchmark_info` and `plan`.
        clock: for the run id and `created_at`.
        faults: what a test does to the writes.
        redact: applied to what is written: a secret may be copied into any setting.

    Raises:
        RunIdInUse: the explicit run id is taken.
        ResultsNotWritable: the folder cannot be made.
        StorageFailed: `run.json` could not be written.
    """
    started = clock.now()
    chosen = _make_folder(paths, default_run_ids(started), faults)
    files = chosen.files
    root = files.root
    try:
        lock = RunLock.acquire(files.lock, faults=faults)
    except OSError as error:
        raise ResultsNotWritable(root, str(error.strerror or error)) from error
    ordered_at = _after_those_before(root, started)
    full = {
        "schema": RUN_SCHEMA,
        "run_id": root.name,
        "created_at": utc_text(started),
        **({} if ordered_at is None else {"ordered_at": ordered_at}),
        **{k: v for k, v in document.items() if k not in _OURS},
    }
    try:
        replace_atomically(
            files.document,
            redacted_json(full, redact, orjson.OPT_INDENT_2) + b"\n",
            WritePoint.RUN_DOCUMENT_WRITTEN,
            WritePoint.RUN_DOCUMENT_RENAMED,
            faults,
            synced=WritePoint.RUN_DOCUMENT_SYNCED,
        )
        sync_folder(root, faults)
    except BaseException:
        lock.release()
        raise
    network = network_file_system(root)
    warnings = (f"{root} lies on {network}: locks and syncs may not hold there",) if network else ()
    return RunFolder(chosen, files, lock, full, warnings)


def _after_those_before(root: Path, started: datetime) -> str | None:
    """Say where a run belongs among those of its folder, where its clock says otherwise.

    The clock may have been set back since one of them began: the newest would for hours not be the
    one that began last, and reuse would run again what that one had done. None mostly: where no
    folder is younger than now, no run can be.
    """
    latest = utc_text(started)
    with suppress(OSError), os.scandir(root.parent) as entries:
        for entry in entries:
            with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
                if entry.name == root.name or entry.stat().st_mtime < started.timestamp():
                    continue
                path = Path(entry.path) / RunFiles(root).document.name
                found = orjson.loads(read_plain(path, MAX_DOCUMENT_BYTES))
                moment = datetime.fromisoformat(str(found.get("ordered_at") or found["created_at"]))
                latest = max(latest, utc_text(moment + timedelta(milliseconds=1)))
    return None if latest == utc_text(started) else latest


def _make_folder(paths: RunPaths, ids: Any, faults: Faults) -> RunPaths:
    for run_id in ids if paths.run_id is None else (paths.run_id,):
        chosen = paths.with_run_id(run_id)
        try:
            make_new_folder(chosen.root, faults)
        except FileExistsError as error:
            if not chosen.root.exists():
                raise ResultsNotWritable(Path(error.filename), "it is not a folder") from error
            if paths.run_id is not None:
                raise RunIdInUse(chosen.root) from error
        except OSError as error:
            raise ResultsNotWritable(
                Path(error.filename or chosen.root), str(error.strerror or error)
            ) from error
        else:
            return chosen
    raise AssertionError("run ids never end")
