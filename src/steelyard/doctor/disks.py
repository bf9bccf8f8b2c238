"""The folders that runs write to: writable, local, with room, and how long a sync takes."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.doctor.finding import Finding, State, works
from steelyard.results.lock import network_file_system

LITTLE_ROOM_MIB: Final = 1024
SLOW_SYNC_MS: Final = 50.0
_SYNCS: Final = 5


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """What a folder showed."""

    folder: Path
    network: str | None
    free_mib: int
    free_files: int | None
    """None where the file system makes them as needed."""
    sync_ms: float
    """The median of a few small synced writes."""
    holds_locks: bool


def examine_folder(area: str, folder: Path) -> Finding:
    """Try a folder, or the nearest one above it that exists. Blocking; leaves nothing behind."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        facts = _try(existing)
    except OSError as error:
        return refused(area, existing, error)
    return disk_verdict(area, facts)


def refused(area: str, folder: Path, error: OSError) -> Finding:
    """Judge a folder that cannot be written."""
    why = error.strerror or str(error)
    setting = {"results": "`--results-dir`", "data": "`--data-dir`"}.get(area, "TMPDIR")
    remedy = f"choose another with {setting}, or `chown`/`chmod` it; `df -h {folder}` shows room"
    return Finding(area, State.BROKEN, f"{folder} cannot be written: {why}", remedy)


def disk_verdict(area: str, facts: DiskFacts) -> Finding:
    """Judge a folder that can be written."""
    said = f"{facts.folder}: {facts.free_mib:,} MiB free, {facts.sync_ms:.1f} ms a sync"
    if facts.network is not None:
        message = f"{facts.folder} lies on {facts.network}: locks and syncs may not hold there"
        return Finding(area, State.WARNING, message, "put it on a local disk")
    if not facts.holds_locks:
        message = f"{facts.folder}: its file system does not hold locks"
        return Finding(area, State.BROKEN, message, "put it on a local disk (ext4, xfs, btrfs)")
    if facts.free_mib < LITTLE_ROOM_MIB:
        remedy = "`steelyard du` shows what runs take, `steelyard prune` removes old ones"
        return Finding(area, State.WARNING, f"{said}: little room", remedy)
    if facts.free_files is not None and facts.free_files < 10_000:
        message = f"{facts.folder}: room for {facts.free_files} more files only"
        return Finding(area, State.WARNING, message, "`steelyard prune`, or another file system")
    if facts.sync_ms > SLOW_SYNC_MS:
        remedy = "records wait for it, attempts do not; a local SSD is faster"
        return Finding(area, State.WARNING, f"{said}: slow", remedy)
    return works(area, said)


def _try(folder: Path) -> DiskFacts:
    """Write, sync and lock a file without a lasting name.

    Raises:
        OSError: the folder refuses.
    """
    if not folder.is_dir():
        raise NotADirectoryError(20, "it is not a folder", str(folder))
    status = os.statvfs(folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        took_ms = []
        for _ in range(_SYNCS):
            file.write(b"\0" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            took_ms.append((time.perf_counter() - began) * 1000)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            holds_locks = True
        except OSError:
            holds_locks = False
    return DiskFacts(
        folder,
        network_file_system(folder),
        shutil.disk_usage(folder).free // (1024 * 1024),
        status.f_favail if status.f_files else None,
        sorted(took_ms)[_SYNCS // 2],
        holds_locks,
    )
