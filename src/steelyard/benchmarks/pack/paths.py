"""Paths inside a pack: none leads out of its folder, by `..`, by a root or by a link.

A pack is hostile content: what it names is copied into environments and read by scorers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

MAX_FILES: Final = 100_000
SKIPPED_NAMES: Final = frozenset({"__pycache__", ".git", ".DS_Store", ".pytest_cache"})
"""What programs leave behind; not part of a pack."""


class PathProblem(ValueError):
    """A path that a pack may not name, or that is not there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or link below a folder."""

    relative: str
    """With forward slashes."""
    path: Path
    link: str | None
    """Where a link points, as written; None for a file."""
    is_executable: bool


def relative_parts(text: str) -> tuple[str, ...]:
    """Split a relative path into its parts; raise `PathProblem` for one that could lead out."""
    if "\0" in text or "\\" in text:
        raise PathProblem(f"{text!r} is not a path: use forward slashes")
    pure = PurePosixPath(text)
    if pure.is_absolute() or ".." in pure.parts:
        raise PathProblem(f"{text!r} leads out: paths are relative and hold no `..`")
    if not pure.parts:
        raise PathProblem("a path must name something below the folder")
    if any(len(part.encode()) > 255 for part in pure.parts):
        raise PathProblem(f"a part of {text[:40]!r}… is longer than file systems allow")
    return pure.parts


def resolved(root: Path, text: str) -> Path:
    """Give the path of something in the pack.

    Raises:
        PathProblem: it leads out of the pack, passes through a link, or is not there.
    """
    path = root
    for part in relative_parts(text):
        path /= part
        if path.is_symlink():
            raise PathProblem(f"{text!r} passes through a link: name the file itself")
    if not path.exists():
        raise PathProblem(f"there is no {text!r} in the pack")
    return path


def file_in(root: Path, text: str) -> Path:
    """Give the path of a regular file in the pack; raise `PathProblem` where it is not one."""
    path = resolved(root, text)
    if not path.is_file():
        raise PathProblem(f"{text!r} is not a file")
    return path


def folder_in(root: Path, text: str) -> Path:
    """Give the path of a folder of the pack whose content is safe to copy.

    Raises:
        PathProblem: it is not a folder, or holds a link that leads out of it, a device, a socket.
    """
    path = resolved(root, text)
    if not path.is_dir():
        raise PathProblem(f"{text!r} is not a folder")
    for _ in entries(path):
        pass
    return path


def entries(folder: Path) -> Iterator[Entry]:
    """Iterate over the files and links below a folder, sorted; links must stay inside it.

    Raises:
        PathProblem: a link leads out, or something is neither file, folder nor link.
    """
    count = 0
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        names = sorted(os.listdir(folder / prefix), reverse=True)  # noqa: PTH208 — names alone
        for name in reversed(names):
            if name in SKIPPED_NAMES:
                continue
            relative = f"{prefix}{name}"
            path = folder / relative
            found = path.lstat()
            count += 1
            if count > MAX_FILES:
                raise PathProblem(f"{folder.name} holds more than {MAX_FILES} files")
            if stat.S_ISLNK(found.st_mode):
                yield Entry(relative, path, _inner_link(folder, relative), is_executable=False)
            elif stat.S_ISREG(found.st_mode):
                yield Entry(relative, path, None, bool(found.st_mode & stat.S_IXUSR))
            elif stat.S_ISDIR(found.st_mode):
                waiting.append(f"{relative}/")
            else:
                raise PathProblem(f"{relative!r} is neither file, folder nor link")


def _inner_link(folder: Path, relative: str) -> str:
    target = os.readlink(folder / relative)  # noqa: PTH115 — as written, not as a path
    parts: list[str] = list(PurePosixPath(relative).parent.parts)
    if target.startswith("/"):
        raise PathProblem(f"the link {relative!r} leads out: {target!r}")
    for part in PurePosixPath(target).parts:
        if part == "..":
            if not parts:
                raise PathProblem(f"the link {relative!r} leads out: {target!r}")
            parts.pop()
        else:
            parts.append(part)
            # A link through a link could climb from a place that only looks like inside.
            if (
                folder.joinpath(*parts).is_symlink()
                and folder.joinpath(*parts) != folder / relative
            ):
                raise PathProblem(f"the link {relative!r} passes through another link")
    return target


def overlaps(one: Path, other: Path) -> bool:
    """True where one path is the other or lies below it."""
    return one == other or one in other.parents or other in one.parents


def read_collected(path: Path, *, max_bytes: int) -> bytes | None:
    """Read a collected file that an agent wrote; None where it is not a regular file or too big.

    Links are not followed: the agent chose where they point.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size > max_bytes:
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(max_bytes)
