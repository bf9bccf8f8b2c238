"""Copy trees between open folders, and remove trees, whatever a program put into them.

Nothing is followed; devices, sockets and FIFOs are left out; holes stay holes; depth and count
are bounded when copying, and cost nothing but time when removing.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Final

MAX_DEPTH: Final = 100
MAX_ENTRIES: Final = 500_000
_CHUNK_BYTES: Final = 1024 * 1024

KeepLink = Callable[[PurePosixPath, str], bool]


class TargetFailed(OSError):
    """The disk that is copied to fails: what lies there must not be taken for what was wanted.

    Unlike a source that cannot be read, that is never the doing of what filled the source.
    """


DISK_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


class TreeTooLarge(ValueError):
    """A tree deeper or with more entries than is ever copied."""


@contextmanager
def open_regular(
    folder: int | None, name: str, path: str, *, follow: bool = False
) -> Iterator[FileIO]:
    """Open a regular file for reading; never waits on a FIFO, never touches a device.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is something else than a regular file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        # A device's own open can have effects: look before.
        status = os.stat(name, dir_fd=folder, follow_symlinks=follow)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path}: not a regular file")
        fd = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    with os.fdopen(fd, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(f"{path}: not a regular file")
        yield file


def copy_file(
    source: int, folder: int, name: str, mode: int, ids: tuple[int, int] | None = None
) -> None:
    """Copy an open file to `name` in an open folder, replacing what is there; holes stay holes.

    Raises:
        TargetFailed: the disk takes no more; nothing is left under that name.
        OSError: the source cannot be read, or no file can have that name.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with writing_target():
        _clear(folder, name)
        target = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        _copy_content(source, target, mode, ids)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(target)


@contextmanager
def writing_target() -> Iterator[None]:
    """Tell the failures of the disk that is written to from all others."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise TargetFailed(error.errno, error.strerror) from error
        raise


def _copy_content(source: int, target: int, mode: int, ids: tuple[int, int] | None) -> None:
    size = os.fstat(source).st_size
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            end = os.lseek(source, at, os.SEEK_HOLE)
        except OSError:  # no data up to the end, or a file system without holes
            if os.fstat(source).st_blocks == 0:
                break
            end = size
        at = _copy_range(source, target, at, min(end, size))
    with writing_target():
        os.ftruncate(target, size)
        if ids is not None:
            os.fchown(target, *ids)
        os.fchmod(target, stat.S_IMODE(mode) & 0o777)


def _copy_range(source: int, target: int, at: int, end: int) -> int:
    while at < end:
        chunk = os.pread(source, min(_CHUNK_BYTES, end - at), at)
        if not chunk:  # it shrank under us
            return end
        with writing_target():
            rest = memoryview(chunk)
            while len(rest):  # a disk that is nearly full takes less than it is given
                count = os.pwrite(target, rest, at)
                rest, at = rest[count:], at + count
    return at


def copy_tree(
    source: int, target: int, *, keep_link: KeepLink, ids: tuple[int, int] | None = None
) -> None:
    """Copy the content of one open folder into another, over what is there.

    What stands in the way gives way, a folder in a file's place too: an agent must not be able to
    keep hidden tests out by taking their names. Only a folder in a folder's place is kept.

    Args:
        source: descriptor of a folder that can be listed.
        target: descriptor of a folder.
        keep_link: says, for a link's place and target, whether it is copied.
        ids: user and group that own the copies; None for this process's own.

    Raises:
        TreeTooLarge: deeper than `MAX_DEPTH` or more than `MAX_ENTRIES`.
    """
    counted = [0]
    _copy_level(source, target, PurePosixPath(), keep_link, ids, counted)


def _copy_level(
    source: int,
    target: int,
    place: PurePosixPath,
    keep_link: KeepLink,
    ids: tuple[int, int] | None,
    counted: list[int],
) -> None:
    if len(place.parts) > MAX_DEPTH:
        raise TreeTooLarge(f"deeper than {MAX_DEPTH} folders")
    with os.scandir(source) as entries:
        for entry in entries:
            counted[0] += 1
            if counted[0] > MAX_ENTRIES:
                raise TreeTooLarge(f"more than {MAX_ENTRIES} files")
            name = entry.name
            here = place / name
            if entry.is_symlink():
                link = os.readlink(name, dir_fd=source)
                if keep_link(here, link):
                    _make_link(link, target, name, ids)
            elif entry.is_dir(follow_symlinks=False):
                below = os.open(
                    name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source
                )
                try:
                    copied = _make_folder(target, name, ids)
                    try:
                        _copy_level(below, copied, here, keep_link, ids, counted)
                        os.fchmod(copied, stat.S_IMODE(os.fstat(below).st_mode) & 0o777)
                    finally:
                        os.close(copied)
                finally:
                    os.close(below)
            elif entry.is_file(follow_symlinks=False):
                with open_regular(source, name, str(here)) as file:
                    mode = os.fstat(file.fileno()).st_mode
                    copy_file(file.fileno(), target, name, mode, ids)


def _make_link(link: str, folder: int, name: str, ids: tuple[int, int] | None) -> None:
    _clear(folder, name)
    os.symlink(link, name, dir_fd=folder)
    if ids is not None:
        os.chown(name, *ids, dir_fd=folder, follow_symlinks=False)


def _make_folder(parent: int, name: str, ids: tuple[int, int] | None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
            os.mkdir(name, 0o700, dir_fd=parent)
    if ids is not None:
        os.chown(name, *ids, dir_fd=parent, follow_symlinks=False)
    try:
        made = os.open(name, flags, dir_fd=parent)
    except PermissionError:  # its modes shut out its owner
        os.chmod(name, 0o700, dir_fd=parent)
        made = os.open(name, flags, dir_fd=parent)
    os.fchmod(made, 0o700)  # until its content is there
    return made


def _clear(folder: int, name: str) -> None:
    """Remove what has a name, whatever it is."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        remove_tree(Path(f"/proc/self/fd/{folder}/{name}"))


def used_bytes(folders: list[Path], *, enough_bytes: int, enough_entries: int) -> int:
    """Measure what trees take on disk; stops counting where it is clear that it is too much.

    A tree with more than `enough_entries` entries counts as `enough_bytes`: counting it would
    cost more than it is worth.
    """
    total = 0
    count = 0
    ahead = [os.fspath(folder) for folder in folders]
    while ahead and total < enough_bytes:
        try:
            entries = os.scandir(ahead.pop())
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # built so that nobody can look
                return enough_bytes
            continue
        with entries:
            for entry in entries:
                count += 1
                if count > enough_entries:
                    return enough_bytes
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append(entry.path)
    return total


def remove_tree(path: Path) -> None:
    """Remove a folder and all that is in it, at any depth and whatever its modes.

    No process may still be writing there. Folders found below are moved to the top, so that no
    path grows with the depth that a program built.

    Raises:
        OSError: something cannot be removed.
    """
    try:
        path.chmod(0o700)
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        serial = 0
        unused = secrets.token_hex(8)  # a name that no program could have taken
        while True:
            folders = _unlink_files(top)
            if not folders:
                break
            for name in folders:
                _open_up(top, name)
                below = os.open(
                    name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top
                )
                try:
                    for deeper in _unlink_files(below):
                        _open_up(below, deeper)
                        serial += 1
                        os.rename(deeper, f"{unused}.{serial}", src_dir_fd=below, dst_dir_fd=top)
                finally:
                    os.close(below)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    path.rmdir()


def _open_up(parent: int, name: str) -> None:
    """Let its owner enter a folder, never what a link that took its place points to."""
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)  # noqa: PTH101 — a descriptor, not a path
    finally:
        os.close(fd)


def _unlink_files(folder: int) -> list[str]:
    """Unlink all but folders, in an open folder; the folders' names."""
    folders = []
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        if is_folder:
            folders.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return folders
