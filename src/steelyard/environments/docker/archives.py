"""Tar streams, both ways, with bounded memory; what comes out is never trusted.

Written: entries of one folder, a block at a time. Read: names that lead out, devices, FIFOs and
sockets are left out; links are made last, and only those that stay inside, so that nothing is ever
written through one. Zeros become holes. Blocking: called in threads.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, Protocol

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.environments.files import Owner, stays_inside
from steelyard.environments.tree_copy import MAX_DEPTH, MAX_ENTRIES

BLOCK_BYTES: Final = 1024 * 1024
_TAR_BLOCK: Final = 512
_HOLE_BYTES: Final = 64 * 1024
_ZEROS: Final = bytes(BLOCK_BYTES)
_END: Final = bytes(2 * _TAR_BLOCK)


class Reader(Protocol):
    """Gives an archive's bytes in order."""

    def read(self, size: int, /) -> bytes:
        """Give `size` bytes, fewer only at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder to be written into a container."""

    name: str
    mode: int
    data: bytes | None = None
    """None: a folder."""


def packed_entries(entries: list[Entry], owner: Owner) -> bytes:
    """Give a whole archive of small entries."""
    parts = []
    for entry in entries:
        header = _header(entry.name, entry.mode, owner)
        if entry.data is None:
            header.type = tarfile.DIRTYPE
            parts.append(_encoded(header))
            continue
        header.size = len(entry.data)
        parts += [_encoded(header), entry.data, _padding(len(entry.data))]
    return b"".join([*parts, _END])


def packed_tree(source: Path, owner: Owner, *, name: str | None = None) -> Iterator[bytes]:
    """Give an archive of a folder's content, or of one file under a name, in blocks.

    Links are kept as they are, files may not be more than they were when looked at; devices,
    FIFOs and sockets are left out.
    """
    return _in_blocks(_pieces(source, owner, name))


def _pieces(source: Path, owner: Owner, name: str | None) -> Iterator[bytes]:
    if name is not None:
        yield from _file(source, name, source.stat(), owner)
    else:
        yield from _folder(source, "", owner)
    yield _END


def _folder(folder: Path, prefix: str, owner: Owner) -> Iterator[bytes]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{prefix}{entry.name}"
        status = entry.stat(follow_symlinks=False)
        header = _header(name, status.st_mode, owner)
        if stat.S_ISDIR(status.st_mode):
            header.type = tarfile.DIRTYPE
            yield _encoded(header)
            yield from _folder(Path(entry.path), f"{name}/", owner)
        elif stat.S_ISLNK(status.st_mode):
            header.type, header.linkname = tarfile.SYMTYPE, str(Path(entry.path).readlink())
            yield _encoded(header)
        elif stat.S_ISREG(status.st_mode):
            yield from _file(Path(entry.path), name, status, owner)


def _file(path: Path, name: str, status: os.stat_result, owner: Owner) -> Iterator[bytes]:
    header = _header(name, status.st_mode, owner)
    header.size, header.mtime = status.st_size, int(status.st_mtime)
    yield _encoded(header)
    left = status.st_size
    with path.open("rb", buffering=0) as file:
        while left:
            data = file.read(min(left, BLOCK_BYTES))
            if not data:  # it became shorter: the archive must not
                data = bytes(min(left, BLOCK_BYTES))
            left -= len(data)
            yield data
    yield _padding(status.st_size)


def _header(name: str, mode: int, owner: Owner) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.mode, header.uid, header.gid = stat.S_IMODE(mode) & 0o777, owner.uid, owner.gid
    return header


def _encoded(header: tarfile.TarInfo) -> bytes:
    return header.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % _TAR_BLOCK)


def _in_blocks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Join small pieces; large ones pass as they are."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting) if len(waiting) > 1 else waiting[0]
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def first_file(archive: Reader) -> bytes:
    """Give the content of the one file of an archive.

    Raises:
        ValueError: its first entry is no regular file.
    """
    with _opened(archive) as tar:
        header = tar.next()
        file = None if header is None or not header.isreg() else tar.extractfile(header)
        if file is None:
            raise ValueError("not a regular file")
        return file.read()


def unpack(archive: Reader, target: Path) -> None:
    """Copy an archive's one file or folder to a new path.

    Raises:
        ValueError: it is neither, or too deep or too large.
        OSError: it cannot be written.
    """
    links: list[tuple[Path, PurePosixPath, str]] = []
    entries = 0
    with _opened(archive) as tar:
        for parts, header, file in _members(tar):
            entries += 1
            _check_bounds(parts, entries)
            path = target.joinpath(*parts)
            if header.isdir():
                path.mkdir(mode=0o700, exist_ok=True)
                path.chmod(header.mode & 0o777 | 0o700)
            elif header.issym():
                if stays_inside(PurePosixPath(*parts), header.linkname):
                    links.append((path, PurePosixPath(*parts), header.linkname))
            elif header.islnk():
                _link_again(target, _inner(header.linkname), path)
            elif file is not None:
                _write(file, path, header.mode)
    if not entries or not os.path.lexists(target):
        raise ValueError("neither a regular file nor a folder")
    for path, _, linked in links:
        path.symlink_to(linked)


def collect(
    archive: Reader, place: tuple[str, ...], wanted: ArtifactSpec, target: Path, found: Collected,
    *, taken: set[tuple[str, ...]], by_pattern: bool,
) -> None:  # fmt: skip
    """Copy the wanted files of an archive below `target`, counted in `found`.

    Args:
        archive: of a file, or a folder.
        place: where it lies in the session, relative to the working folder.
        wanted: names, patterns and bounds.
        target: an existing folder of the host.
        found: what was taken so far.
        taken: the paths taken so far.
        by_pattern: only what a pattern names is taken.
    """
    shut: tuple[str, ...] | None = None
    entries = 0
    with _opened(archive) as tar:
        for rest, header, file in _members(tar):
            entries += 1
            parts = place + rest
            _check_bounds(parts, entries)
            if shut is not None and parts[: len(shut)] == shut:
                continue
            if header.isdir():
                shut = parts if parts != place and wanted.leaves_out(parts) else None
                continue
            if by_pattern and not wanted.matches(parts):
                continue
            if parts in taken or wanted.leaves_out(parts):
                continue
            if file is None:
                found.leave_out("link" if header.issym() else "not a regular file")
                continue
            if found.files >= wanted.max_files:
                found.leave_out(f"more than {wanted.max_files} files")
                continue
            if found.bytes + header.size > wanted.max_bytes:
                found.leave_out(f"above {wanted.max_bytes} bytes in all")
                continue
            path = target.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(file, path, header.mode)
            taken.add(parts)
            found.files += 1
            found.bytes += header.size


def _opened(archive: Reader) -> tarfile.TarFile:
    return tarfile.open(fileobj=archive, mode="r|", bufsize=BLOCK_BYTES)  # type: ignore[call-overload, no-any-return]


def _members(
    tar: tarfile.TarFile,
) -> Iterator[tuple[tuple[str, ...], tarfile.TarInfo, IO[bytes] | None]]:
    """Give each entry's parts below the archive's one root, with its content where it is a file."""
    while (header := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # else every header is kept
        parts = _inner(header.name)
        if parts is not None:
            yield parts, header, tar.extractfile(header) if header.isreg() else None


def _inner(name: str) -> tuple[str, ...] | None:
    """Give a name's parts without the first; None where it leads out."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        return None
    return tuple(parts[1:])


def _check_bounds(parts: tuple[str, ...], entries: int) -> None:
    if len(parts) > MAX_DEPTH:
        raise ValueError(f"deeper than {MAX_DEPTH} folders")
    if entries > MAX_ENTRIES:
        raise ValueError(f"more than {MAX_ENTRIES} files")


def _write(file: IO[bytes], path: Path, mode: int) -> None:
    """Write a new file; blocks of zeros become holes."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    try:
        ends_in_hole, size = False, 0
        while data := file.read(BLOCK_BYTES):
            size += len(data)
            ends_in_hole = len(data) >= _HOLE_BYTES and data == _ZEROS[: len(data)]
            if ends_in_hole:
                os.lseek(fd, len(data), os.SEEK_CUR)
                continue
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        if ends_in_hole:
            os.ftruncate(fd, size)
        os.fchmod(fd, mode & 0o777)
    finally:
        os.close(fd)


def _link_again(target: Path, linked: tuple[str, ...] | None, path: Path) -> None:
    """Make the second name of a file that came before; a copy where it cannot be linked."""
    if linked is None:
        return
    first = target.joinpath(*linked)
    try:
        if not stat.S_ISREG(first.lstat().st_mode):
            return
        os.link(first, path, follow_symlinks=False)
    except FileNotFoundError:
        return  # the first name was left out
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EXDEV, errno.EMLINK):
            raise
        shutil.copyfile(first, path, follow_symlinks=False)


class Bytes(io.RawIOBase):
    """An archive's reader over a function that gives the next piece, b"" at the end."""

    def __init__(self, next_piece: Callable[[], bytes]) -> None:
        self._next = next_piece
        self._waiting = b""

    def read(self, size: int = -1, /) -> bytes:
        """Give `size` bytes, fewer only at the end."""
        parts, missing = [], size
        while missing > 0:
            if not self._waiting:
                self._waiting = self._next()
                if not self._waiting:
                    break
            piece, self._waiting = self._waiting[:missing], self._waiting[missing:]
            parts.append(piece)
            missing -= len(piece)
        return parts[0] if len(parts) == 1 else b"".join(parts)
