"""Bring somebody else's files to this disk: none outside its folder, and not without end.

Links are made last and only where they stay inside, so no file is ever written through one.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from steelyard.benchmarks.pack.paths import (
    MAX_FILES,
    SKIPPED_NAMES,
    PathProblem,
    entries,
    relative_parts,
)

MAX_BYTES: Final = 8 * 1024**3
"""Of all files together, as they come out: an archive's own word is not taken for it."""
_CHUNK: Final = 1024 * 1024
_MAX_LINK_BYTES: Final = 4096


class TreeRefused(ValueError):
    """What is to be brought in is not safe, or too much; its words are for people."""


@dataclass(slots=True)
class Planting:
    """A new folder that files are put into, one after another."""

    root: Path
    """An empty folder."""
    max_bytes: int = MAX_BYTES
    max_files: int = MAX_FILES
    _bytes: int = 0
    _files: int = 0
    _links: list[tuple[Path, str]] = field(default_factory=list)

    def put(self, name: str, source: IO[bytes], *, is_executable: bool) -> None:
        """Write a file.

        Raises:
            TreeRefused: its name leads out or is there already, or it is too much.
        """
        path = self._place(name)
        if path is None:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o755 if is_executable else 0o644)
        except FileExistsError as error:
            raise TreeRefused(f"{name!r} comes twice") from error
        with os.fdopen(descriptor, "wb") as file:
            while chunk := source.read(_CHUNK):
                self._bytes += len(chunk)
                if self._bytes > self.max_bytes:
                    raise TreeRefused(f"more than {self.max_bytes // 1024**2} MiB of files")
                file.write(chunk)

    def link(self, name: str, target: str) -> None:
        """Note a link, to be made by `finish`.

        Raises:
            TreeRefused: its name leads out, or it is too much.
        """
        path = self._place(name)
        if path is not None:
            self._links.append((path, target))

    def finish(self) -> None:
        """Make the links, then look at the whole once more.

        Raises:
            TreeRefused: a link leads out.
        """
        for path, target in self._links:
            try:
                os.symlink(target, path)  # noqa: PTH211 — the target as written
            except (OSError, ValueError) as error:
                raise TreeRefused(f"the link {path.name!r} cannot be made: {error}") from error
        try:
            for _ in entries(self.root):
                pass
        except PathProblem as error:
            raise TreeRefused(str(error)) from error

    def _place(self, name: str) -> Path | None:
        """Give the path of a name, its folders made; None for what is left out."""
        try:
            parts = relative_parts(name)
        except PathProblem as error:
            raise TreeRefused(str(error)) from error
        if any(part in SKIPPED_NAMES for part in parts):
            return None
        self._files += 1
        if self._files > self.max_files:
            raise TreeRefused(f"more than {self.max_files} files")
        path = self.root.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TreeRefused(f"{name!r} lies below a file") from error
        return path


def plant_folder(source: Path, planting: Planting) -> None:
    """Copy a folder; what programs leave behind (`.git`, `__pycache__`) stays behind.

    Raises:
        TreeRefused: it holds what is neither file nor folder, or a link that leads out.
        OSError: a file cannot be read.
    """
    try:
        for entry in entries(source):
            if entry.link is not None:
                planting.link(entry.relative, entry.link)
                continue
            with entry.path.open("rb") as file:
                planting.put(entry.relative, file, is_executable=entry.is_executable)
    except PathProblem as error:
        raise TreeRefused(str(error)) from error


def plant_archive(source: Path, planting: Planting) -> None:
    """Unpack a tar archive, compressed or not, or a zip archive.

    Raises:
        TreeRefused: it is neither, is damaged, or holds what is not safe.
        OSError: it cannot be read.
    """
    try:
        if zipfile.is_zipfile(source):
            _plant_zip(source, planting)
        elif tarfile.is_tarfile(source):
            _plant_tar(source, planting)
        else:
            raise TreeRefused("it is neither a tar nor a zip archive")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, RuntimeError) as error:
        # Of locked archives and unknown compression `zipfile` says so by `RuntimeError`.
        raise TreeRefused(f"it cannot be unpacked: {error}") from error


def _plant_tar(source: Path, planting: Planting) -> None:
    with tarfile.open(source, "r:*") as archive:
        for member in archive:
            if member.isdir():
                continue
            if member.issym():
                planting.link(_inner(member.name), member.linkname)
                continue
            if not member.isreg():
                kind = "a hard link" if member.islnk() else "a device or socket"
                raise TreeRefused(f"{member.name!r} is {kind}")
            file = archive.extractfile(member)
            if file is None:  # pragma: no cover - regular files have content
                raise TreeRefused(f"{member.name!r} has no content")
            planting.put(_inner(member.name), file, is_executable=bool(member.mode & 0o100))


def _plant_zip(source: Path, planting: Planting) -> None:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                if member.file_size > _MAX_LINK_BYTES:
                    raise TreeRefused(f"{member.filename!r} is a link of {member.file_size} bytes")
                target = archive.read(member).decode("utf-8", "surrogateescape")
                planting.link(_inner(member.filename), target)
                continue
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise TreeRefused(f"{member.filename!r} is a device or socket")
            with archive.open(member) as file:
                planting.put(_inner(member.filename), file, is_executable=bool(mode & 0o100))


def _inner(name: str) -> str:
    return name.removeprefix("./")


@dataclass(frozen=True, slots=True)
class Blob:
    """A file as Git knows it."""

    name: str
    mode: str
    read: Callable[[], IO[bytes]]


def plant_blobs(blobs: Iterable[Blob], planting: Planting) -> None:
    """Write the files of a Git tree.

    Raises:
        TreeRefused: one is a submodule, or not safe.
    """
    for blob in blobs:
        if blob.mode == "160000":
            raise TreeRefused(f"{blob.name!r} is a submodule")
        with blob.read() as file:
            if blob.mode == "120000":
                target = file.read(_MAX_LINK_BYTES).decode("utf-8", "surrogateescape")
                planting.link(blob.name, target)
            else:
                planting.put(blob.name, file, is_executable=blob.mode == "100755")


def large_file_pointers(root: Path) -> Iterator[str]:
    """Name files that only point to content kept elsewhere (Git LFS)."""
    for entry in entries(root):
        if entry.link is None and entry.path.stat().st_size < 1024:
            with entry.path.open("rb") as file:
                if file.read(43) == b"version https://git-lfs.github.com/spec/v1\n":
                    yield entry.relative


def remove(path: Path) -> None:
    """Remove a folder of ours, whatever is left of it."""
    shutil.rmtree(path, ignore_errors=True)
