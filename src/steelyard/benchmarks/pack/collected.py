"""Read what was collected of an agent's working folder, without being led out of it.

The agent chose every name, link and kind of file. Paths are walked part by part from an open
descriptor; links are resolved here and only inside; nothing but a regular file is ever opened for
reading. Devices, FIFOs and sockets count as if nothing were there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from steelyard.benchmarks.pack.paths import MAX_FILES, SKIPPED_NAMES

MAX_DEPTH: Final = 100
MAX_LINKS: Final = 40
_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NotThere(Exception):
    """Nothing that can be looked at has that path; its words are for people."""


class TreeTooLarge(Exception):
    """A folder deeper or with more in it than is looked at; its words are for people."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or link below a folder."""

    relative: str
    """With forward slashes; bytes that are not UTF-8 as surrogates."""
    is_folder: bool
    size: int
    is_executable: bool
    link: str | None
    """Where a link points, as written."""


@contextmanager
def opened(artifacts: Mapping[str, Path], path: str) -> Iterator[int]:
    """Open what has a path of the working folder, to be looked at only.

    Raises:
        NotThere: nothing has that path, or it leads out.
    """
    root, rest = _nearest(artifacts, path)
    with _walked(root, rest, path) as descriptor:
        yield descriptor


def kind_of(descriptor: int) -> str:
    """Give `file`, `folder` or `other`."""
    mode = os.fstat(descriptor).st_mode
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


@contextmanager
def opened_file(artifacts: Mapping[str, Path], path: str) -> Iterator[BinaryIO]:
    """Open a regular file for reading.

    Raises:
        NotThere: there is none.
    """
    with opened(artifacts, path) as descriptor:
        if kind_of(descriptor) != "file":
            raise NotThere(f"{path!r} is not a file")
        # The descriptor is of that very file: what its name leads to by now does not matter.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            readable = os.open(f"/proc/self/fd/{descriptor}", flags)
        except OSError as error:
            raise NotThere(f"{path!r} cannot be read: {error.strerror}") from error
        with os.fdopen(readable, "rb") as file:
            yield file


def entries_below(artifacts: Mapping[str, Path], path: str) -> Iterator[Entry]:
    """Give everything below a folder; links are not followed.

    Raises:
        NotThere: there is no such folder.
        TreeTooLarge: deeper than `MAX_DEPTH` or with more than `paths.MAX_FILES` entries.
    """
    with opened(artifacts, path) as descriptor:
        if kind_of(descriptor) != "folder":
            raise NotThere(f"{path!r} is not a folder")
        folder = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        yield from _below(folder, "", 0, [0])


def _below(folder: int, prefix: str, depth: int, counted: list[int]) -> Iterator[Entry]:
    """Give what is below an open folder, which is closed at the end."""
    try:
        if depth > MAX_DEPTH:
            raise TreeTooLarge(f"the folder nests deeper than {MAX_DEPTH}")
        with os.scandir(folder) as found:
            for item in found:
                counted[0] += 1
                if counted[0] > MAX_FILES:
                    raise TreeTooLarge(f"the folder holds more than {MAX_FILES} files")
                entry = _entry(folder, item, prefix)
                if entry is None:
                    continue
                yield entry
                if entry.is_folder:
                    try:
                        below = os.open(item.name, _FOLDER, dir_fd=folder)
                    except OSError:  # its modes shut us out: nothing to be seen in it
                        continue
                    yield from _below(below, f"{entry.relative}/", depth + 1, counted)
    finally:
        os.close(folder)


def _entry(folder: int, item: os.DirEntry[str], prefix: str) -> Entry | None:
    if item.name in SKIPPED_NAMES:
        return None
    try:
        found = os.stat(item.name, dir_fd=folder, follow_symlinks=False)
        is_link = stat.S_ISLNK(found.st_mode)
        target = os.readlink(item.name, dir_fd=folder) if is_link else None
    except OSError:
        return None
    is_folder = stat.S_ISDIR(found.st_mode)
    if not (is_folder or is_link or stat.S_ISREG(found.st_mode)):
        return None
    is_executable = bool(found.st_mode & stat.S_IXUSR)
    return Entry(f"{prefix}{item.name}", is_folder, found.st_size, is_executable, target)


def _nearest(artifacts: Mapping[str, Path], path: str) -> tuple[Path, tuple[str, ...]]:
    """Give what was collected that the path is, or lies in, and the rest of the path."""
    if path in artifacts:
        return artifacts[path], ()
    parts = PurePosixPath(path).parts
    for count in range(len(parts), -1, -1):
        name = "/".join(parts[:count]) or "."
        if name in artifacts:
            return artifacts[name], parts[count:]
    raise NotThere(f"there is no {path!r}")


@contextmanager
def _walked(root: Path, rest: tuple[str, ...], path: str) -> Iterator[int]:
    descriptors: list[int] = []
    ahead = list(reversed(rest))
    links = 0
    try:
        descriptors.append(os.open(root, _LOOK))
        while ahead:
            part = ahead.pop()
            if part == "..":
                os.close(descriptors.pop())
                if not descriptors:
                    raise NotThere(f"{path!r} leads out of the working folder")
                continue
            below = os.open(part, _LOOK, dir_fd=descriptors[-1])
            if not stat.S_ISLNK(os.fstat(below).st_mode):
                descriptors.append(below)
                continue
            os.close(below)
            target = os.readlink(part, dir_fd=descriptors[-1])
            links += 1
            if target.startswith("/") or links > MAX_LINKS:
                raise NotThere(f"{path!r} leads out of the working folder, or in a circle")
            ahead += [step for step in reversed(target.split("/")) if step not in ("", ".")]
        yield descriptors[-1]
    except OSError as error:
        raise NotThere(f"there is no {path!r}") from error
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def matches_glob(relative: str, pattern: str) -> bool:
    """True where a path matches a pattern part by part.

    `*` and `?` stay within a part and match leading dots, too; `**` is any number of parts.
    """
    parts = relative.split("/")
    reached = {0}
    for wanted in pattern.split("/"):
        if wanted == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {
                at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], wanted)
            }
    return len(parts) in reached
