"""Copy wanted files out of open folders that a model's program filled.

Nothing is followed; links, devices, sockets and FIFOs are left out and counted; count, bytes,
depth and what is looked at are bounded. The copies lie at the same paths below a target.
"""

from __future__ import annotations

import os
import stat
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.environments.tree_copy import (
    MAX_DEPTH,
    MAX_ENTRIES,
    TargetFailed,
    copy_file,
    open_regular,
    writing_target,
)

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT_BYTES: Final = bytes(range(0x20, 0x7F)).replace(b"%", b"")


class Collecting:
    """One collection: takes what is wanted until a bound is met."""

    def __init__(self, wanted: ArtifactSpec, target: Path) -> None:
        """Begin; `target` is a folder of this machine that only we write to."""
        self._wanted = wanted
        self._target = target
        self._looked_at = 0
        self._taken: set[tuple[str, ...]] = set()
        self.found = Collected()

    def take_file(self, folder: int, name: str, parts: tuple[str, ...]) -> None:
        """Take one file of an open folder; `parts` say where it lies in the session."""
        wanted, found = self._wanted, self.found
        if parts in self._taken or wanted.leaves_out(parts):
            return
        if found.files >= wanted.max_files:
            found.leave_out(f"more than {wanted.max_files} files")
            return
        shown = "/".join(parts)
        try:
            with open_regular(folder, name, shown) as file:
                status = os.fstat(file.fileno())
                if found.bytes + status.st_size > wanted.max_bytes:
                    found.leave_out(f"above {wanted.max_bytes} bytes in all")
                    return
                self._copy(file.fileno(), parts)
        except TargetFailed:
            raise  # what is missing now would be taken for what the agent did not write
        except (FileNotFoundError, FileExistsError, ValueError, OSError) as error:
            found.leave_out(_reason(error))
            return
        self._taken.add(parts)
        found.files += 1
        found.bytes += status.st_size

    def take_tree(self, folder: int, parts: tuple[str, ...], *, by_pattern: bool) -> None:
        """Take what is wanted of an open folder, those below it too."""
        if len(parts) > MAX_DEPTH:
            self.found.leave_out("too deep")
            return
        with os.scandir(folder) as entries:
            # One more than is ever looked at, so that it is said: a folder may hold millions.
            some = islice(entries, MAX_ENTRIES + 1 - self._looked_at)
            listed = sorted((entry.name, _kind(entry)) for entry in some)
        for name, kind in listed:
            self._looked_at += 1
            if self._looked_at > MAX_ENTRIES:
                self.found.leave_out(f"behind {MAX_ENTRIES} entries")
                return
            here = (*parts, name)
            if self._wanted.leaves_out(here):
                continue
            if kind == "folder":
                self._enter(folder, name, here, by_pattern=by_pattern)
            elif by_pattern and not self._wanted.matches(here):
                continue
            elif kind == "file":
                self.take_file(folder, name, here)
            else:
                self.found.leave_out(kind)

    def _enter(self, folder: int, name: str, here: tuple[str, ...], *, by_pattern: bool) -> None:
        try:
            below = os.open(name, _FOLDER, dir_fd=folder)
        except OSError as error:
            self.found.leave_out(_reason(error))
            return
        try:
            self.take_tree(below, here, by_pattern=by_pattern)
        finally:
            os.close(below)

    def _copy(self, source: int, parts: tuple[str, ...]) -> None:
        safe = [safe_name(part) for part in parts]
        folder = self._target.joinpath(*safe[:-1])
        with writing_target():
            folder.mkdir(parents=True, exist_ok=True)
        target = os.open(folder, _FOLDER)
        try:
            if safe[-1] != parts[-1] and os.path.lexists(folder / safe[-1]):
                raise FileExistsError("another file has its readable name")
            copy_file(source, target, safe[-1], 0o600 | os.fstat(source).st_mode & 0o111)
        finally:
            os.close(target)


def safe_name(name: str) -> str:
    """Give a name that is UTF-8: in one that is not, what is not plain stands as `%XX`."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return quote_from_bytes(os.fsencode(name), safe=_KEPT_BYTES)
    return name


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    if entry.is_file(follow_symlinks=False):
        return "file"
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return "unreadable"
    return "FIFO" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "gone while it was taken"
    if isinstance(error, FileExistsError):
        return "a name that another file has already"
    if isinstance(error, OSError):
        return error.strerror or "unreadable"
    return "not a regular file that can be read"
