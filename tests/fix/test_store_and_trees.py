"""store.git, laid-out trees and trials' trees keep every byte, and say what changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.fix.manifest import (
    Entry,
    Mode,
    TreeManifest,
    clashes,
    leads_out,
    read_manifest,
)
from steelyard.fix.sealed_tree import SealedTreeChanged, lay_out, lay_out_files
from steelyard.fix.sealing import not_captured
from steelyard.fix.store_git import Store, StoreDamaged
from steelyard.fix.trial_tree import TreeMethod, make_tree
from tests.fix.world import World, run_git

pytestmark = pytest.mark.integration


def test_a_commit_comes_into_the_store_with_every_byte_and_mode(tmp_path: Path) -> None:
    world = World(tmp_path / "w", {"run.sh": "#!/bin/sh\n", "sp ace/ü.txt": "x\r\n", "empty": ""})
    (world.origin / "run.sh").chmod(0o755)
    run_git(world.origin, "commit", "-qam", "two")
    commit = run_git(world.origin, "rev-parse", "HEAD").strip()
    tree = world.store.take_tree(world.checkout.repository, commit)
    manifest = world.store.manifest_of(tree)
    assert tree == run_git(world.origin, "rev-parse", "HEAD^{tree}").strip()
    assert manifest.by_path["run.sh"].mode is Mode.EXECUTABLE
    laid = lay_out(world.store, tree, manifest, tmp_path / "sealed", owner=None)
    assert read_manifest(laid.folder).digest == manifest.digest
    assert (laid.folder / "sp ace/ü.txt").read_bytes() == b"x\r\n"
    assert world.store.write_tree(manifest) == tree
    assert TreeManifest.from_bytes(manifest.as_bytes()) == manifest
    with pytest.raises(ValueError, match="not what it was"):
        TreeManifest.from_bytes(manifest.as_bytes().replace(b"run.sh", b"ran.sh"))


def test_a_moved_checkout_finds_its_worktrees_and_trees_again(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    worktree = world.candidate({"src/app.py": "def answer():\n    return 2\n"})
    sealed = world.seal(worktree)
    world.laid_out(sealed, owner=None)
    moved = tmp_path / "moved"
    shutil.copytree(world.origin, moved, symlinks=True)
    shutil.rmtree(world.origin)
    store = Store(moved / ".steelyard" / "store.git")
    folder = moved / ".steelyard" / "candidates" / "c1"
    store.repair_worktree(folder)
    assert run_git(folder, "status", "--porcelain").strip() == "M src/app.py"
    base = moved / ".steelyard" / "trials" / "sealed"
    again = lay_out(store, sealed.tree_id, sealed.manifest, base, owner=None)
    again.check()
    (again.folder / "src/app.py").write_text("cheat\n")
    with pytest.raises(SealedTreeChanged, match=r"src/app\.py"):
        again.check()
    with pytest.raises(SealedTreeChanged):
        lay_out(store, sealed.tree_id, sealed.manifest, base, owner=None)


def test_a_content_that_is_not_what_was_sealed_is_never_laid_out(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    sealed = world.seal(world.candidate({"src/app.py": "def answer():\n    return 2\n"}))
    lying = TreeManifest.of(
        Entry(one.path, one.mode, one.size, "0" * 64, one.blob) if one.path == "src/app.py" else one
        for one in sealed.manifest.entries
    )
    with pytest.raises(StoreDamaged, match=r"src/app\.py"):
        lay_out(world.store, "x" * 40, lying, tmp_path / "sealed", owner=None)
    assert list((tmp_path / "sealed").iterdir()) == []
    missing = TreeManifest.of([Entry("a", Mode.REGULAR, 1, "0" * 64, "1" * 40)])
    with pytest.raises(StoreDamaged, match="lost the content"):
        lay_out(world.store, "y" * 40, missing, tmp_path / "sealed", owner=None)


def test_a_pinned_tree_outlives_garbage_collection(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    sealed = world.seal(world.candidate({"src/app.py": "def answer():\n    return 2\n"}))
    world.store.pin("candidates/c1", sealed.tree_id)
    run_git(world.store.folder, "gc", "-q", "--prune=now")
    assert world.store.is_whole()
    assert world.store.manifest_of(sealed.tree_id) == sealed.manifest
    world.store.remove_worktree(world.state / "candidates" / "c1")
    assert not (world.state / "candidates" / "c1").exists()


def changes(action: Any, tmp_path: Path) -> dict[str, str]:
    """Make a tree by copy, let something happen to it, and ask what changed."""
    source = tmp_path / "source"
    source.write_text("one\n")
    files = dict.fromkeys(("a", "d/b", "d/c", "e/f"), (source, False))
    layer = lay_out_files(files, tmp_path / "layers", owner=None)
    tree = make_tree(tmp_path, "t1", [layer], TreeMethod.COPY, owner=None)
    try:
        action(tree.top)
        return tree.changed()
    finally:
        tree.remove()
        assert not tree.folder.exists()


def folder_for_file(top: Path) -> None:
    """Put a folder in a file's place."""
    (top / "a").unlink()
    (top / "a").mkdir()
    (top / "a/x").write_text("")


def file_for_folder(top: Path) -> None:
    """Put a link in a folder's place."""
    shutil.rmtree(top / "d")
    (top / "d").symlink_to("e")


@pytest.mark.parametrize(
    ("action", "found"),
    [
        (lambda top: None, {}),
        (lambda top: (top / "a").touch(), {}),
        (lambda top: (top / "a").write_text("one\n"), {}),
        (lambda top: (top / "a").write_text("two\n"), {"a": "modified"}),
        (lambda top: (top / "a").chmod(0o755), {"a": "modified"}),
        (lambda top: (top / "d/new").write_text(""), {"d/new": "added"}),
        (lambda top: (top / "d/b").unlink(), {"d/b": "removed"}),
        (lambda top: shutil.rmtree(top / "d"), {"d/b": "removed", "d/c": "removed"}),
        (
            lambda top: (top / "d").rename(top / "g"),
            {"d/b": "removed", "d/c": "removed", "g/b": "added", "g/c": "added"},
        ),
        (folder_for_file, {"a": "removed", "a/x": "added"}),
        (file_for_folder, {"d": "added", "d/b": "removed", "d/c": "removed"}),
        (lambda top: os.mkfifo(top / "p"), {"p": "added"}),
    ],
)
def test_what_changed_in_a_copy_is_known(
    action: Any, found: dict[str, str], tmp_path: Path
) -> None:
    assert changes(action, tmp_path) == found


def test_frozen_files_are_laid_out_once_and_checked(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("one\n")
    first = lay_out_files({"a/b": (source, True)}, tmp_path / "layers", owner=None)
    again = lay_out_files({"a/b": (source, True)}, tmp_path / "layers", owner=None)
    assert first.folder == again.folder
    assert os.access(first.folder / "a/b", os.X_OK)


@pytest.mark.parametrize(
    ("path", "target", "is_out"),
    [
        ("a", "b", False),
        ("d/a", "../b", False),
        ("d/a", "../../b", True),
        ("d/a", "/b", True),
        ("d/a", "x/../../../b", True),
        ("a", ".git/config", True),
        ("a", ".GIT/config", True),
        ("a", "..", True),
        ("a", "", True),
        ("d/e/a", "../../x", False),
    ],
)
def test_links_that_lead_out_are_known(path: str, target: str, is_out: bool) -> None:
    assert leads_out(path, target) is is_out


@given(st.lists(st.text("aA/b", min_size=1, max_size=4), max_size=8))
@settings(max_examples=200)
def test_paths_clash_where_lower_case_makes_two_one(words: list[str]) -> None:
    paths = sorted({word.strip("/") for word in words if word.strip("/") and "//" not in word})
    parts = {part for path in paths for part in _prefixes(path)}
    assert bool(clashes(paths)) == (len({part.lower() for part in parts}) < len(parts))


def _prefixes(path: str) -> list[str]:
    words = path.split("/")
    return ["/".join(words[: i + 1]) for i in range(len(words))]


def test_a_worktree_can_go_where_its_sealed_tree_holds_all_of_it(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    worktree = world.candidate({"src/app.py": "def answer():\n    return 2\n"})
    (worktree / "src/__pycache__").mkdir()
    (worktree / "src/__pycache__/app.pyc").write_bytes(b"x")
    sealed = world.seal(worktree)

    def lost() -> list[str]:
        return not_captured(worktree, world.store, world.base, sealed)

    assert lost() == []
    (worktree / "notes.log").write_text("ignored by Git, and somebody's")
    assert lost() == ["notes.log"]
    (worktree / "notes.log").unlink()
    (worktree / "src/app.py").write_text("def answer():\n    return 9\n")
    assert lost() == ["src/app.py"]
    run_git(worktree, "add", "-A")
    (worktree / "src/app.py").write_text("def answer():\n    return 2\n")
    assert lost() == ["src/app.py"], "staged, and nowhere else"
    run_git(worktree, "add", "-A")
    assert lost() == []
