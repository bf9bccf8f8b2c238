"""The only primitives that create, write, sync, rename or remove below a run directory.

Every call names a `WritePoint` and tells the injected `Faults` before and after, so that a test
can kill the process, or fail the disk, at each of them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from steelyard.config.errors import Fault


class WritePoint(StrEnum):
    """Every kind of write below a run directory."""

    RUN_FOLDER_MADE = "run_folder_made"
    LOCK_CREATED = "lock_created"
    LOCK_WRITTEN = "lock_written"
    RUN_DOCUMENT_WRITTEN = "run_document_written"
    RUN_DOCUMENT_SYNCED = "run_document_synced"
    RUN_DOCUMENT_RENAMED = "run_document_renamed"
    RUN_FOLDER_SYNCED = "run_folder_synced"
    JOURNAL_CREATED = "journal_created"
    ATTEMPTS_APPENDED = "attempts_appended"
    ATTEMPTS_SYNCED = "attempts_synced"
    EVENTS_APPENDED = "events_appended"
    EVENTS_SYNCED = "events_synced"
    TAIL_CUT = "tail_cut"
    """After a short write: back to the last good line."""
    PROGRESS_WRITTEN = "progress_written"
    PROGRESS_RENAMED = "progress_renamed"
    METRICS_WRITTEN = "metrics_written"
    METRICS_RENAMED = "metrics_renamed"
    SUMMARY_WRITTEN = "summary_written"
    SUMMARY_RENAMED = "summary_renamed"
    ANALYSIS_WRITTEN = "analysis_written"
    ANALYSIS_RENAMED = "analysis_renamed"
    ANALYSIS_TEXT_WRITTEN = "analysis_text_written"
    ANALYSIS_TEXT_RENAMED = "analysis_text_renamed"
    ATTEMPT_FOLDER_MADE = "attempt_folder_made"
    ATTEMPT_FILE_WRITTEN = "attempt_file_written"
    ATTEMPT_FILE_RENAMED = "attempt_file_renamed"
    STEP_LOG_CREATED = "step_log_created"
    STEPS_APPENDED = "steps_appended"
    STEP_LOG_REMOVED = "step_log_removed"
    INPUTS_COLLECTED = "inputs_collected"
    """A session copies what scoring needs into the attempt's folder."""
    ARTIFACTS_COLLECTED = "artifacts_collected"
    CHECKPOINT_WRITTEN = "checkpoint_written"
    CHECKPOINT_SYNCED = "checkpoint_synced"
    CHECKPOINT_RENAMED = "checkpoint_renamed"
    SET_DOCUMENT_WRITTEN = "set_document_written"
    SET_DOCUMENT_SYNCED = "set_document_synced"
    SET_DOCUMENT_RENAMED = "set_document_renamed"
    SUBMISSION_WRITTEN = "submission_written"
    SUBMISSION_SYNCED = "submission_synced"
    SUBMISSION_RENAMED = "submission_renamed"
    FINDINGS_CREATED = "findings_created"
    FINDINGS_APPENDED = "findings_appended"
    FINDINGS_SYNCED = "findings_synced"
    FINDINGS_SCANS_CREATED = "findings_scans_created"
    FINDINGS_SCANS_APPENDED = "findings_scans_appended"
    FINDINGS_SCANS_SYNCED = "findings_scans_synced"
    FINDINGS_DAMAGE_WRITTEN = "findings_damage_written"
    """What stands behind the last valid line is kept aside before it is cut off."""
    FINDINGS_DAMAGE_RENAMED = "findings_damage_renamed"


OF_SETS: Final = frozenset(
    point for point in WritePoint if point.value.startswith(("set_", "submission_", "findings_"))
)
"""Writes below an eval set's folder, beside its runs."""


class Faults(Protocol):
    """What a test may do to a write; the product uses `NO_FAULTS`."""

    def before(self, point: WritePoint) -> None:
        """Told before the write; may end the process, sleep, or raise `OSError`."""
        ...

    def after(self, point: WritePoint) -> None:
        """Told after the write; may end the process."""
        ...

    def write(self, point: WritePoint, fd: int, data: bytes | memoryview) -> int:
        """Write, and return how many bytes went out; may write less or raise `OSError`."""
        ...


class NoFaults:
    """Lets every write be."""

    def before(self, point: WritePoint) -> None:
        """Do nothing."""

    def after(self, point: WritePoint) -> None:
        """Do nothing."""

    def write(self, point: WritePoint, fd: int, data: bytes | memoryview) -> int:
        """Write what the system takes."""
        return os.write(fd, data)


NO_FAULTS: Final[Faults] = NoFaults()


class StorageFailed(Fault):
    """A file of a run could not be written or synced; what was written before is kept."""

    def __init__(self, path: Path, cause: OSError) -> None:
        self.path = path
        self.cause = cause
        super().__init__(
            f"{path}: {cause.strerror or cause}",
            remedy="free space or mend the disk; `--reuse` then goes on from what is recorded",
        )


class AppendFile:
    """A file of lines that only grows; after a failed write it ends with its last good line."""

    def __init__(
        self,
        path: Path,
        appended: WritePoint,
        synced: WritePoint | None,
        faults: Faults = NO_FAULTS,
        *,
        created: WritePoint = WritePoint.JOURNAL_CREATED,
        goes_on_at: int | None = None,
    ) -> None:
        """Create the file; it must not exist, unless it goes on.

        Args:
            path: the file.
            appended: the point of an append.
            synced: the point of a sync; None for a file that nobody waits for.
            faults: what a test does to it.
            created: the point of its creation.
            goes_on_at: of a file that may be there, where its last good line ends: what stands
                behind that is cut off. The caller holds the lock of the file's writers.

        Raises:
            StorageFailed: it cannot be created, or is no regular file.
        """
        self.path = path
        self._appended = appended
        self._synced = synced
        self._faults = faults
        self._good_bytes = goes_on_at or 0
        self._synced_bytes = -1
        try:
            faults.before(created)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            # A FIFO in its place must not be waited for, a link not be followed.
            flags |= os.O_EXCL if goes_on_at is None else os.O_NOFOLLOW | os.O_NONBLOCK
            self._fd = os.open(path, flags, 0o644)
            faults.after(created)
            if goes_on_at is not None:
                self._go_on(goes_on_at)
        except OSError as error:
            raise StorageFailed(path, error) from error

    def _go_on(self, good_bytes: int) -> None:
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise OSError(errno.EINVAL, "it is no regular file")
        if found.st_size > good_bytes:
            self._faults.before(WritePoint.TAIL_CUT)
            os.ftruncate(self._fd, good_bytes)
            self._faults.after(WritePoint.TAIL_CUT)

    @property
    def size(self) -> int:
        """Bytes of whole lines written so far."""
        return self._good_bytes

    def append(self, lines: bytes) -> None:
        """Write whole lines; blocking, but never for a sync.

        Raises:
            StorageFailed: not all could be written. The lines that were written whole are kept.
        """
        written = 0
        try:
            self._faults.before(self._appended)
            written = self._faults.write(self._appended, self._fd, lines)
            while written < len(lines):
                rest = memoryview(lines)[written:]
                count = self._faults.write(self._appended, self._fd, rest)
                if count == 0:
                    raise OSError(28, "the disk took no more bytes")
                written += count
        except OSError as error:
            self._good_bytes += lines.rfind(b"\n", 0, written) + 1
            self._cut_back()
            raise StorageFailed(self.path, error) from error
        self._good_bytes += written
        self._faults.after(self._appended)

    def sync(self) -> None:
        """Wait until what was appended is on the disk. A failure must not be tried again.

        After a failed fsync the kernel may have dropped the pages and says nothing on the next.
        Where nothing was appended since the last sync there is nothing to wait for.

        Raises:
            StorageFailed: the disk did not take it, or the file was removed or moved meanwhile.
        """
        mark = self._good_bytes
        if self._synced is None or mark == self._synced_bytes:
            return
        try:
            self._faults.before(self._synced)
            os.fdatasync(self._fd) if hasattr(os, "fdatasync") else os.fsync(self._fd)
            self._require_name()
            self._faults.after(self._synced)
        except OSError as error:
            raise StorageFailed(self.path, error) from error
        self._synced_bytes = mark

    def _require_name(self) -> None:
        """Raise where the path no longer leads here: what is written goes to no file then."""
        ours, named = os.fstat(self._fd), self.path.stat()
        if (ours.st_dev, ours.st_ino) != (named.st_dev, named.st_ino):
            raise OSError(errno.ESTALE, "another file has taken its name")

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _cut_back(self) -> None:
        try:
            self._faults.before(WritePoint.TAIL_CUT)
            os.ftruncate(self._fd, self._good_bytes)
            self._faults.after(WritePoint.TAIL_CUT)
        except OSError:
            return  # readers stop at the last valid line anyway


def replace_atomically(
    path: Path,
    data: bytes,
    written: WritePoint,
    renamed: WritePoint,
    faults: Faults = NO_FAULTS,
    *,
    synced: WritePoint | None = None,
) -> None:
    """Put `data` in place of a file: whoever reads sees the old one or the new one, whole.

    Args:
        path: the file; its folder exists.
        data: all of its new content.
        written: the point of the temporary file.
        renamed: the point of the rename.
        faults: what a test does to it.
        synced: given, the content is synced before the rename.

    Raises:
        StorageFailed: it could not be replaced; the old one stands.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write_new(temporary, data, written, faults, synced)
        faults.before(renamed)
        temporary.replace(path)
        faults.after(renamed)
    except OSError as error:
        with suppress(OSError):  # a disk that takes no writes may take no removals either
            temporary.unlink(missing_ok=True)
        raise StorageFailed(path, error) from error


def write_beside(run_dir: Path, relative: str, data: bytes, faults: Faults = NO_FAULTS) -> str:
    """Write a file that belongs to an attempt, its folders made, atomically.

    Args:
        run_dir: the run directory.
        relative: where below it, as `layout.attempt_folder` and a plain name give it.
        data: all of its content.
        faults: what a test does to it.

    Returns:
        `relative`, for the record.

    Raises:
        ValueError: the path leads out of the run directory.
        StorageFailed: it could not be written.
    """
    path = run_dir / relative
    if ".." in Path(relative).parts or Path(relative).is_absolute():
        raise ValueError(f"{relative!r} leads out of the run directory")
    make_folders(path.parent, faults)
    replace_atomically(
        path, data, WritePoint.ATTEMPT_FILE_WRITTEN, WritePoint.ATTEMPT_FILE_RENAMED, faults
    )
    return relative


def remove_step_log(path: Path, faults: Faults = NO_FAULTS) -> None:
    """Remove an attempt's log of steps, once its trajectory is written and recorded.

    Raises:
        StorageFailed: it cannot be removed.
    """
    try:
        faults.before(WritePoint.STEP_LOG_REMOVED)
        path.unlink(missing_ok=True)
        faults.after(WritePoint.STEP_LOG_REMOVED)
    except OSError as error:
        raise StorageFailed(path, error) from error


def make_folders(folder: Path, faults: Faults = NO_FAULTS) -> None:
    """Make a folder for an attempt's files, with those above it.

    Raises:
        StorageFailed: it cannot be made.
    """
    if folder.is_dir():
        return
    try:
        faults.before(WritePoint.ATTEMPT_FOLDER_MADE)
        folder.mkdir(parents=True, exist_ok=True)
        faults.after(WritePoint.ATTEMPT_FOLDER_MADE)
    except OSError as error:
        raise StorageFailed(folder, error) from error


def make_new_folder(folder: Path, faults: Faults = NO_FAULTS) -> None:
    """Make a run's own folder; the folders above it are made too, itself must be new.

    Raises:
        FileExistsError: it is there already.
        OSError: it cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    faults.before(WritePoint.RUN_FOLDER_MADE)
    folder.mkdir()
    faults.after(WritePoint.RUN_FOLDER_MADE)


def open_lock_file(path: Path, faults: Faults = NO_FAULTS) -> int:
    """Create or open a lock file and return its descriptor."""
    faults.before(WritePoint.LOCK_CREATED)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    faults.after(WritePoint.LOCK_CREATED)
    return fd


def write_lock_file(fd: int, data: bytes, faults: Faults = NO_FAULTS) -> None:
    """Say in a held lock file who holds it."""
    faults.before(WritePoint.LOCK_WRITTEN)
    os.ftruncate(fd, 0)
    os.pwrite(fd, data, 0)
    faults.after(WritePoint.LOCK_WRITTEN)


def sync_folder(folder: Path, faults: Faults = NO_FAULTS) -> None:
    """Make the entries of a folder survive a loss of power.

    Raises:
        StorageFailed: the disk did not take it.
    """
    try:
        faults.before(WritePoint.RUN_FOLDER_SYNCED)
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        faults.after(WritePoint.RUN_FOLDER_SYNCED)
    except OSError as error:
        raise StorageFailed(folder, error) from error


def _write_new(
    path: Path, data: bytes, point: WritePoint, faults: Faults, synced: WritePoint | None
) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        faults.before(point)
        _write_all(fd, data, point, faults)
        faults.after(point)
        if synced is not None:
            faults.before(synced)
            os.fsync(fd)
            faults.after(synced)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes, point: WritePoint, faults: Faults) -> None:
    rest: Sequence[int] | memoryview = memoryview(data)
    while len(rest):
        count = faults.write(point, fd, rest)  # type: ignore[arg-type]
        if count == 0:
            raise OSError(28, "the disk took no more bytes")
        rest = rest[count:]
