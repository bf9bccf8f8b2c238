"""A fresh, complete tree for one trial: the sealed one, overlays and inputs, and no `.git`.

By an overlay over the read-only layers where the runner mounts one, else by reflinks, else by a
copy; never by hard links, through which one trial would write into all of them. What a program did
to it is known afterwards: of an overlay by its upper layer, of a copy by status and digest.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from steelyard.config.errors import Fault
from steelyard.environments.tree_copy import remove_tree
from steelyard.fix.manifest import (
    EditedMeanwhile,
    Entry,
    Found,
    Mode,
    OpenTree,
    entry_of,
    list_tree,
)
from steelyard.fix.sealed_tree import SealedTree, SealedTreeChanged

_FICLONE: Final = 0x40049409
_CHUNK_BYTES: Final = 1024 * 1024
_WORKERS: Final = 2
_PREFIX: Final = "trial-"
_TRIAL: Final = "whose"
_OPAQUE: Final = ("trusted.overlay.opaque", "user.overlay.opaque")


class TreeMethod(StrEnum):
    """How a trial's tree is made."""

    OVERLAY = "overlay"
    REFLINK = "reflink"
    COPY = "copy"


class NoTree(Fault):
    """A trial's tree could not be made."""


@dataclass(eq=False)
class TrialTree:
    """The folder of one trial. Made by `make_tree`, removed by `remove`."""

    folder: Path
    method: TreeMethod
    layers: tuple[SealedTree, ...]
    """The lowest first; a file of a later one takes the place of an earlier one's."""
    owner: int | None
    _status: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Of a copy's files when they were made."""

    @property
    def top(self) -> Path:
        """Where programs find its files; for an overlay, once it is mounted there."""
        return self.folder / "tree"

    @property
    def upper(self) -> Path:
        """What programs wrote, for an overlay."""
        return self.folder / "upper"

    @property
    def written(self) -> tuple[Path, ...]:
        """The folders that grow while programs run."""
        own = self.upper if self.method is TreeMethod.OVERLAY else self.top
        return (own, self.home, self.tmp, self.result)

    @property
    def home(self) -> Path:
        """The trial's own HOME."""
        return self.folder / "home"

    @property
    def tmp(self) -> Path:
        """Its own temporary folder."""
        return self.folder / "tmp"

    @property
    def result(self) -> Path:
        """Where the benchmark writes its result; no other program of the trial sees it."""
        return self.folder / "result"

    @property
    def kit(self) -> Path:
        """What we bring along; read-only."""
        return self.folder / "kit"

    def mount_options(self, *, in_user_namespace: bool) -> str:
        """Give the options of the overlay's mount."""
        lower = ":".join(str(layer.folder) for layer in reversed(self.layers))
        words = [f"lowerdir={lower}", f"upperdir={self.upper}", f"workdir={self.folder / 'work'}"]
        words += ["index=off", "metacopy=off"]
        words.append("userxattr" if in_user_namespace else "redirect_dir=off")
        return ",".join(words)

    def entry(self, path: str) -> Entry | None:
        """Give what a path was when the tree was made."""
        for layer in reversed(self.layers):
            if found := layer.manifest.by_path.get(path):
                return found
        return None

    def check_layers(self) -> None:
        """Look at the status of every file below. Blocking.

        Raises:
            SealedTreeChanged: one is not what it was.
        """
        for layer in self.layers:
            layer.check()

    def changed(self) -> dict[str, str]:
        """Say how files differ from when the tree was made: `added`, `modified`, `removed`.

        Blocking; no process of the trial may be left.
        """
        if self.method is TreeMethod.OVERLAY:
            return self._changed_above()
        return self._changed_copy()

    def _changed_above(self) -> dict[str, str]:
        found: dict[str, str] = {}
        with OpenTree(self.upper) as tree:
            listing = list_tree(tree.fd)
            for one in listing.files:
                self._compare(found, one, tree)
            for path, _ in listing.refused:  # whiteouts, and devices that nobody could make
                for name in self._names_below(path):
                    found[name] = "removed"
                found.setdefault(path, "added")
        for folder in self._opaque_folders():
            for name in self._names_below(folder):
                if not os.path.lexists(self.upper / name):
                    found[name] = "removed"
        return found

    def _opaque_folders(self) -> Iterator[str]:
        for top, folders, _ in os.walk(self.upper):
            for name in folders:
                path = os.path.join(top, name)  # noqa: PTH118 — `os.walk` gives texts
                for attribute in _OPAQUE:
                    with suppress(OSError):
                        if os.getxattr(path, attribute, follow_symlinks=False) == b"y":
                            yield os.path.relpath(path, self.upper)

    def _names_below(self, path: str) -> list[str]:
        names = [name for layer in self.layers for name in layer.manifest.by_path]
        return [name for name in names if name == path or name.startswith(path + "/")]

    def _changed_copy(self) -> dict[str, str]:
        found: dict[str, str] = {}
        seen: set[str] = set()
        with OpenTree(self.top) as tree:
            listing = list_tree(tree.fd)
            for one in listing.files:
                seen.add(one.path)
                if one.status[1:] != self._status.get(one.path):
                    self._compare(found, one, tree)
            for path, _ in listing.refused:
                found[path] = "modified" if self.entry(path) else "added"
                seen.add(path)
        found |= dict.fromkeys(self._status.keys() - seen, "removed")
        return found

    def _compare(self, found: dict[str, str], one: Found, tree: OpenTree) -> None:
        was = self.entry(one.path)
        if was is None:
            found[one.path] = "added"
            for name in self._names_below(one.path):  # a file in a folder's place
                found[name] = "removed"
            return
        try:
            is_same = was.size == one.status[2] and entry_of(one, tree.read(one)) == was
        except EditedMeanwhile:
            is_same = False
        if not is_same:
            found[one.path] = "modified"

    def remove(self) -> None:
        """Remove the trial's folder and all that is in it. Blocking."""
        remove_tree(self.folder)


def trial_of(folder: Path) -> str | None:
    """Say whose folder it is; None where it is no trial's."""
    try:
        return (folder / _TRIAL).read_text(encoding="utf-8")
    except OSError:
        return None


def make_tree(
    base: Path, trial: str, layers: Sequence[SealedTree], method: TreeMethod, *, owner: int | None
) -> TrialTree:
    """Make a trial's folder. Blocking.

    Its name says nothing: programs of the trial can read it in their table of mounts.

    Args:
        base: where trials are.
        trial: whose it is; read again by `trial_of`.
        layers: the lowest first.
        method: what the runner can do; reflinks fall to copies where the disk has none.
        owner: user and group of what programs write to; None for this process's own.

    Raises:
        SealedTreeChanged: a layer is not what it was.
        NoTree: the disk takes no more, or the folder cannot be made.
    """
    folder = base / f"{_PREFIX}{secrets.token_hex(8)}"
    tree = TrialTree(folder, method, tuple(layers), owner)
    try:
        folder.mkdir(mode=0o711)
        (folder / _TRIAL).write_text(trial, encoding="utf-8")
        (folder / _TRIAL).chmod(0o600)
        folder.chmod(0o711)
        names = ["home", "tmp", "result", "tree"]
        if method is TreeMethod.OVERLAY:
            names += ["upper", "work"]
        for name in names:
            (folder / name).mkdir()
            (folder / name).chmod(0o755)
            if owner is not None:
                os.chown(folder / name, owner, owner)
        tree.kit.mkdir()
        tree.kit.chmod(0o755)
        tree.check_layers()
        if method is not TreeMethod.OVERLAY:
            _fill(tree)
            if method is TreeMethod.REFLINK:
                tree.check_layers()  # no content was looked at
    except OSError as error:
        with suppress(OSError):
            tree.remove()
        raise NoTree(f"the trial's tree cannot be made: {error}") from error
    except BaseException:
        with suppress(OSError):
            tree.remove()
        raise
    return tree


def _fill(tree: TrialTree) -> None:
    wanted: dict[str, tuple[str, Entry]] = {}
    for layer in tree.layers:
        base = str(layer.folder)
        wanted |= {one.path: (f"{base}/{one.path}", one) for one in layer.manifest.entries}
    for parent in sorted({os.path.dirname(path) for path in wanted} - {""}):  # noqa: PTH120
        _make_folders(tree, parent)
    jobs = list(wanted.values())
    size = max(1, -(-len(jobs) // (_WORKERS * 4)))
    parts = [jobs[at : at + size] for at in range(0, len(jobs), size)]
    with ThreadPoolExecutor(_WORKERS) as pool:
        for made in pool.map(lambda part: _copy_part(tree, part), parts):
            tree._status.update(made)


def _make_folders(tree: TrialTree, path: str) -> None:
    folder = tree.top / path
    if folder.is_dir():
        return
    parent = path.rpartition("/")[0]
    if parent:
        _make_folders(tree, parent)
    folder.mkdir()
    folder.chmod(0o755)
    if tree.owner is not None:
        os.chown(folder, tree.owner, tree.owner)


def _copy_part(tree: TrialTree, part: Sequence[tuple[str, Entry]]) -> dict[str, tuple[int, ...]]:
    top = str(tree.top)
    copy: Callable[[int, int, Entry], None] = _copy_content
    if tree.method is TreeMethod.REFLINK:
        copy = _clone
    made: dict[str, tuple[int, ...]] = {}
    for source, entry in part:
        target = f"{top}/{entry.path}"
        if entry.mode is Mode.LINK:
            os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211 — 5,000 times a trial
            if tree.owner is not None:
                os.chown(target, tree.owner, tree.owner, follow_symlinks=False)
            status = os.stat(target, follow_symlinks=False)  # noqa: PTH116
        else:
            status = _copy_file(source, target, entry, tree.owner, copy)
        made[entry.path] = _short(status)
    return made


def _copy_file(
    source: str,
    target: str,
    entry: Entry,
    owner: int | None,
    copy: Callable[[int, int, Entry], None],
) -> os.stat_result:
    read = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        write = os.open(target, flags, 0o600)
        try:
            copy(read, write, entry)
            if owner is not None:
                os.fchown(write, owner, owner)
            os.fchmod(write, 0o755 if entry.mode is Mode.EXECUTABLE else 0o644)
            return os.fstat(write)
        finally:
            os.close(write)
    finally:
        os.close(read)


def _copy_content(read: int, write: int, entry: Entry) -> None:
    digest = hashlib.sha256()
    while chunk := os.read(read, _CHUNK_BYTES):
        digest.update(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(write, rest) :]
    if digest.hexdigest() != entry.sha256:
        raise SealedTreeChanged([entry.path])


def _clone(read: int, write: int, entry: Entry) -> None:
    if entry.size:
        fcntl.ioctl(write, _FICLONE, read)


def has_reflinks(base: Path) -> bool:
    """Try whether files of a folder can share their blocks until one is written. Blocking."""
    names = [base / f".reflink-{os.getpid()}-{side}" for side in ("a", "b")]
    try:
        names[0].write_bytes(b"x" * 4096)
        with names[0].open("rb") as read, names[1].open("wb") as write:
            fcntl.ioctl(write.fileno(), _FICLONE, read.fileno())
    except OSError:
        return False
    else:
        return True
    finally:
        for name in names:
            name.unlink(missing_ok=True)


def _short(status: os.stat_result) -> tuple[int, ...]:
    """Give the part of a listing's status that says nothing of the device."""
    return (
        status.st_ino,
        status.st_size,
        stat.S_IFMT(status.st_mode) | stat.S_IMODE(status.st_mode),
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
