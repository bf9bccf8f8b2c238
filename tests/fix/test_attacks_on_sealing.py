"""What a candidate may put into its worktree: shown to fool Git or a copy, then refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from steelyard.fix.result_file import ResultRefused, read_result
from steelyard.fix.sealing import EditedWhileSealing, PathRules, SealingRefused
from tests.fix.attacks import CHEAT, HONEST, naive
from tests.fix.world import FILES, RULES, World, make_repository, run_git, try_out

pytestmark = pytest.mark.integration


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Read every byte and time stamp of a repository's own files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[str(path.relative_to(folder))] = (path.read_bytes(), path.stat().st_mtime_ns)
    return found


def shared_worktree(folder: Path) -> tuple[Path, Path]:
    """Do as others do: a candidate is a worktree of the user's own repository."""
    origin = make_repository(folder / "app")
    run_git(origin, "worktree", "add", "-q", "--detach", str(folder / "candidate"))
    return origin, folder / "candidate"


def test_row_10_attributes_and_filters_have_no_say(tmp_path: Path) -> None:
    attributes = "*.py ident text eol=crlf filter=evil export-subst\nhidden.py export-ignore\n"
    text = "# $Id$ $Format:%H$\r\ndef answer():\r\n    return 1\r\n"
    origin, candidate = shared_worktree(tmp_path / "naive")
    ran = tmp_path / "filter-ran"
    run_git(candidate, "config", "filter.evil.clean", f"touch {ran}; cat")
    (candidate / "src/.gitattributes").write_text(attributes)
    (candidate / "src/app.py").write_bytes(text.encode())
    (candidate / "src/hidden.py").write_text("x = 1\n")
    run_git(candidate, "add", "-A")
    blob = run_git(candidate, "cat-file", "blob", ":src/app.py")
    assert ran.exists(), "a filter of the candidate ran in the user's repository"
    assert "\r" not in blob, "and Git's idea of the file is not what was on the disk"
    assert origin.exists()
    ran.unlink()

    world = World(tmp_path / "w")
    worktree = world.candidate({"src/.gitattributes": attributes, "src/hidden.py": "x = 1\n"})
    (worktree / "src/app.py").write_bytes(text.encode())
    run_git(worktree, "config", "filter.evil.clean", f"touch {ran}; cat")
    run_git(worktree, "config", "filter.evil.smudge", f"touch {ran}; cat")
    sealed = world.seal(worktree)
    tree = world.laid_out(sealed, owner=None)
    assert (tree.folder / "src/app.py").read_bytes() == text.encode()
    assert (tree.folder / "src/hidden.py").exists()
    assert not ran.exists()
    again = world.state / "candidates" / "child"
    world.store.add_worktree(again, sealed.tree_id, sealed.manifest)
    assert (again / "src/app.py").read_bytes() == text.encode(), "laid out as it was sealed"
    assert not ran.exists()


def test_row_10_index_flags_hide_no_change(tmp_path: Path) -> None:
    _, candidate = shared_worktree(tmp_path / "naive")
    (candidate / "bench/benchmark.py").write_text("cheat\n")
    run_git(candidate, "update-index", "--assume-unchanged", "bench/benchmark.py")
    assert run_git(candidate, "status", "--porcelain") == "", "Git sees no change"
    world = World(tmp_path / "w")
    worktree = world.candidate({"bench/benchmark.py": "cheat\n"})
    run_git(worktree, "update-index", "--assume-unchanged", "bench/benchmark.py")
    with pytest.raises(SealingRefused, match=r"bench/benchmark\.py: modified"):
        world.seal(worktree)


def test_row_11_hooks_and_configuration_reach_nobody(tmp_path: Path) -> None:
    ran = tmp_path / "hook-ran"
    hook = f"#!/bin/sh\ntouch {ran}\n"
    origin, candidate = shared_worktree(tmp_path / "naive")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(hook)
        (hooks / name).chmod(0o755)
    run_git(candidate, "config", "core.hooksPath", str(hooks))
    run_git(candidate, "config", "alias.status", f"!touch {ran}")
    run_git(origin, "worktree", "add", "-q", "--detach", str(tmp_path / "naive" / "second"))
    assert ran.exists(), "a candidate's hook ran for the user"
    ran.unlink()

    world = World(tmp_path / "w")
    before = snapshot(world.origin / ".git")
    worktree = world.candidate()
    for key in ("core.hooksPath", "core.fsmonitor", "core.sshCommand", "core.attributesFile"):
        run_git(
            worktree, "config", key, str(hooks / "post-checkout") if "fs" in key else str(hooks)
        )
    run_git(worktree, "config", "alias.status", f"!touch {ran}")
    ran.unlink(missing_ok=True)
    shutil.copytree(hooks, world.store.folder / "hooks")
    world.store.pin("candidates/c0", world.base_tree)  # its configuration is still the candidate's
    assert not ran.exists()
    sealed = world.seal(worktree)
    world.store.pin("candidates/c1", sealed.tree_id)
    second = world.candidate()
    assert (second / "src/app.py").exists()
    assert not ran.exists()
    assert snapshot(world.origin / ".git") == before
    from steelyard.fix.store_git import CONFIG, Store

    assert not Store(world.store.folder).was_meddled_with, "put right before it was sealed"
    run_git(worktree, "config", "core.hooksPath", str(hooks))
    shutil.copytree(hooks, world.store.folder / "hooks")
    ran.unlink(missing_ok=True)
    assert Store(world.store.folder).was_meddled_with
    assert (world.store.folder / "config").read_text() == CONFIG
    assert not (world.store.folder / "hooks").exists()
    assert not Store(world.store.folder).was_meddled_with


def test_row_12_references_of_the_user_do_not_move(tmp_path: Path) -> None:
    origin, candidate = shared_worktree(tmp_path / "naive")
    first = run_git(origin, "rev-parse", "main")
    tree = run_git(candidate, "rev-parse", "HEAD^{tree}").strip()
    evil = run_git(candidate, "commit-tree", tree, "-m", "evil").strip()
    run_git(candidate, "update-ref", "refs/heads/main", evil)
    assert run_git(origin, "rev-parse", "main") != first, "a candidate moved the user's branch"

    world = World(tmp_path / "w")
    before = snapshot(world.origin / ".git")
    worktree = world.candidate()
    run_git(
        worktree, "update-ref", "refs/heads/main", run_git(worktree, "rev-parse", "HEAD").strip()
    )
    run_git(worktree, "pack-refs", "--all")
    world.seal(worktree)
    edits = {
        "src/app.py": f"""
import subprocess
def answer():
    subprocess.run(["git", "update-ref", "refs/heads/main", "{"0" * 40}"])
    subprocess.run(["sh", "-c", "echo evil > .git/packed-refs"])
    return 1
"""
    }
    assert try_out(world, edits).metrics == {"answer": HONEST}
    assert snapshot(world.origin / ".git") == before


def test_row_13_a_repository_inside_the_tree(tmp_path: Path) -> None:
    _, candidate = shared_worktree(tmp_path / "naive")
    make_repository(candidate / "src/inner", {"x": "1"})
    run_git(candidate, "add", "-A")
    assert "160000" in run_git(candidate, "ls-files", "-s"), "Git keeps a name in place of a tree"
    world = World(tmp_path / "w", rules=PathRules(("src", ".gitmodules"), ("bench", "tests")))
    worktree = world.candidate({".gitmodules": '[submodule "x"]\n\tpath = src/inner\n'})
    make_repository(worktree / "src/inner", {"x": "1"})
    with pytest.raises(SealingRefused) as refused:
        world.seal(worktree)
    assert "src/inner/.git: a repository inside the tree" in str(refused.value)
    assert ".gitmodules: submodules cannot be sealed" in str(refused.value)


@pytest.mark.parametrize("target", ["{outside}", "../../../outside", ".git/config", "../.git"])
def test_row_14_a_link_that_leads_out(tmp_path: Path, target: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("def answer():\n    return 999\n")
    folder = tmp_path / "naive"
    naive(folder, {})
    (folder / "src/app.py").unlink()
    (folder / "src/app.py").symlink_to(outside)
    assert naive_again(folder) == CHEAT, "an undefended runner follows it"
    world = World(tmp_path / "w")
    worktree = world.candidate({"src/app.py": None})
    (worktree / "src/app.py").symlink_to(target.format(outside=outside))
    with pytest.raises(SealingRefused, match="leads out of the tree"):
        world.seal(worktree)


def naive_again(folder: Path) -> float:
    """Score what lies there, links followed."""
    from tests.fix.world import PYTHON

    result = folder / "result.json"
    subprocess.run(
        [PYTHON, "bench/benchmark.py"],
        cwd=folder,
        env={"STEELYARD_RESULT_PATH": str(result)},
        check=True,
    )
    return float(json.loads(result.read_text())["metrics"]["answer"])


def test_a_link_within_the_tree_is_sealed_as_a_link(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    worktree = world.candidate({"src/real.py": "x = 1\n"})
    (worktree / "src/link.py").symlink_to("real.py")
    (worktree / "src/link.py").lstat()
    tree = world.laid_out(world.seal(worktree), owner=None)
    assert str((tree.folder / "src/link.py").readlink()) == "real.py"


def test_devices_fifos_sockets_and_hard_links_are_refused_at_once(tmp_path: Path) -> None:
    import socket

    world = World(tmp_path / "w")
    worktree = world.candidate()
    os.mkfifo(worktree / "src/fifo")
    with chdir(worktree / "src"), socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    secret = tmp_path / "secret"
    secret.write_text("not the candidate's\n")
    os.link(secret, worktree / "src/hard")
    with pytest.raises(SealingRefused) as refused:
        world.seal(worktree)
    said = str(refused.value)
    assert "src/fifo: a FIFO" in said
    assert "src/socket: a socket" in said
    assert "src/hard: the file has another name somewhere" in said


@pytest.mark.parametrize(
    "kind", ["link", "link to a device", "fifo", "folder", "hard link", "socket"]
)
def test_row_15_the_result_is_not_a_plain_file(tmp_path: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"metrics": {"answer": 999}}')
    folder = tmp_path / "result"
    folder.mkdir()
    path = folder / "result.json"
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "hard link":
        os.link(elsewhere, path)
    else:
        import socket

        with chdir(folder), socket.socket(socket.AF_UNIX) as listener:
            listener.bind("result.json")
    if kind in ("link", "hard link"):
        assert json.loads(path.read_text())["metrics"]["answer"] == CHEAT, (
            "a plain read believes it"
        )
    with pytest.raises(ResultRefused):
        read_result(folder, "result.json", metrics=["answer"])


def test_row_15_in_a_trial_it_fails_at_once(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    for trick in ("os.mkfifo(path)", "os.mkdir(path)", "os.symlink('/dev/zero', path)"):
        code = f"""
import os
def answer():
    return 1
def late():
    path = os.environ["STEELYARD_RESULT_PATH"]
    if os.path.lexists(path):
        os.unlink(path)
    {trick}
import atexit
atexit.register(late)
"""
        result = try_out(world, {"src/app.py": code})
        assert (result.outcome.value, result.metrics) == ("failed", {}), result


def test_rows_26_and_27_evaluation_files_under_other_names(tmp_path: Path) -> None:
    folder = tmp_path / "naive"
    cheat = FILES["bench/benchmark.py"].replace("app.answer()", "999")
    naive(folder, {})
    (folder / "bench").rename(folder / "src/bench")
    (folder / "src/bench/benchmark.py").write_text(cheat)
    (folder / "bench").symlink_to("src/bench")
    assert naive_again(folder) == CHEAT

    world = World(tmp_path / "w")
    worktree = world.candidate()
    (worktree / "bench").rename(worktree / "src/bench")
    (worktree / "bench").symlink_to("src/bench")
    with pytest.raises(SealingRefused) as refused:
        world.seal(worktree)
    said = str(refused.value)
    for path in ("bench/benchmark.py", "bench/expected.txt"):
        assert f"{path}: removed; part of the evaluation" in said
    assert "bench: added; part of the evaluation" in said

    worktree = world.candidate({"Bench/benchmark.py": cheat, "src/a.py": "1", "src/A.py": "2"})
    with pytest.raises(SealingRefused) as refused:
        world.seal(worktree)
    said = str(refused.value)
    assert "Bench/benchmark.py: added outside the editable paths" in said
    assert "are one name on some systems" in said
    problems = PathRules(("src", "src/../bench", "BENCH/x"), ("bench", "tests")).problems(
        world.base
    )
    said = "\n".join(map(str, problems))
    assert "'src/../bench' has empty, `.` or `..` parts" in said
    assert "editable 'BENCH/x' and protected 'bench' meet" in said


def test_names_that_are_one_by_unicodes_forms_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    worktree = world.candidate({"src/caf\u00e9.py": "1", "src/cafe\u0301.py": "2"})
    with pytest.raises(SealingRefused, match="are one name on some systems"):
        world.seal(worktree)
    worktree = world.candidate({"src/a\u202eb.py": "1"})
    with pytest.raises(SealingRefused, match="cannot be seen"):
        world.seal(worktree)


def test_row_30_two_candidates_with_the_same_tree(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    edits = {"src/app.py": "def answer():\n    return 3\n"}
    first = world.seal(world.candidate(edits))
    second = world.seal(world.candidate(edits), earlier={first.tree_id: "c1"})
    assert second.duplicate_of == "c1"
    assert first.duplicate_of is None
    other = world.seal(world.candidate({}), earlier={first.tree_id: "c1"})
    assert (other.duplicate_of, other.tree_id) == (None, world.base_tree)


def test_an_edit_while_a_tree_is_sealed_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "w")
    for edit in (
        lambda folder: (folder / "src/app.py").write_text("def answer():\n    return 4\n"),
        lambda folder: (folder / "src/new.py").write_text("x = 1\n"),
        lambda folder: (folder / "src/app.py").unlink(),
    ):
        worktree = world.candidate({"src/app.py": "def answer():\n    return 3\n"})
        write = world.store.write_blobs

        def edited(
            *words: Any, write: Any = write, edit: Any = edit, worktree: Path = worktree
        ) -> None:
            write(*words)
            edit(worktree)

        with monkeypatch.context() as patch:
            patch.setattr(world.store, "write_blobs", edited)
            with pytest.raises(EditedWhileSealing, match=r"src/(app|new)\.py"):
                world.seal(worktree)


def test_everything_that_stands_in_the_way_is_said_at_once(tmp_path: Path) -> None:
    world = World(tmp_path / "w", rules=RULES)
    worktree = world.candidate(
        {"README": "x", "bench/benchmark.py": "y", "tests/test_app.py": None, "other/file": "z"}
    )
    with pytest.raises(SealingRefused) as refused:
        world.seal(worktree)
    assert len(refused.value.problems) == 4
    assert (worktree / "README").exists(), "the candidate goes back to editing"
