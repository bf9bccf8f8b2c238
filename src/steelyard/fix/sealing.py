"""Seal a candidate: its worktree's bytes become a tree that never changes again.

The bytes on the disk are what counts, never Git's idea of them: attributes, filters, end-of-line
rules and index flags change nothing. All that keeps a worktree from being sealed is said at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from steelyard.config.errors import BadInput, Fault, Problem, Where
from steelyard.fix.manifest import (
    EditedMeanwhile,
    Entry,
    Found,
    Mode,
    OpenTree,
    TreeManifest,
    clashes,
    entry_of,
    leads_out,
    list_tree,
)
from steelyard.fix.store_git import Store

STATE_FOLDERS: Final = frozenset({".steelyard", ".agentagon"})
_CACHES: Final = ("__pycache__",)


class SealingRefused(BadInput):
    """A worktree that cannot be sealed: every file that stands in the way, with the reason."""


class EditedWhileSealing(Fault):
    """Somebody wrote into the worktree while it was read."""

    def __init__(self, paths: Sequence[str]) -> None:
        shown = ", ".join(paths[:10])
        super().__init__(
            f"the worktree changed while it was sealed: {shown}",
            remedy="end what writes there, then run the candidate again",
        )


@dataclass(frozen=True, slots=True)
class PathRules:
    """Which paths a candidate may change; each names a file, or a folder and all below."""

    editable: tuple[str, ...]
    evaluation: tuple[str, ...]
    placed: tuple[str, ...] = ()
    """Where overlays and inputs are put; no candidate has anything there."""

    def is_editable(self, path: str) -> bool:
        """True where a candidate may change it."""
        return _is_below(path, self.editable)

    def is_protected(self, path: str) -> bool:
        """True where it belongs to the evaluation, or an overlay or input is put there."""
        return _is_below(path, self.evaluation) or _is_below(path, self.placed)

    def problems(self, baseline: TreeManifest) -> list[Problem]:
        """Say what keeps a run from starting with them."""
        found: list[Problem] = []
        for field, paths in (
            ("editable_paths", self.editable),
            ("evaluation_paths", self.evaluation),
            ("overlays, inputs", self.placed),
        ):
            for path in paths:
                if reason := _unfit(path):
                    where = Where(field=field)
                    found.append(Problem(f"{path!r} {reason}", where, "name a path of the tree"))
        found += [
            Problem(
                f"editable {mine!r} and protected {theirs!r} meet",
                Where(field="editable_paths"),
                "a candidate must not be able to change what measures it: name them apart",
            )
            for mine in self.editable
            for theirs in (*self.evaluation, *self.placed)
            if _folded_meet(mine, theirs)
        ]
        names = [entry.path for entry in baseline.entries]
        found += [
            Problem(
                f"{path!r} is not in the commit that is measured",
                Where(field="evaluation_paths"),
                "commit it, or bring it in as an overlay",
            )
            for path in self.evaluation
            if not _unfit(path) and not any(_is_below(name, (path,)) for name in names)
        ]
        return found


def _is_below(path: str, among: Iterable[str]) -> bool:
    return any(path == one or path.startswith(one + "/") or one == "." for one in among)


def _folded_meet(one: str, other: str) -> bool:
    a, b = one.casefold(), other.casefold()
    return _is_below(a, (b,)) or _is_below(b, (a,))


def _unfit(path: str) -> str | None:
    parts = path.split("/")
    if path.startswith("/"):
        return "is absolute"
    if path != "." and any(part in ("", ".", "..") for part in parts):
        return "has empty, `.` or `..` parts"
    if any(part.casefold() == ".git" for part in parts):
        return "leads into .git"
    return None


@dataclass(frozen=True, slots=True)
class Change:
    """How a sealed tree differs from its parent's in one file."""

    path: str
    kind: Literal["added", "modified", "removed"]


@dataclass(frozen=True, slots=True)
class Sealed:
    """What sealing found; the contents are in store.git."""

    tree_id: str
    manifest: TreeManifest
    changes: tuple[Change, ...]
    ignored: tuple[str, ...]
    """Left out of the tree, and left where they are; folders end with `/`."""
    duplicate_of: str | None
    """Whose tree this is already."""


def seal(
    worktree: Path,
    store: Store,
    parent_tree: str,
    parent: TreeManifest,
    rules: PathRules,
    *,
    earlier: Mapping[str, str] | None = None,
) -> Sealed:
    """Seal a candidate's worktree. Blocking; nothing in it is changed.

    Args:
        worktree: the candidate's files.
        store: takes the contents.
        parent_tree: what the candidate began from.
        parent: the same, digested.
        rules: what it may change.
        earlier: whose each tree id is, of the run's other candidates.

    Raises:
        SealingRefused: every file that stands in the way.
        EditedWhileSealing: it changed meanwhile.
    """
    store.put_right()
    leave = _Left(store.ignored(worktree, parent_tree), parent)
    try:
        with OpenTree(worktree) as tree:
            listing = list_tree(tree.fd, leave=leave)
            entries = {found.path: entry_of(found, tree.read(found)) for found in listing.files}
            links = {
                found.path: b"".join(tree.read(found))
                for found in listing.files
                if found.mode is Mode.LINK
            }
            changes = compared(parent, entries)
            problems = _refusals(listing.refused, listing.files, links, changes, rules, parent)
            if problems:
                raise SealingRefused.of(problems)
            known = {entry.blob for entry in parent.entries}
            new = [found for found in listing.files if entries[found.path].blob not in known]
            store.write_blobs(tree, [(found, entries[found.path]) for found in new])
            again = list_tree(tree.fd, leave=_Left(leave.ignored, parent))
            if edited := _differing(listing.files, again.files):
                raise EditedWhileSealing(edited)
    except EditedMeanwhile as error:
        raise EditedWhileSealing([str(error)]) from error
    except FileNotFoundError as error:
        raise EditedWhileSealing([str(error.filename)]) from error
    manifest = TreeManifest.of(entries.values())
    tree_id = store.write_tree(manifest)
    return Sealed(
        tree_id,
        manifest,
        tuple(changes),
        tuple(sorted(leave.seen)),
        (earlier or {}).get(tree_id),
    )


def not_captured(worktree: Path, store: Store, parent: TreeManifest, sealed: Sealed) -> list[str]:
    """List what would be lost with a worktree: files, ignored ones too, and staged contents.

    Empty where the sealed tree holds all of it: then the worktree can be removed. Blocking.
    """
    found: set[str] = set()
    leave = _Left(store.ignored(worktree, sealed.tree_id), sealed.manifest)
    with OpenTree(worktree) as tree:
        listing = list_tree(tree.fd, leave=leave)
        found |= {path for path, _ in listing.refused}
        for one in listing.files:
            if entry_of(one, tree.read(one)) != sealed.manifest.by_path.get(one.path):
                found.add(one.path)
    known = {entry.blob for entry in (*parent.entries, *sealed.manifest.entries)}
    found |= leave.seen
    found |= {path for path, blob in store.staged(worktree).items() if blob not in known}
    return sorted(path for path in found if not set(path.split("/")) & set(_CACHES))


def compared(parent: TreeManifest, entries: Mapping[str, Entry]) -> list[Change]:
    """List how files differ from a parent's, in the order of their paths."""
    before = parent.by_path
    changes = [Change(path, "removed") for path in before.keys() - entries.keys()]
    for path, entry in entries.items():
        if path not in before:
            changes.append(Change(path, "added"))
        elif entry != before[path]:
            changes.append(Change(path, "modified"))
    return sorted(changes, key=lambda change: change.path)


class _Left:
    """Says what is left out of the tree, and remembers it."""

    def __init__(self, ignored: frozenset[str], parent: TreeManifest) -> None:
        self.ignored = ignored
        self.seen: set[str] = set()
        self._own = {
            "/".join(parts[: i + 1])
            for entry in parent.entries
            for parts in [entry.path.split("/")]
            for i in range(len(parts))
        }

    def __call__(self, path: str, is_folder: bool) -> bool:
        if path in self._own:
            return False
        if is_folder and path in STATE_FOLDERS:
            return True
        shown = path + "/" if is_folder else path
        name = path.rpartition("/")[2]
        if shown in self.ignored or (is_folder and name in _CACHES):
            self.seen.add(shown)
            return True
        return False


def _refusals(
    refused: Sequence[tuple[str, str]],
    files: Sequence[Found],
    links: Mapping[str, bytes],
    changes: Sequence[Change],
    rules: PathRules,
    parent: TreeManifest,
) -> list[Problem]:
    found = [Problem(f"{path}: {reason}") for path, reason in refused]
    found += [
        Problem(
            f"{path}: a link to {os.fsdecode(target)!r}, which leads out of the tree",
            remedy="link to a file of the tree by a relative path",
        )
        for path, target in links.items()
        if leads_out(path, os.fsdecode(target))
    ]
    found += [
        Problem(
            f"{one.path}: the file has another name somewhere (a hard link)",
            remedy=f"give it content of its own: cp {one.path} x && mv x {one.path}",
        )
        for one in files
        if one.links > 1 and one.mode is not Mode.LINK
    ]
    before = set(clashes(entry.path for entry in parent.entries))
    found += [
        Problem(f"{path}: {reason}", remedy="rename one of them")
        for path, reason in clashes(one.path for one in files)
        if (path, reason) not in before  # what the baseline has, no candidate can be blamed for
    ]
    for change in changes:
        if change.path == ".gitmodules":
            found.append(Problem(".gitmodules: submodules cannot be sealed"))
        elif rules.is_protected(change.path):
            remedy = "put it back: what measures a candidate is the same for all of them"
            found.append(
                Problem(f"{change.path}: {change.kind}; part of the evaluation", Where(), remedy)
            )
        elif not rules.is_editable(change.path):
            remedy = f"put it back; editable are {_shown(rules.editable)}"
            found.append(
                Problem(f"{change.path}: {change.kind} outside the editable paths", Where(), remedy)
            )
    return found


def _shown(paths: Sequence[str]) -> str:
    return ", ".join(paths) or "none"


def _differing(before: Sequence[Found], after: Sequence[Found]) -> list[str]:
    return sorted({found.path for found in set(before) ^ set(after)})
