"""Reach into a session's folders from outside, without ever being led out of them.

What lies in there was written by a model's program and may change while we look. Every path is
walked component by component from an open descriptor, nothing is followed by the kernel; links
are resolved here, and only inside the session's own folders.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.environment import EnvironmentFault
from steelyard.environments.collecting import Collecting
from steelyard.environments.tree_copy import TargetFailed, copy_file, copy_tree, open_regular

MAX_LINKS: Final = 40
"""Links followed on one path, as in the kernel."""
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom what we write belongs to."""

    uid: int
    gid: int


class Confined:
    """The folders of one session: where they are inside, and where on this machine."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        *,
        workdir: str,
        owner: Owner | None = None,
        are_fixed: bool = False,
    ) -> None:
        """Name the folders.

        Args:
            folders: absolute path inside → folder of this machine.
            workdir: what relative paths start from.
            owner: given what is written; None to leave it with this process.
            are_fixed: True where programs of the session cannot remove the folders themselves:
                one that is gone was taken by something else, and the session with it.
        """
        self._are_fixed = are_fixed
        self._folders = {_parts(inside): host for inside, host in folders.items()}
        self._workdir = workdir
        self._owner = owner

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Write a file, making its folders.

        Raises:
            ValueError: the path leads out, or names something that is not a regular file.
        """
        with self._parent(path, make=True) as (folder, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                fd = os.open(name, flags, 0o600, dir_fd=folder)
            except OSError as error:
                raise ValueError(f"{path}: cannot be written: {error.strerror}") from error
            with os.fdopen(fd, "wb") as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise ValueError(f"{path}: not a regular file")
                file.truncate(0)
                file.write(data)
                self._give(fd, mode)

    def read(self, path: str, max_bytes: int) -> bytes:
        """Read a regular file.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is too large, not a regular file, or the path leads out.
        """
        with self._parent(path) as (folder, name), open_regular(folder, name, path) as file:
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise ValueError(f"{path}: larger than {max_bytes} bytes")
        return data

    def upload(self, source: Path, path: str) -> None:
        """Copy a file, or a folder's content, in.

        Raises:
            FileNotFoundError: there is no such source.
            ValueError: the path leads out.
        """
        status = source.stat()
        if not stat.S_ISDIR(status.st_mode):
            with (
                self._parent(path, make=True) as (folder, name),
                open_regular(None, str(source), str(source), follow=True) as file,
            ):
                copy_file(file.fileno(), folder, name, status.st_mode, self._ids())
            return
        with self._folder(path) as target:
            fd = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                copy_tree(fd, target, keep_link=lambda _place, _target: True, ids=self._ids())
            finally:
                os.close(fd)

    def download(self, path: str, target: Path) -> None:
        """Copy a file or folder out to a new path.

        Raises:
            FileNotFoundError: there is nothing at `path`.
            FileExistsError: there is something at `target`.
            ValueError: the path leads out, or the tree is too deep or too large.
        """
        if os.path.lexists(target):
            raise FileExistsError(f"{target} exists")
        with self._walk(path) as (fds, _):
            found = fds[-1]
            if not stat.S_ISDIR(os.fstat(found).st_mode):
                with self._parent(path) as (folder, name), open_regular(folder, name, path) as file:
                    self._download_file(file.fileno(), target)
                return
            source = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            target.mkdir(mode=0o700)
            mode = stat.S_IMODE(os.fstat(source).st_mode) & 0o777
            fd = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                copy_tree(source, fd, keep_link=stays_inside)
                os.fchmod(fd, mode | 0o700)
            finally:
                os.close(fd)
        finally:
            os.close(source)

    def collect(self, wanted: ArtifactSpec, target: Path) -> Collected:
        """Copy what is wanted below `target`, an existing folder, at the same paths.

        What lies outside the working folder keeps its absolute path, without the first slash.
        What is missing, leads out, or is no regular file is left out and counted.

        Raises:
            TargetFailed: the disk takes no more: what lies there is not all that was wanted.
        """
        collecting = Collecting(wanted, target)
        for path in wanted.paths:
            try:
                self._collect_path(path, collecting)
            except FileNotFoundError:
                continue  # as the agent left it
            except TargetFailed:
                raise
            except (ValueError, OSError):
                collecting.found.leave_out("a path that leads out or cannot be read")
        if wanted.globs:
            with self._folder(".") as folder:
                collecting.take_tree(folder, (), by_pattern=True)
        return collecting.found

    def _collect_path(self, path: str, collecting: Collecting) -> None:
        parts = self._place(path)
        with self._walk(path) as (fds, _):
            found = fds[-1]
            status = os.fstat(found)
            if stat.S_ISDIR(status.st_mode):
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
                source = os.open(f"/proc/self/fd/{found}", flags)
            elif stat.S_ISREG(status.st_mode):
                with self._parent(path) as (folder, name):
                    collecting.take_file(folder, name, parts or (name,))
                return
            else:
                collecting.found.leave_out("not a regular file")
                return
        try:
            collecting.take_tree(source, parts, by_pattern=False)
        finally:
            os.close(source)

    def _place(self, path: str) -> tuple[str, ...]:
        """Give the parts under which a path is kept."""
        parts, workdir = _parts(path), _parts(self._workdir)
        if ".." in parts:
            raise ValueError(f"{path}: leads out")
        if path.startswith("/") and parts[: len(workdir)] == workdir:
            return parts[len(workdir) :]
        return parts

    @staticmethod
    def _download_file(source: int, target: Path) -> None:
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            copy_file(source, folder, target.name, os.fstat(source).st_mode)
        finally:
            os.close(folder)

    def _ids(self) -> tuple[int, int] | None:
        return None if self._owner is None else (self._owner.uid, self._owner.gid)

    def _give(self, fd: int, mode: int) -> None:
        if self._owner is not None:
            os.fchown(fd, self._owner.uid, self._owner.gid)
        os.fchmod(fd, mode & 0o777)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """Open a folder, made where missing."""
        with self._walk(path, make=True) as (fds, _):
            if not stat.S_ISDIR(os.fstat(fds[-1]).st_mode):
                raise ValueError(f"{path}: not a folder")
            fd = os.open(f"/proc/self/fd/{fds[-1]}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder that holds what the path names, links followed; and its name there."""
        with self._walk(path, make=make, leave_last=True) as (fds, name):
            yield fds[-1], name

    @contextmanager
    def _walk(
        self, path: str, *, make: bool = False, leave_last: bool = False
    ) -> Iterator[tuple[list[int], str]]:
        """Walk a path, every link resolved here.

        `done` is the place reached, as parts of an absolute path inside; `fds` are the open
        folders below one of the session's folders, from that folder down to `done`.
        """
        if "\0" in path or not path:
            raise ValueError(f"{path!r}: not a path")
        text = path if path.startswith("/") else f"{self._workdir}/{path}"
        ahead = list(reversed(_parts(text)))
        done: list[str] = []
        fds: list[int] = []
        links = 0
        try:
            while ahead or not fds:
                if not ahead:
                    raise ValueError(f"{path}: outside the session's folders")
                part = ahead.pop()
                if part == "..":
                    if done:
                        done.pop()
                    if fds:
                        os.close(fds.pop())
                    continue
                if not fds:
                    done.append(part)
                    root = self._folders.get(tuple(done))
                    if root is not None:
                        fds.append(self._open_root(root))
                    continue
                if leave_last and not ahead and not self._link(fds[-1], part):
                    yield fds, part
                    return
                if target := self._link(fds[-1], part):
                    links += 1
                    if links > MAX_LINKS:
                        raise ValueError(f"{path}: too many links")
                    ahead += reversed(_parts(target))
                    if target.startswith("/"):
                        done.clear()
                        while fds:
                            os.close(fds.pop())
                    continue
                fds.append(self._open_child(fds[-1], part, path, make, is_last=not ahead))
                done.append(part)
            if leave_last:
                raise ValueError(f"{path}: a folder, not a file")
            yield fds, ""
        finally:
            for fd in fds:
                os.close(fd)

    def _open_root(self, root: Path) -> int:
        try:
            return os.open(root, _DIRECTORY)
        except OSError as error:
            if not self._are_fixed:
                raise
            raise EnvironmentFault(f"the session's folder {root} is gone: {error}") from error

    @staticmethod
    def _link(folder: int, name: str) -> str | None:
        with suppress(OSError):
            return os.readlink(name, dir_fd=folder) or None
        return None

    def _open_child(self, folder: int, name: str, path: str, make: bool, *, is_last: bool) -> int:
        flags = _DIRECTORY if make or not is_last else os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise FileNotFoundError(f"{path}: no such file or folder") from None
        except OSError as error:
            if isinstance(error, NotADirectoryError) and not make:
                raise FileNotFoundError(f"{path}: {name} is not a folder") from error
            raise ValueError(f"{path}: {name}: {error.strerror}") from error
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=folder)
            if self._owner is not None:
                os.chown(
                    name, self._owner.uid, self._owner.gid, dir_fd=folder, follow_symlinks=False
                )
        try:
            return os.open(name, _DIRECTORY, dir_fd=folder)
        except OSError as error:
            raise ValueError(f"{path}: {name}: {error.strerror}") from error


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in ("", "."))


def stays_inside(place: PurePosixPath, target: str) -> bool:
    """True where a link at `place` (relative to the copied folder) stays in that folder."""
    if target.startswith("/"):
        return False
    depth = len(place.parent.parts)
    for part in _parts(target):
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True
