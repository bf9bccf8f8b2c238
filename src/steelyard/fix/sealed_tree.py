"""A sealed tree's files on the disk, from which trials are made.

They are laid out once from store.git, each content checked, and from then on only looked at: a
trial sees them as the lower layer of an overlay, or a copy of them. Their modes are those of the
tree, since programs of a trial write beside and over them (in a layer of their own); what keeps
them as they are is that no trial can reach them, and what proves it is a manifest of their status
before and after each one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import orjson

from steelyard.config.errors import Fault
from steelyard.fix.manifest import (
    Entry,
    Found,
    Mode,
    OpenTree,
    TreeManifest,
    entry_of,
    list_tree,
)
from steelyard.fix.store_git import Store, write_files

Stat = tuple[int, ...]
_MANIFEST: Final = "manifest.json"
_STATUS: Final = "status.json"
_FILES: Final = "tree"
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SealedTreeChanged(Fault):
    """Somebody wrote into a sealed tree."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(
            f"a sealed tree is not what it was: {', '.join(paths[:10])}",
            remedy="measure the candidate again: `steelyard fix run` lays the tree out anew",
        )


@dataclass(frozen=True)
class SealedTree:
    """The files of one tree."""

    tree_id: str
    manifest: TreeManifest
    folder: Path
    """Its files and nothing else."""
    status: Mapping[str, Stat]
    """Of every file and folder when it was laid out."""

    @cached_property
    def _by_folder(self) -> Mapping[str, Sequence[tuple[str, str, Stat]]]:
        """Give, for each folder, what is in it: name, path, status. A long path costs each look."""
        grouped: dict[str, list[tuple[str, str, Stat]]] = {}
        for path, status in self.status.items():
            folder, _, name = path.rpartition("/")
            grouped.setdefault(folder, []).append((name, path, status))
        return grouped

    def check(self) -> None:
        """Compare each file's and folder's status with what it was. Blocking, ~3 µs a file.

        A file that was added changes its folder's times.

        Raises:
            SealedTreeChanged: something differs.
        """
        differing: list[str] = []
        for folder, entries in self._by_folder.items():
            try:
                fd = os.open(f"{self.folder}/{folder}", _FOLDER_FLAGS)
            except OSError:
                differing += [path for _, path, _ in entries]
                continue
            try:
                differing += [path for name, path, was in entries if _status(name, fd) != was]
            finally:
                os.close(fd)
        if differing:
            raise SealedTreeChanged(differing)


def lay_out(
    store: Store, tree_id: str, manifest: TreeManifest, base: Path, *, owner: int | None
) -> SealedTree:
    """Lay a tree's files out below `base`, or find them there. Blocking.

    Args:
        store: holds the contents.
        tree_id: names the tree.
        manifest: what is in it.
        base: a folder for sealed trees.
        owner: user and group of the files, where trials run as another user than this process.

    Raises:
        StoreDamaged: a content is missing or differs.
        SealedTreeChanged: it is there, and is not what it was.
    """
    contents = partial(store.contents, manifest.entries)
    return _laid_out(tree_id, manifest, contents, base, owner)


def lay_out_files(
    files: Mapping[str, tuple[Path, bool]], base: Path, *, owner: int | None
) -> SealedTree:
    """Lay frozen files out as a tree of their own: overlays and inputs. Blocking.

    Args:
        files: for each path within the tree, the file with its content, and whether it can be run.
        base: a folder for such trees; the same contents are laid out once.
        owner: as in `lay_out`.
    """
    entries = {}
    for path, (source, is_executable) in files.items():
        status = source.stat()
        mode = Mode.EXECUTABLE if is_executable else Mode.REGULAR
        found = Found(path, mode, (0, 0, status.st_size), 1)
        with source.open("rb") as file:
            entries[path] = entry_of(found, iter(partial(file.read, 1024 * 1024), b""))
    manifest = TreeManifest.of(entries.values())

    def contents() -> Iterator[tuple[Entry, bytes]]:
        for entry in manifest.entries:
            yield entry, files[entry.path][0].read_bytes()

    return _laid_out(f"files-{manifest.digest[:40]}", manifest, contents, base, owner)


def _laid_out(
    tree_id: str,
    manifest: TreeManifest,
    contents: Callable[[], Iterator[tuple[Entry, bytes]]],
    base: Path,
    owner: int | None,
) -> SealedTree:
    # Who owns the files is part of what is laid out: trials may come to run as somebody else.
    place = base / (tree_id if owner is None else f"{tree_id}-{owner}")
    if (place / _STATUS).exists():
        return _found(place, tree_id, manifest)
    base.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f"{tree_id[:12]}-", dir=base))
    try:
        making.chmod(0o755)
        write_files(making / _FILES, contents(), owner=owner)
        (making / _MANIFEST).write_bytes(manifest.as_bytes())
        (making / _STATUS).write_bytes(orjson.dumps(_all_status(making / _FILES)))
        with suppress(OSError):  # somebody else was faster
            making.rename(place)
    finally:
        if making.exists():
            shutil.rmtree(making)
    return _found(place, tree_id, manifest)


def _found(place: Path, tree_id: str, manifest: TreeManifest) -> SealedTree:
    status = {
        path: tuple(was) for path, was in orjson.loads((place / _STATUS).read_bytes()).items()
    }
    tree = SealedTree(tree_id, manifest, place / _FILES, status)
    try:
        tree.check()
    except SealedTreeChanged:
        # Moved or copied with its checkout, perhaps: then the contents are the same.
        if _digested(tree.folder).digest != manifest.digest:
            raise
        status = _all_status(tree.folder)
        (place / _STATUS).write_bytes(orjson.dumps(status))
        return SealedTree(tree_id, manifest, tree.folder, status)
    return tree


def remove(base: Path, tree_id: str) -> None:
    """Remove a tree's files; store.git can lay them out again."""
    for place in (base / tree_id, *base.glob(f"{tree_id}-*")):
        shutil.rmtree(place, ignore_errors=True)


def _digested(folder: Path) -> TreeManifest:
    with OpenTree(folder) as tree:
        entries: list[Entry] = [entry_of(found, tree.read(found)) for found in _files(tree)]
    return TreeManifest.of(entries)


def _files(tree: OpenTree) -> Iterator[Found]:
    yield from list_tree(tree.fd).files


def _all_status(folder: Path) -> dict[str, Stat]:
    found = {".": _status(f"{folder}/.")}
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = f"{top}/{name}"
            found[os.path.relpath(path, folder)] = _status(path)
    return found


def _status(path: str, folder: int | None = None) -> Stat:
    try:
        status = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return ()
    # The time of the last change of status moves with content, modes and owner, and nobody sets it.
    return (status.st_ino, status.st_size, status.st_ctime_ns)
