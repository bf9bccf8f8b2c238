"""Look at the user's checkout: is it one that candidates can be made of? Never written to.

Not a reference, not the index, not a time stamp: Git is asked with its locks off, and what is asked
runs no hook and no filter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from steelyard.config.errors import BadInput, Fault
from steelyard.fix.git import GitFailed, Repository, git
from steelyard.fix.manifest import leads_out
from steelyard.fix.sealing import STATE_FOLDERS

_SHOWN: Final = 10
_LFS: Final = b"version https://git-lfs.github.com/spec/v1\n"
_LFS_BYTES: Final = range(100, 1025)
_PRIVATE: Final = re.compile(
    r"(^|/)(\.env(\.(?!example|sample|template|dist)[^/]+)?|id_(rsa|dsa|ecdsa|ed25519)|[^/]+\.(pem|key|p12|pfx|jks)"
    r"|\.netrc|\.npmrc|\.pypirc|credentials(\.json)?|service[-_]account[^/]*\.json)$"
)


class CheckoutRefused(BadInput):
    """A checkout that candidates cannot be made of."""


class NotACheckout(CheckoutRefused):
    """No Git at all, or not the top of a checkout."""


class BareCheckout(CheckoutRefused):
    """A repository without files."""


class NoCommit(CheckoutRefused):
    """Nothing has been committed yet."""


class UncleanCheckout(CheckoutRefused):
    """Files differ from the commit; untracked ones count."""


class SparseCheckout(CheckoutRefused):
    """Only a part of the commit's files is there."""


class HoldsSubmodules(CheckoutRefused):
    """The commit names other repositories."""


class HoldsLfsPointers(CheckoutRefused):
    """The commit names contents that are kept elsewhere."""


class HoldsUnfitLinks(CheckoutRefused):
    """The commit holds links that lead out of the tree."""


class UnknownObjectFormat(CheckoutRefused):
    """Objects are not named by SHA-1."""


class IncompleteRepository(Fault):
    """Objects of the commit are not here: a partial clone, or a damaged one."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A clean checkout with a commit."""

    root: Path
    repository: Repository
    commit: str
    tree: str
    branch: str | None
    """None where none is checked out."""
    common_dir: Path
    """Where its references are; another checkout's, for a worktree of that."""
    is_shallow: bool
    is_linked: bool
    """True for a worktree of another checkout."""
    private_files: tuple[str, ...]
    """Tracked files that look like keys: told at the start, and never sent elsewhere."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed, and a user should know."""
        said = []
        if self.is_shallow:
            said.append(
                "the clone is shallow: measuring and selecting work; before publishing, "
                "`git fetch --unshallow` if the destination asks for the history"
            )
        if self.private_files:
            shown = _listed(self.private_files)
            said.append(f"tracked files look like secrets, and every candidate has them: {shown}")
        return tuple(said)


def read_checkout(folder: Path) -> Checkout:
    """Look at a checkout. Blocking.

    Raises:
        GitMissing: there is no Git.
        CheckoutRefused: its subclasses say why, and what to do.
    """
    root = folder.resolve()
    git_dir, common_dir = _found(root)
    repository = Repository(git_dir, root)
    commit = _commit(repository)
    tree = git(["rev-parse", "--verify", f"{commit}^{{tree}}"], repository).decode().strip()
    _check_whole(repository, root)
    _check_clean(repository)
    files = _tracked(repository, tree)
    return Checkout(
        root,
        repository,
        commit,
        tree,
        _branch(repository),
        common_dir,
        (common_dir / "shallow").exists(),
        git_dir != common_dir,
        tuple(path for path in files if _PRIVATE.search(path)),
    )


def _found(root: Path) -> tuple[Path, Path]:
    words = ["rev-parse", "--is-bare-repository", "--absolute-git-dir", "--git-common-dir"]
    words.append("--show-object-format")
    try:
        said = git(words, cwd=root).decode("utf-8", "surrogateescape").splitlines()
    except GitFailed as error:
        if "not a git repository" not in error.said:
            raise
        raise NotACheckout(
            f"{root} is not a Git checkout",
            remedy="`steelyard init --setup-git` makes it one after showing you the files: one "
            "local commit, no remote, nothing published",
        ) from error
    if said[0] == "true":
        raise BareCheckout(
            f"{root} is a bare repository: it has no files to measure",
            remedy="clone it (`git clone REPOSITORY CHECKOUT`) and use the clone",
        )
    if said[3] != "sha1":
        raise UnknownObjectFormat(
            f"{root} names its objects by {said[3]}; fix works on SHA-1 repositories",
            remedy="measure a clone that was converted with `git fast-export | git fast-import`",
        )
    git_dir = Path(said[1])
    top = git(["rev-parse", "--show-toplevel"], cwd=root).decode("utf-8", "surrogateescape")
    if not top.strip() or Path(top.rstrip("\n")).resolve() != root:
        raise NotACheckout(
            f"{root} is not the top of its checkout",
            remedy=f"use --workspace {top.strip()}" if top.strip() else "use the checkout's top",
        )
    return git_dir, (root / said[2]).resolve()


def _commit(repository: Repository) -> str:
    try:
        said = git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], repository)
    except GitFailed as error:
        raise NoCommit(
            "the checkout has no commit yet: there is no baseline to compare with",
            remedy="commit what should be measured, or let `steelyard init --setup-git` do it "
            "after showing you the files",
        ) from error
    return said.decode().strip()


def _branch(repository: Repository) -> str | None:
    try:
        return git(["symbolic-ref", "--quiet", "--short", "HEAD"], repository).decode().strip()
    except GitFailed:
        return None


def _check_whole(repository: Repository, root: Path) -> None:
    listed = git(["ls-files", "-v", "-z"], repository).split(b"\0")[:-1]
    skipped = [os.fsdecode(row[2:]) for row in listed if row[:1] in b"Ss"]
    if skipped:
        raise SparseCheckout(
            f"the checkout is sparse: {len(skipped)} files of its commit are not there "
            f"({_listed(skipped)})",
            remedy=f"git -C {root} sparse-checkout disable",
        )


def _check_clean(repository: Repository) -> None:
    words = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]
    rows = git([*words, "--ignore-submodules=none"], repository).split(b"\0")[:-1]
    changed = [
        (row[:2].decode("ascii", "replace"), os.fsdecode(row[3:]))
        for row in rows
        if PurePosixPath(os.fsdecode(row[3:])).parts[0] not in STATE_FOLDERS
    ]
    changed += [("M ", path) for path in _hidden_changes(repository)]
    if changed:
        untracked = [path for state, path in changed if state == "??"]
        edited = [path for state, path in changed if state != "??"]
        said = []
        if edited:
            said.append(f"changed: {_listed(edited)}")
        if untracked:
            said.append(f"not tracked: {_listed(untracked)}")
        raise UncleanCheckout(
            f"the checkout is not clean ({'; '.join(said)})",
            remedy="commit, stash or ignore them: what is measured must be a commit; their owner "
            "decides, nothing is touched here",
        )


def _hidden_changes(repository: Repository) -> list[str]:
    """Find changes that `git update-index --assume-unchanged` hides from `git status`."""
    listed = git(["ls-files", "-v", "-z"], repository).split(b"\0")[:-1]
    hidden = [os.fsdecode(row[2:]) for row in listed if row[:1].islower()]
    changed = []
    root = repository.work_tree or Path()
    for path in hidden:
        blob = git(["rev-parse", f":{path}"], repository).decode().strip()
        try:
            mine = git(["hash-object", "--no-filters", "--", str(root / path)], repository)
        except GitFailed:
            changed.append(path)
            continue
        if mine.decode().strip() != blob:
            changed.append(path)
    return changed


def _tracked(repository: Repository, tree: str) -> list[str]:
    try:
        listed = git(["ls-tree", "-r", "-z", "-l", "--full-tree", tree], repository)
    except GitFailed as error:
        raise IncompleteRepository(
            f"the commit's files cannot be listed: {error.said}",
            remedy="`git fsck` says what is missing; a partial clone needs `git fetch --refetch`",
        ) from error
    files, submodules, links, small = [], [], [], []
    for row in listed.split(b"\0")[:-1]:
        head, _, name = row.partition(b"\t")
        mode, kind, blob, size = head.decode().split()
        path = os.fsdecode(name)
        files.append(path)
        if kind == "commit":
            submodules.append(path)
        elif mode == "120000":
            links.append((path, blob))
        elif int(size) in _LFS_BYTES:
            small.append((path, blob))
    if submodules:
        raise HoldsSubmodules(
            f"the commit has submodules, which cannot be sealed: {_listed(submodules)}",
            remedy="vendor what is needed of them into the repository, or measure in a branch "
            "without them",
        )
    pointers = [path for path, content in _contents(repository, small) if content[:43] == _LFS]
    if pointers:
        raise HoldsLfsPointers(
            f"the commit has Git LFS pointers in place of contents: {_listed(pointers)}",
            remedy="give such files as `inputs` of the spec, or commit their contents "
            "(`git lfs migrate export`)",
        )
    out = [
        path
        for path, content in _contents(repository, links)
        if leads_out(path, os.fsdecode(content))
    ]
    if out:
        raise HoldsUnfitLinks(
            f"the commit has links that lead out of the tree: {_listed(out)}",
            remedy="commit the file in place of the link, or give it as one of the `inputs`",
        )
    return files


def _contents(repository: Repository, files: Sequence[tuple[str, str]]) -> list[tuple[str, bytes]]:
    """Read some small contents."""
    if not files:
        return []
    asked = "".join(f"{blob}\n" for _, blob in files).encode()
    answered = git(["cat-file", "--batch", "--buffer"], repository, stdin=asked)
    found = []
    at = 0
    for path, _ in files:
        end = answered.index(b"\n", at)
        size = int(answered[at:end].split()[2])
        found.append((path, answered[end + 1 : end + 1 + size]))
        at = end + 1 + size + 1
    return found


def _listed(paths: Sequence[str]) -> str:
    more = len(paths) - _SHOWN
    return ", ".join(paths[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
