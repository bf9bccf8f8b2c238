"""Content-addressed files beside the ledger: written whole, checked by their SHA-256 on read.

A file's name is its digest, so that it can be written twice and never changed; the ledger names
digests only.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from steelyard.config.errors import Fault
from steelyard.fix.ledger.errors import TooLarge
from steelyard.fix.ledger.faults import NO_FAULTS, LedgerFaults, LedgerPoint
from steelyard.results.plain_files import read_plain

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of one file."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FANNED: Final = 2
_TEMPORARY: Final = ".new-"


class EvidenceDamaged(Fault):
    """A file is missing, or is not what its name says."""

    def __init__(self, digest: str, why: str) -> None:
        super().__init__(
            f"evidence {digest}: {why}",
            remedy="bring the file back from a backup; what rests on it does not count without it",
        )


class EvidenceFailed(Fault):
    """The disk did not take a file."""


class Evidence:
    """The files of one folder."""

    def __init__(self, folder: Path, *, faults: LedgerFaults = NO_FAULTS) -> None:
        """Look at a folder; it is made by the first file."""
        self._folder = folder
        self._faults = faults

    def put(self, content: bytes) -> str:
        """Keep content; give its SHA-256. Kept before, it is written again only if damaged.

        Raises:
            TooLarge: it has more than `MAX_BYTES`.
            EvidenceFailed: the disk did not take it.
        """
        if len(content) > MAX_BYTES:
            raise TooLarge("the evidence", len(content), MAX_BYTES)
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        try:
            if _holds(path, content):
                # Who wrote it may have died between the rename and the sync of the folder.
                _sync_folder(path.parent)
                os.utime(path)
                return digest
            self._write(path, content)
        except OSError as error:
            raise EvidenceFailed(
                f"evidence {digest} cannot be written: {error.strerror or error}",
                remedy="free space or mend the disk, then run the same command again",
            ) from error
        return digest

    def get(self, digest: str, *, max_bytes: int = MAX_BYTES) -> bytes:
        """Read what is kept under a digest.

        Raises:
            EvidenceDamaged: it is not there, is too large, or says something else.
        """
        try:
            content = read_plain(self._path(digest), max_bytes, follow=False)
        except OSError as error:
            raise EvidenceDamaged(digest, error.strerror or str(error)) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise EvidenceDamaged(digest, "it is not what was kept")
        return content

    def digests(self, *, kept_before: float | None = None) -> Iterator[str]:
        """Give what is kept, in no order; nothing is checked.

        Args:
            kept_before: leaves out what was kept since that moment (seconds since 1970): a file is
                there before the row that names it, and must not be taken for a stray one.
        """
        with suppress(FileNotFoundError):
            for fan in sorted(self._folder.iterdir()):
                if fan.is_dir() and not fan.is_symlink():
                    for file in fan.iterdir():
                        digest = fan.name + file.name
                        if _DIGEST.fullmatch(digest) and _is_older(file, kept_before):
                            yield digest

    def remove(self, digest: str) -> int:
        """Remove a file that nothing rests on any more; give how many bytes it had."""
        path = self._path(digest)
        try:
            size = path.stat(follow_symlinks=False).st_size
            path.unlink()
        except FileNotFoundError:
            return 0
        return size

    def _path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise EvidenceDamaged(digest, "it is no SHA-256")
        return self._folder / digest[:_FANNED] / digest[_FANNED:]

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.parent / f"{_TEMPORARY}{uuid4().hex}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                self._faults.reached(LedgerPoint.EVIDENCE_WRITTEN)
                os.fsync(file.fileno())
            self._faults.reached(LedgerPoint.EVIDENCE_SYNCED)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._faults.reached(LedgerPoint.EVIDENCE_RENAMED)
        for folder in (path.parent, self._folder, self._folder.parent):
            _sync_folder(folder)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return read_plain(path, len(content), follow=False) == content
    except OSError:
        return False


def _is_older(file: Path, moment: float | None) -> bool:
    try:
        return moment is None or file.lstat().st_mtime < moment
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
