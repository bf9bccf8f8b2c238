"""store.git: the objects and references of a workspace's candidates, and their worktrees.

A bare repository of our own, so that nothing a candidate writes can run in the user's repository
or move a reference of it. It is used as a store of contents alone: files go in with their bytes as
they are on the disk and come out the same; no attribute, filter, hook or end-of-line rule has a
say. Its configuration is a constant: what somebody wrote into it is put back at every open.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from steelyard.config.errors import Fault
from steelyard.fix.git import GitFailed, Repository, git, streaming
from steelyard.fix.manifest import (
    EditedMeanwhile,
    Entry,
    Found,
    Mode,
    OpenTree,
    TreeManifest,
    entry_of,
)

CONFIG: Final = f"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
\tautocrlf = false
\tsymlinks = true
\thooksPath = {os.devnull}
\tfsmonitor = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
REFS: Final = "refs/steelyard/"


class StoreDamaged(Fault):
    """What store.git holds is not what was put into it."""


class Store:
    """One workspace's store.git."""

    def __init__(self, folder: Path) -> None:
        """Open it, or make it. Blocking.

        Raises:
            GitMissing: there is no Git.
            GitFailed: it cannot be made.
        """
        self.folder = folder
        self.repository = Repository(folder)
        if not (folder / "HEAD").exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            git(["init", "--quiet", "--bare", "--template=", str(folder)])
        self.was_meddled_with = self.put_right()
        """True where its configuration was not ours; it is again."""

    def put_right(self) -> bool:
        """Make the configuration ours again, and take away hooks and alternates; True where
        somebody had changed something. A candidate's own Git commands could.
        """
        config = self.folder / "config"
        is_ours = _text_of(config) == CONFIG
        stray = [self.folder / name for name in ("config.worktree", "hooks", "info/attributes")]
        stray += (self.folder / "worktrees").glob("*/config.worktree")
        stray.append(self.folder / "objects" / "info" / "alternates")
        found = [path for path in stray if os.path.lexists(path)]
        for path in found:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        if not is_ours:
            was_new = not any((self.folder / "worktrees").glob("*")) and not found
            _replace(config, CONFIG)
            return not was_new
        return bool(found)

    # Objects

    def take_tree(self, origin: Repository, commit: str) -> str:
        """Copy a commit's tree from another repository, which is only read; the tree's id.

        Raises:
            GitFailed: something of it is missing there (a partial clone).
        """
        tree = git(["rev-parse", "--verify", f"{commit}^{{tree}}"], origin).decode().strip()
        with tempfile.TemporaryFile(dir=self.folder) as pack:
            words = ["pack-objects", "--stdout", "--revs", "--quiet", "--delta-base-offset"]
            git(words, origin, stdin=f"{tree}\n".encode(), stdout=pack)
            pack.seek(0)
            git(["index-pack", "--stdin", "--strict"], self.repository, stdin=pack)
        return tree

    def manifest_of(self, tree: str) -> TreeManifest:
        """Read all of a tree and digest it.

        Raises:
            GitFailed: it is not there.
            StoreDamaged: it holds what no sealed tree holds, such as a submodule.
        """
        rows = []
        listed = git(["ls-tree", "-r", "-z", "-l", "--full-tree", tree], self.repository)
        for row in listed.split(b"\0")[:-1]:
            head, _, name = row.partition(b"\t")
            mode, kind, blob, size = head.decode().split()
            path = os.fsdecode(name)
            if kind != "blob":
                raise StoreDamaged(f"{path}: a {kind} in a tree of ours")
            rows.append((Found(path, Mode(mode), (0, 0, int(size)), 1), blob))
        contents = self._contents([blob for _, blob in rows])
        entries = [
            entry_of(found, [content]) for (found, _), content in zip(rows, contents, strict=True)
        ]
        return TreeManifest.of(entries)

    def contents(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, bytes]]:
        """Read files' contents, in the order of `entries`.

        Raises:
            StoreDamaged: one is not there, or not what it was.
        """
        yield from zip(entries, self._contents([one.blob for one in entries]), strict=True)

    def _contents(self, blobs: Sequence[str]) -> Iterator[bytes]:
        if not blobs:
            return
        asked = "".join(f"{blob}\n" for blob in blobs).encode()
        words = ["cat-file", "--batch", "--buffer"]
        with streaming(words, self.repository, stdin=asked) as answered:
            for blob in blobs:
                head = answered.readline().split()
                if len(head) != 3 or head[1] != b"blob":
                    raise StoreDamaged(f"store.git has lost the content {blob}")
                content = answered.read(int(head[2]))
                answered.read(1)
                yield content

    def write_blobs(self, tree: OpenTree, files: Iterable[tuple[Found, Entry]]) -> None:
        """Put files' bytes in, as they are on the disk now.

        Raises:
            EditedMeanwhile: one is not what it was when it was digested.
            GitFailed: they cannot be written.
        """
        files = list(files)
        if not files:
            return
        with tempfile.TemporaryFile(dir=self.folder) as stream:
            for found, entry in files:
                _write_blob(stream, tree, found, entry)
            stream.write(b"done\n")
            stream.seek(0)
            git(["fast-import", "--quiet", "--done"], self.repository, stdin=stream)

    def write_tree(self, manifest: TreeManifest) -> str:
        """Put a tree in whose contents are all there; its id.

        Raises:
            GitFailed: Git refuses a path, or a content is missing.
        """
        rows = b"".join(
            f"{one.mode} {one.blob} 0\t".encode() + os.fsencode(one.path) + b"\0"
            for one in manifest.entries
        )
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            index = Repository(self.folder, index=Path(folder, "index"))
            git(["update-index", "-z", "--index-info"], index, stdin=rows)
            return git(["write-tree"], index).decode().strip()

    def pin(self, name: str, tree: str) -> str:
        """Keep a tree from garbage collection under a name; the commit that holds it."""
        commit = self.commit_of(tree)
        git(["update-ref", REFS + name, commit], self.repository)
        return commit

    def unpin(self, name: str) -> None:
        """Let a tree go."""
        git(["update-ref", "-d", REFS + name], self.repository)

    def commit_of(self, tree: str) -> str:
        """Make a commit of a tree; the same one each time."""
        made = git(["commit-tree", tree, "-m", "Steelyard: a sealed tree"], self.repository)
        return made.decode().strip()

    # Worktrees

    def add_worktree(self, folder: Path, tree: str, manifest: TreeManifest) -> None:
        """Lay out a tree for somebody to edit; the folder must not be there yet, its parent must.

        Git writes no file of it: its attributes would have a say.

        Raises:
            GitFailed: there is a worktree of that name already.
        """
        self.put_right()
        words = ["worktree", "add", "--quiet", "--detach", "--no-checkout", str(folder)]
        git([*words, self.commit_of(tree)], self.repository)
        write_files(folder, self.contents(manifest.entries))
        git(["read-tree", "HEAD"], self._worktree(folder))

    def _worktree(self, folder: Path) -> Repository:
        return Repository(self.folder / "worktrees" / folder.name, folder)

    def repair_worktree(self, folder: Path) -> None:
        """Set the two absolute paths that Git keeps for a worktree: the checkout may have moved."""
        own = self.folder / "worktrees" / folder.name
        _replace(folder / ".git", f"gitdir: {own}\n")
        _replace(own / "gitdir", f"{folder / '.git'}\n")

    def remove_worktree(self, folder: Path) -> None:
        """Remove a worktree and all that is in it."""
        if folder.is_dir():
            shutil.rmtree(folder)
        own = self.folder / "worktrees" / folder.name
        if own.is_dir():
            shutil.rmtree(own)

    def ignored(self, folder: Path, tree: str) -> frozenset[str]:
        """List what `.gitignore` files leave out of a worktree; folders end with `/`.

        What is part of `tree` is never ignored. Neither filters nor the worktree's own index are
        asked.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            asked = Repository(self.folder, folder, Path(own, "index"))
            git(["read-tree", tree], asked)
            words = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
            listed = git(words, asked, cwd=folder)
        return frozenset(os.fsdecode(path) for path in listed.split(b"\0")[:-1])

    def staged(self, folder: Path) -> dict[str, str]:
        """Give the content's name for each path that a worktree's own index holds."""
        listed = git(["ls-files", "--stage", "-z"], self._worktree(folder), cwd=folder)
        rows = [row.partition(b"\t") for row in listed.split(b"\0")[:-1]]
        return {os.fsdecode(path): head.split()[1].decode() for head, _, path in rows}

    def is_whole(self) -> bool:
        """Ask Git whether all that is pinned is there."""
        try:
            git(["fsck", "--connectivity-only", "--no-dangling"], self.repository)
        except GitFailed:
            return False
        return True


def write_files(
    folder: Path, contents: Iterable[tuple[Entry, bytes]], *, owner: int | None = None
) -> None:
    """Write files into a folder that is ours alone, made where it is not there. Blocking.

    Args:
        folder: nobody else writes there meanwhile.
        contents: what to write; a content that is not what its entry says is a fault.
        owner: user and group the files and folders are given to.

    Raises:
        StoreDamaged: a content differs.
    """
    made: set[str] = set()
    _make_folder(folder, made, owner)
    for entry, content in contents:
        seen = entry_of(Found(entry.path, entry.mode, (0, 0, len(content)), 1), [content])
        if seen != entry:
            raise StoreDamaged(f"{entry.path}: its content is not what was sealed")
        path = folder / entry.path
        _make_folder(path.parent, made, owner)
        if entry.mode is Mode.LINK:
            path.symlink_to(os.fsdecode(content))
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(path, flags, 0o600)
            with os.fdopen(fd, "wb", buffering=0) as file:
                rest = memoryview(content)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fchmod(fd, 0o755 if entry.mode is Mode.EXECUTABLE else 0o644)
        if owner is not None:
            os.chown(path, owner, owner, follow_symlinks=False)


def _make_folder(folder: Path, made: set[str], owner: int | None) -> None:
    if str(folder) in made:
        return
    if not folder.is_dir():
        _make_folder(folder.parent, made, owner)
        folder.mkdir()
        folder.chmod(0o755)
        if owner is not None:
            os.chown(folder, owner, owner)
    made.add(str(folder))


def _write_blob(stream: IO[bytes], tree: OpenTree, found: Found, entry: Entry) -> None:
    stream.write(b"blob\ndata %d\n" % entry.size)

    def written() -> Iterator[bytes]:
        for chunk in tree.read(found):
            stream.write(chunk)
            yield chunk

    seen = entry_of(found, written())
    if seen != entry:
        raise EditedMeanwhile(found.path)
    stream.write(b"\n")


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _replace(path: Path, text: str) -> None:
    """Write a file by renaming: a link in its place is replaced, never written through."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
