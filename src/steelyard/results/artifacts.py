"""What an attempt leaves beside its record as files: counted, digested, copied to another run.

What lies there was an agent's: links are never followed, nothing but regular files and folders is
read. A digest of a tree covers names, kinds, modes and content, so that a tree is whole or not
used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from steelyard.results.files import NO_FAULTS, Faults, StorageFailed, WritePoint, make_folders

_CHUNK_BYTES: Final = 1024 * 1024
MAX_DIGESTED_BYTES: Final = 8 * 1024 * 1024 * 1024
"""Above this, holes counted, what scoring takes is not kept for a later score."""
_MAX_DEPTH: Final = 110
_MOST_SYNCED: Final = 32
_FICLONE: Final = 0x40049409
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

HasSecret = Callable[[bytes], bool]


class TreeDamaged(Exception):
    """A kept file or folder is not what was written; says which and why in one line."""


HIDDEN_NAMES: Final = "hidden-names"
"""The folder of artifacts whose own names held a secret."""


@dataclass(frozen=True, slots=True)
class TreeDigest:
    """A kept file or folder as a whole."""

    sha256: str
    files: int
    bytes: int
    has_secret: bool = False


@contextmanager
def collecting(folder: Path, point: WritePoint, faults: Faults = NO_FAULTS) -> Iterator[None]:
    """Make a folder of an attempt, into which a session then copies.

    Raises:
        StorageFailed: it cannot be made.
    """
    make_folders(folder, faults)
    faults.before(point)
    yield
    faults.after(point)


def digest_tree(
    path: Path, has_secret: HasSecret | None = None, *, most_bytes: int = MAX_DIGESTED_BYTES
) -> TreeDigest:
    """Digest a file or folder. Blocking.

    Args:
        path: the file or folder.
        has_secret: looks at every piece of content.
        most_bytes: what has more is damaged, found out before it is read.

    Raises:
        TreeDamaged: it is missing, cannot be read, or holds something that is no file.
    """
    return _Walk(path, None, has_secret, most_bytes).run()


def sync_tree(path: Path, files: int) -> None:
    """Wait until a kept file or folder is on the disk, where it is of a few files. Blocking.

    Of many it would hold up scoring for minutes: a loss of power may tear those, which their digest
    tells.

    Args:
        path: the file or folder, written by us.
        files: how many it holds.

    Raises:
        StorageFailed: the disk did not take it.
    """
    if files > _MOST_SYNCED:
        return
    try:
        for folder, _, names in os.walk(path, followlinks=False):
            for one in (*(Path(folder, name) for name in names), Path(folder)):
                _sync_one(one)
        if not path.is_dir():
            _sync_one(path)
        _sync_one(path.parent)
    except OSError as error:
        raise StorageFailed(path, error) from error


def _sync_one(path: Path) -> None:
    if path.is_symlink():
        return
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def copy_tree_verified(source: Path, target: Path, wanted: TreeDigest) -> None:
    """Copy a kept file or folder to a new place; a copy that is not what was kept goes again.

    Content is shared with the source where the file system can, never the file itself. Blocking.

    Raises:
        TreeDamaged: the source is not what `wanted` says.
        StorageFailed: the target cannot be written.
    """
    copied: TreeDigest | None = None
    try:
        copied = _Walk(source, target, None, wanted.bytes).run()
        if (copied.sha256, copied.files) != (wanted.sha256, wanted.files):
            raise TreeDamaged(f"{source}: its content is not what was kept")
    except TreeDamaged:
        remove_kept(target)
        raise


def remove_kept(path: Path) -> None:
    """Remove a kept file or folder; what cannot be removed stays. Blocking."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            for folder, names, files in os.walk(path, topdown=False, followlinks=False):
                for name in (*files, *names):
                    _remove_one(Path(folder, name))
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def set_aside(root: Path, relative: str, earlier: str, faults: Faults = NO_FAULTS) -> None:
    """Move what an earlier execution left out of the way of the next one. Blocking.

    Raises:
        StorageFailed: it cannot be moved.
    """
    source, target = root / relative, root / earlier
    if not source.is_dir():
        return
    make_folders(target.parent, faults)
    try:
        source.rename(target)
    except OSError as error:
        raise StorageFailed(target, error) from error


def _remove_one(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def hide_names(folder: Path, has_secret: HasSecret) -> int:
    """Move the files whose paths hold a secret to names of ours; give how many. Blocking.

    What redacts a record would else change its paths: the files would not be found again, and on
    the disk the secret would stand.
    """
    hidden = [path for path in sorted(folder.rglob("*")) if _is_named_by(path, folder, has_secret)]
    files = [path for path in hidden if path.is_symlink() or not path.is_dir()]
    if files:
        target = folder / HIDDEN_NAMES
        while target.exists():
            target = target.with_name(f"{target.name}-")
        target.mkdir()
        for number, path in enumerate(files, start=1):
            path.rename(target / str(number))
    for path in reversed(hidden):
        if path not in files:
            path.rmdir()
    return len(files)


def _is_named_by(path: Path, folder: Path, has_secret: HasSecret) -> bool:
    return has_secret(os.fsencode(path.relative_to(folder).as_posix()))


def list_artifacts(
    root: Path, relative: str, has_secret: HasSecret | None = None
) -> list[dict[str, Any]]:
    """List the files below an attempt's `artifacts/` for its record, in the order of their paths.

    A file that holds a secret says `flagged: true`; it is not changed. Blocking.

    Raises:
        TreeDamaged: one cannot be read.
    """
    found = []
    for folder, names, files in os.walk(root / relative, followlinks=False):
        names.sort()
        for name in files:
            path = Path(folder, name)
            digest = digest_tree(path, has_secret)
            one: dict[str, Any] = {
                "path": path.relative_to(root).as_posix(),
                "sha256": digest.sha256,
                "bytes": digest.bytes,
            }
            if digest.has_secret:
                one["flagged"] = True
            found.append(one)
    return sorted(found, key=lambda artifact: str(artifact["path"]))


class _Walk:
    """Reads a tree once: digests it, perhaps looks for secrets, perhaps copies it."""

    def __init__(
        self, source: Path, target: Path | None, has_secret: HasSecret | None, most_bytes: int
    ) -> None:
        self._most_bytes = most_bytes
        self._source = source
        self._target = target
        self._has_secret = has_secret
        self._hash = hashlib.sha256()
        self._files = 0
        self._bytes = 0
        self._is_flagged = False

    def run(self) -> TreeDigest:
        try:
            status = self._source.lstat()
            if stat.S_ISREG(status.st_mode):
                self._files = 1
                with self._opened(None, os.fspath(self._source)) as fd:
                    digest = self._read(fd, self._target)
                return TreeDigest(digest, 1, self._bytes, self._is_flagged)
            fd = os.open(self._source, _FOLDER)
        except OSError as error:
            raise TreeDamaged(f"{self._source}: {error.strerror or error}") from error
        try:
            self._made(self._target)
            self._folder(fd, "", self._target, 0)
        except OSError as error:
            raise TreeDamaged(f"{self._source}: {error.strerror or error}") from error
        finally:
            os.close(fd)
        return TreeDigest(self._hash.hexdigest(), self._files, self._bytes, self._is_flagged)

    def _folder(self, folder: int, place: str, target: Path | None, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise TreeDamaged(f"{self._source}: deeper than {_MAX_DEPTH} folders")
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        for entry in listed:
            name = f"{place}/{entry.name}"
            there = None if target is None else target / entry.name
            mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode) & 0o777
            if entry.is_symlink():
                link = os.readlink(entry.name, dir_fd=folder)
                if not _stays_inside(depth, link):
                    raise TreeDamaged(f"{self._source}{name}: a link that leads out")
                self._note("link", 0, name, os.fsencode(link).hex())
                if there is not None:
                    self._put(partial(there.symlink_to, link), there)
            elif entry.is_dir(follow_symlinks=False):
                self._note("folder", mode, name, "")
                below = os.open(entry.name, _FOLDER, dir_fd=folder)
                try:
                    self._made(there)
                    self._folder(below, name, there, depth + 1)
                finally:
                    os.close(below)
                if there is not None:
                    self._put(partial(there.chmod, mode | 0o700), there)
            elif entry.is_file(follow_symlinks=False):
                with self._opened(folder, entry.name) as fd:
                    digest = self._read(fd, there)
                self._files += 1
                self._note("file", mode, name, digest)
            else:
                raise TreeDamaged(f"{self._source}{name}: neither a file nor a folder")

    def _note(self, kind: str, mode: int, name: str, digest: str) -> None:
        # A copied folder is always open to its owner: its mode would not come out the same.
        shown = mode | 0o700 if kind == "folder" else mode
        self._hash.update(f"{kind} {shown:o} {digest} {os.fsencode(name).hex()}\n".encode())

    @contextmanager
    def _opened(self, folder: int | None, name: str) -> Iterator[int]:
        fd = os.open(name, _FILE, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise TreeDamaged(f"{self._source}: {name} is no regular file")
            yield fd
        finally:
            os.close(fd)

    def _read(self, fd: int, target: Path | None) -> str:
        """Read a file in pieces: its digest; written to `target` where given."""
        digest, tail = hashlib.sha256(), b""
        self._require_bytes(os.fstat(fd).st_size)  # holes take time, too
        out = None if target is None else self._created(target)
        try:
            is_shared = out is not None and _cloned(fd, out)
            while chunk := os.read(fd, _CHUNK_BYTES):
                digest.update(chunk)
                self._require_bytes(len(chunk))  # it may grow while it is read
                self._bytes += len(chunk)
                if out is not None and not is_shared:
                    self._written(out, chunk, target)
                if self._has_secret is not None and not self._is_flagged:
                    self._is_flagged = self._has_secret(tail + chunk)
                    tail = chunk[-_TAIL_BYTES:]
            if out is not None:
                os.fchmod(out, stat.S_IMODE(os.fstat(fd).st_mode) & 0o777)
        finally:
            if out is not None:
                os.close(out)
        return digest.hexdigest()

    def _require_bytes(self, more: int) -> None:
        if self._bytes + more > self._most_bytes:
            raise TreeDamaged(f"{self._source}: it has more than {self._most_bytes} bytes")

    def _created(self, target: Path) -> int:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(target, flags, 0o600)
        except OSError as error:
            raise StorageFailed(target, error) from error

    def _written(self, out: int, chunk: bytes, target: Path | None) -> None:
        rest = memoryview(chunk)
        while len(rest):
            try:
                rest = rest[os.write(out, rest) :]
            except OSError as error:
                raise StorageFailed(target or self._source, error) from error

    def _made(self, target: Path | None) -> None:
        if target is not None:
            self._put(partial(target.mkdir, 0o700), target)

    @staticmethod
    def _put(write: Callable[[], Any], target: Path) -> None:
        try:
            write()
        except OSError as error:
            raise StorageFailed(target, error) from error


_TAIL_BYTES: Final = 16 * 1024
"""Secrets are looked for across the borders of pieces, up to this length."""


def _stays_inside(depth: int, link: str) -> bool:
    """True where a link in a folder `depth` below the tree's top leads nowhere above that."""
    if link.startswith("/"):
        return False
    for part in link.split("/"):
        if part not in ("", "."):
            depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def _cloned(source: int, target: int) -> bool:
    """Share a file's content with a copy of it, where the file system can."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True
