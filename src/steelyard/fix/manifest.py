"""What is in a tree: path, mode, size and digests of every file, read by descriptors.

No link is followed and no device opened, whatever a candidate put there. What cannot be part of a
tree (devices, links that lead out, names that clash) is gathered, all of it at once.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

import orjson

MAX_DEPTH: Final = 100
MAX_FILES: Final = 200_000
MAX_FILE_BYTES: Final = 2 * 1024**3
_CHUNK_BYTES: Final = 1024 * 1024
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GIT_NAMES: Final = frozenset({".git", "git~1"})


class Mode(StrEnum):
    """What a file is; the values are Git's."""

    REGULAR = "100644"
    EXECUTABLE = "100755"
    LINK = "120000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree."""

    path: str
    """From the tree's top, with `/`."""
    mode: Mode
    size: int
    """In bytes; of a link, of what it says."""
    sha256: str
    blob: str
    """The name of its content in Git: SHA-1 of the content and a header."""


@dataclass(frozen=True)
class TreeManifest:
    """All files of a tree, in the order of their paths' bytes."""

    entries: tuple[Entry, ...]

    @cached_property
    def by_path(self) -> Mapping[str, Entry]:
        """Entries by path."""
        return {entry.path: entry for entry in self.entries}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over paths, modes, sizes and contents' digests."""
        hasher = hashlib.sha256()
        for entry in self.entries:
            line = f"{entry.mode}\0{entry.size}\0{entry.sha256}\0{entry.path}\0"
            hasher.update(line.encode())
        return hasher.hexdigest()

    def as_bytes(self) -> bytes:
        """Write it down."""
        rows = [[one.path, one.mode, one.size, one.sha256, one.blob] for one in self.entries]
        return orjson.dumps({"schema": "tree-manifest/1", "digest": self.digest, "entries": rows})

    @classmethod
    def from_bytes(cls, data: bytes) -> TreeManifest:
        """Read what `as_bytes` wrote.

        Raises:
            ValueError: it is none, or has been changed.
        """
        document = orjson.loads(data)
        if not isinstance(document, dict) or document.get("schema") != "tree-manifest/1":
            raise ValueError("not a tree-manifest/1")
        rows = document["entries"]
        made = cls(tuple(Entry(p, Mode(m), size, sha, blob) for p, m, size, sha, blob in rows))
        if made.digest != document["digest"]:
            raise ValueError("a tree manifest that is not what it was when it was written")
        return made

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> TreeManifest:
        """Put entries in order."""
        return cls(tuple(sorted(entries, key=lambda entry: entry.path.encode())))


@dataclass(frozen=True, slots=True)
class Found:
    """What stands under a path, before anything is known of its content."""

    path: str
    mode: Mode
    status: tuple[int, ...]
    """Device, inode, size, times of content and of status: another one is another file."""
    links: int


@dataclass(frozen=True, slots=True)
class Listing:
    """A walk through a tree."""

    files: tuple[Found, ...]
    refused: tuple[tuple[str, str], ...]
    """Paths that cannot be part of a tree, with the reason."""


def status_of(status: os.stat_result) -> tuple[int, ...]:
    """Give what tells an untouched file from a touched one."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mode,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def list_tree(
    top: int, *, leave: Callable[[str, bool], bool] = lambda _path, _folder: False
) -> Listing:
    """Walk a tree; reads no file. Blocking.

    Args:
        top: descriptor of its folder.
        leave: told a path and whether it is a folder; what it answers True to is left out.
    """
    files: list[Found] = []
    refused: list[tuple[str, str]] = []
    for path, entry, parent in _walk(top, "", 0, leave, refused):
        try:
            status = os.stat(entry, dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            refused.append((path, f"cannot be looked at: {error.strerror}"))
            continue
        kind = _kind(status)
        if kind is None:
            refused.append((path, f"{_named(status.st_mode)}: only files and links can be sealed"))
        elif status.st_size > MAX_FILE_BYTES:
            refused.append((path, f"larger than {MAX_FILE_BYTES // 1024**3} GiB"))
        else:
            files.append(Found(path, kind, status_of(status), status.st_nlink))
        if len(files) > MAX_FILES:
            refused.append((path, f"more than {MAX_FILES} files"))
            break
    files.sort(key=lambda found: found.path.encode())
    return Listing(tuple(files), tuple(refused))


def _walk(
    folder: int,
    prefix: str,
    depth: int,
    leave: Callable[[str, bool], bool],
    refused: list[tuple[str, str]],
) -> Iterator[tuple[str, str, int]]:
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        path = prefix + name
        if not prefix and name == ".git":
            continue
        if leave(path, is_folder):
            continue
        if reason := _unfit_name(name):
            refused.append((ascii(path)[1:-1], reason))
            continue
        if not is_folder:
            yield path, name, folder
            continue
        if depth >= MAX_DEPTH:
            refused.append((path, f"deeper than {MAX_DEPTH} folders"))
            continue
        try:
            below = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
        except OSError as error:
            refused.append((path, f"cannot be entered: {error.strerror}"))
            continue
        try:
            yield from _walk(below, path + "/", depth + 1, leave, refused)
        finally:
            os.close(below)


def _unfit_name(name: str) -> str | None:
    if name.casefold() in _GIT_NAMES:
        return "a repository inside the tree (a submodule): cannot be sealed"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "a name that is not UTF-8"
    if any(unicodedata.category(char) in ("Cc", "Cf") for char in name):
        return "a name with characters that cannot be seen"
    return None


def _kind(status: os.stat_result) -> Mode | None:
    if stat.S_ISLNK(status.st_mode):
        return Mode.LINK
    if not stat.S_ISREG(status.st_mode):
        return None
    return Mode.EXECUTABLE if status.st_mode & stat.S_IXUSR else Mode.REGULAR


def _named(mode: int) -> str:
    kinds = {
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "neither file nor link")


def clashes(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Find paths that some file systems would take for one: by case or by Unicode's forms.

    Folders count: `A/x` and `a/y` share a folder elsewhere.
    """
    found: list[tuple[str, str]] = []
    seen: dict[str, str] = {}
    for path in paths:
        end = 0
        while end >= 0:
            end = path.find("/", end + 1)
            part = path if end < 0 else path[:end]
            first = seen.setdefault(_folded(part), part)
            if first != part:
                found.append((path, f"{part!r} and {first!r} are one name on some systems"))
                break
    return found


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", path).casefold())


def leads_out(path: str, target: str) -> bool:
    """True where a link at `path` points out of the tree, or to an absolute path."""
    if target.startswith("/") or not target:
        return True
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    parts = joined.split("/")
    return parts[0] == ".." or any(part.casefold() in _GIT_NAMES for part in parts)


def entry_of(found: Found, content: Iterable[bytes]) -> Entry:
    """Digest a file's content."""
    digest = hashlib.sha256()
    size = found.status[2]
    blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    read = 0
    for chunk in content:
        digest.update(chunk)
        blob.update(chunk)
        read += len(chunk)
    if read != size:
        raise EditedMeanwhile(found.path)
    return Entry(found.path, found.mode, size, digest.hexdigest(), blob.hexdigest())


class EditedMeanwhile(Exception):
    """A file that changed while it was read; the argument is its path."""


class OpenTree:
    """A tree held by a descriptor; folders below are opened as they are asked for, none by path."""

    def __init__(self, folder: Path) -> None:
        """Open it.

        Raises:
            OSError: there is none, or a link stands there.
        """
        self.fd = os.open(folder, _FOLDER_FLAGS)
        self._parent = ""
        self._parent_fd = -1

    def __enter__(self) -> OpenTree:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave_parent()
        os.close(self.fd)

    def _leave_parent(self) -> None:
        if self._parent_fd >= 0:
            os.close(self._parent_fd)
            self._parent_fd = -1
        self._parent = ""

    def parent_of(self, path: str) -> tuple[int, str]:
        """Open the folder a file stands in, link by link refused; the descriptor stays ours.

        Raises:
            OSError: a folder is gone, or a link took its place.
        """
        parent, _, name = path.rpartition("/")
        if not parent:
            return self.fd, name
        if parent != self._parent:
            self._leave_parent()
            fd = os.dup(self.fd)
            for part in parent.split("/"):
                try:
                    below = os.open(part, _FOLDER_FLAGS, dir_fd=fd)
                finally:
                    os.close(fd)
                fd = below
            self._parent, self._parent_fd = parent, fd
        return self._parent_fd, name

    def read(self, found: Found) -> Iterator[bytes]:
        """Read a file in chunks, or what a link says.

        Raises:
            EditedMeanwhile: it is not the file that was listed, before or after it was read.
        """
        try:
            folder, name = self.parent_of(found.path)
            if found.mode is Mode.LINK:
                text = os.readlink(name, dir_fd=folder)
                if status_of(os.stat(name, dir_fd=folder, follow_symlinks=False)) != found.status:
                    raise EditedMeanwhile(found.path)
                yield os.fsencode(text)
                return
            fd = os.open(name, _FILE_FLAGS, dir_fd=folder)
        except OSError as error:
            raise EditedMeanwhile(found.path) from error
        try:
            if status_of(os.fstat(fd)) != found.status:
                raise EditedMeanwhile(found.path)
            while chunk := os.read(fd, _CHUNK_BYTES):
                yield chunk
            if status_of(os.fstat(fd)) != found.status:
                raise EditedMeanwhile(found.path)
        finally:
            os.close(fd)


def read_manifest(
    folder: Path, *, leave: Callable[[str, bool], bool] = lambda _path, _folder: False
) -> TreeManifest:
    """Read a tree whole, of which nothing is expected; what cannot be sealed is left out. Blocking.

    Raises:
        EditedMeanwhile: a file changed while it was read.
        OSError: the folder cannot be read.
    """
    with OpenTree(folder) as tree:
        listing = list_tree(tree.fd, leave=leave)
        return TreeManifest.of(entry_of(found, tree.read(found)) for found in listing.files)
