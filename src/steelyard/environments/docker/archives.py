"""Tar streams, both ways, with bounded memory; what comes out is never trusted.

Written: entries of one folder, a block at a time. Read: names that lead out, devices, FIFOs and
sockets are left out; links are made last, and only those that stay inside, so that nothing is ever
written through one. Zeros become holes. Blocking: called in threads.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.environments.files import Owner, stays_inside
from steelyard.environments.tree_copy import MAX_DEPTH, MAX_ENTRIES

BLOCK_BYTES: Final = 1024 * 1024
_TAR_BLOCK: Final = 512
_PART_BYTES: Final = 256 * 1024
_ZEROS: Final = bytes(_PART_BYTES)
_END: Final = bytes(2 * _TAR_BLOCK)


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


def first_file(archive: Bytes) -> bytes:
    """Give the content of the one file of an archive.

    Raises:
        ValueError: its first entry is no regular file.
    """
    with _opened(archive) as tar:
        header = tar.next()
        if header is None or not header.isreg() or header.sparse is not None:
            raise ValueError("not a regular file")
        return archive.read(header.size)


def unpack(archive: Bytes, target: Path) -> None:
    """Copy an archive's one file or folder to a new path.

    Raises:
        ValueError: it is neither, or too deep or too large.
        OSError: it cannot be written.
    """
    links: list[tuple[Path, PurePosixPath, str]] = []
    entries = 0
    with _opened(archive) as tar:
        for parts, header in _members(tar):
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
            elif header.isreg():
                _write(archive, header, path)
    if not entries or not os.path.lexists(target):
        raise ValueError("neither a regular file nor a folder")
    for path, _, linked in links:
        path.symlink_to(linked)


def collect(
    archive: Bytes, place: tuple[str, ...], wanted: ArtifactSpec, target: Path, found: Collected,
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
        for rest, header in _members(tar):
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
            if not header.isreg():
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
            _write(archive, header, path)
            taken.add(parts)
            found.files += 1
            found.bytes += header.size


def _opened(archive: Bytes) -> tarfile.TarFile:
    return tarfile.open(fileobj=archive, mode="r:")  # type: ignore[call-overload, no-any-return]


def _members(tar: tarfile.TarFile) -> Iterator[tuple[tuple[str, ...], tarfile.TarInfo]]:
    """Give each entry with its parts below the archive's one root."""
    while (header := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # else every header is kept
        parts = _inner(header.name)
        if parts is not None:
            yield parts, header


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


def _write(archive: Bytes, header: tarfile.TarInfo, path: Path) -> None:
    """Write an entry's content to a new file; blocks of zeros become holes."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    try:
        size, ends_in_hole = 0, False
        for piece in _parts_of(archive.pieces(header.size)):
            size += len(piece)
            ends_in_hole = _is_empty(piece)
            if ends_in_hole:
                os.lseek(fd, len(piece), os.SEEK_CUR)
                continue
            view = piece
            while len(view):
                view = view[os.write(fd, view) :]
        if size < header.size:
            raise tarfile.ReadError("unexpected end of data")
        if ends_in_hole:
            os.ftruncate(fd, size)
        os.fchmod(fd, header.mode & 0o777)
    finally:
        os.close(fd)


def _parts_of(pieces: Iterator[memoryview]) -> Iterator[memoryview]:
    """Split where a part is empty: a hole need not end where a piece does."""
    for piece in pieces:
        if piece[0] and piece[-1]:  # most data: as it came
            yield piece
            continue
        for start in range(0, len(piece), _PART_BYTES):
            yield piece[start : start + _PART_BYTES]


def _is_empty(piece: memoryview) -> bool:
    # Most data say no at once, without the whole comparison.
    return not (piece[0] or piece[-1]) and bytes(piece) == _ZEROS[: len(piece)]


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


class Bytes:
    """An archive's bytes in order, for `tarfile`: it seeks forward alone, and back by one byte.

    Pieces come from a function, b"" at the end. A file's content goes from them to the disk as it
    is: through `tarfile` it would be copied three times more.
    """

    def __init__(self, next_piece: Callable[[], bytes]) -> None:
        self._next = next_piece
        self._waiting = memoryview(b"")
        self._last = b""
        self._at = 0
        self._goes_back = False

    def read(self, size: int = -1, /) -> bytes:
        """Give `size` bytes, fewer only at the end."""
        parts = []
        if self._goes_back and size:
            parts, size, self._goes_back = [self._last], size - 1, False
            self._at += 1
        parts += [bytes(piece) for piece in self.pieces(size)]
        return b"".join(parts)

    def pieces(self, size: int) -> Iterator[memoryview]:
        """Give `size` bytes in pieces, fewer only at the end."""
        while size > 0:
            if not len(self._waiting):
                self._waiting = memoryview(self._next())
                if not len(self._waiting):
                    return
            piece, self._waiting = self._waiting[:size], self._waiting[size:]
            size -= len(piece)
            self._at += len(piece)
            self._last = bytes(piece[-1:])
            yield piece

    def tell(self) -> int:
        """Give the place in the archive."""
        return self._at

    def seek(self, place: int, whence: int = os.SEEK_SET, /) -> int:
        """Go forward, or back by one.

        Raises:
            OSError: further back.
        """
        if whence != os.SEEK_SET or place < self._at - 1:
            raise OSError("an archive that comes in order cannot be read again")
        if place == self._at - 1:
            self._goes_back, self._at = True, place
        for _ in self.pieces(place - self._at if not self._goes_back else 0):
            pass
        return place
