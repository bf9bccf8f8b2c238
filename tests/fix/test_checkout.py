"""Which checkouts candidates can be made of; none is written to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard.fix.checkout import (
    BareCheckout,
    CheckoutRefused,
    HoldsLfsPointers,
    HoldsSubmodules,
    HoldsUnfitLinks,
    NoCommit,
    NotACheckout,
    SparseCheckout,
    UncleanCheckout,
    UnknownObjectFormat,
    read_checkout,
)
from steelyard.fix.git import GitFailed, Repository, git
from tests.fix.test_attacks_on_sealing import snapshot
from tests.fix.world import make_repository, run_git

pytestmark = pytest.mark.integration

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 123456\n"


def refused(folder: Path, kind: type[CheckoutRefused], said: str) -> str:
    """See that a checkout is refused with a remedy, and left as it was."""
    before = snapshot(folder)
    with pytest.raises(kind) as error:
        read_checkout(folder)
    assert snapshot(folder) == before
    problem = error.value.problems[0]
    assert said in problem.message
    assert problem.remedy
    return str(error.value)


def test_a_clean_checkout_is_described_and_not_touched(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "app")
    (origin / "src/app.py").touch()  # the index's idea of it is stale: a refresh would write
    before = snapshot(origin)
    found = read_checkout(origin)
    assert snapshot(origin) == before
    assert found.commit == run_git(origin, "rev-parse", "HEAD").strip()
    assert (found.branch, found.is_shallow, found.is_linked) == ("main", False, False)
    assert found.warnings == ()
    assert read_checkout(tmp_path / "app" / "src" / "..").root == origin


def test_no_git_and_no_commit(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    said = refused(tmp_path / "plain", NotACheckout, "is not a Git checkout")
    assert "init --setup-git" in said
    (tmp_path / "empty").mkdir()
    run_git(tmp_path / "empty", "init", "-q")
    assert "init --setup-git" in refused(tmp_path / "empty", NoCommit, "no commit yet")


def test_a_folder_below_the_top_and_a_bare_repository(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "app")
    said = refused(origin / "src", NotACheckout, "is not the top of its checkout")
    assert f"--workspace {origin}" in said
    run_git(tmp_path, "clone", "-q", "--bare", str(origin), "bare")
    refused(tmp_path / "bare", BareCheckout, "is a bare repository")


def test_an_unclean_checkout_names_its_files(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "app")
    (origin / "new.txt").write_text("x")
    refused(origin, UncleanCheckout, "not tracked: new.txt")
    (origin / "src/app.py").write_text("y")
    refused(origin, UncleanCheckout, "changed: src/app.py; not tracked: new.txt")
    run_git(origin, "add", "-A")
    refused(origin, UncleanCheckout, "changed: new.txt, src/app.py")
    run_git(origin, "commit", "-qm", "two")
    (origin / "build").mkdir()
    (origin / "build/x").write_text("ignored")
    (origin / ".steelyard").mkdir()
    (origin / ".steelyard/state").write_text("ours")
    assert read_checkout(origin).branch == "main"


def test_a_change_that_an_index_flag_hides_is_found(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "app")
    run_git(origin, "update-index", "--assume-unchanged", "src/app.py")
    assert read_checkout(origin).branch == "main"
    (origin / "src/app.py").write_text("y")
    assert run_git(origin, "status", "--porcelain") == ""
    refused(origin, UncleanCheckout, "changed: src/app.py")


def test_a_sparse_checkout_is_refused(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "app")
    run_git(origin, "sparse-checkout", "set", "src")
    assert "sparse-checkout disable" in refused(origin, SparseCheckout, "is sparse")
    run_git(origin, "sparse-checkout", "disable")
    assert read_checkout(origin).branch == "main"


def test_submodules_and_lfs_pointers_are_refused(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"x": "1"})
    origin = make_repository(tmp_path / "app")
    run_git(origin, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "lib")
    run_git(origin, "commit", "-qm", "two")
    refused(origin, HoldsSubmodules, "submodules, which cannot be sealed: lib")
    origin = make_repository(tmp_path / "large", {"model.bin": POINTER, "other.txt": "x" * 130})
    assert "inputs" in refused(origin, HoldsLfsPointers, "model.bin")


def test_links_that_lead_out_are_refused(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "app")
    (origin / "src/out").symlink_to("/etc/passwd")
    (origin / "src/in").symlink_to("app.py")
    run_git(origin, "add", "-A")
    run_git(origin, "commit", "-qm", "two")
    refused(origin, HoldsUnfitLinks, "lead out of the tree: src/out")


def test_a_shallow_clone_and_a_linked_worktree_are_taken(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "app")
    (origin / "src/app.py").write_text("def answer():\n    return 2\n")
    run_git(origin, "commit", "-qam", "two")
    run_git(tmp_path, "clone", "-q", "--depth", "1", f"file://{origin}", "shallow")
    found = read_checkout(tmp_path / "shallow")
    assert found.is_shallow
    assert "git fetch --unshallow" in found.warnings[0]
    run_git(origin, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    found = read_checkout(tmp_path / "linked")
    assert (found.is_linked, found.branch) == (True, "side")
    assert found.common_dir == origin / ".git"


def test_a_repository_of_another_object_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    run_git(tmp_path / "app", "init", "-q", "--object-format=sha256")
    refused(tmp_path / "app", UnknownObjectFormat, "sha256")


def test_tracked_files_that_look_like_secrets_are_a_warning(tmp_path: Path) -> None:
    names = {".env": "KEY=1", "deploy/server.pem": "x", ".env.example": "KEY=", "src/key.py": ""}
    found = read_checkout(make_repository(tmp_path / "app", names))
    assert set(found.private_files) == {".env", "deploy/server.pem"}
    assert "look like secrets" in found.warnings[0]


def test_git_runs_with_no_configuration_of_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = make_repository(tmp_path / "app")
    ran = tmp_path / "ran"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\n")
    evil.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {evil}\n\tpager = {evil}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(evil))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    run_git(origin, "config", "core.fsmonitor", str(evil), env={"GIT_DIR": str(origin / ".git")})
    assert read_checkout(origin).branch == "main"
    assert not ran.exists()
    assert b"Steelyard" in git(["var", "GIT_AUTHOR_IDENT"], Repository(origin / ".git"))


def test_an_error_of_git_shows_its_own_words(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "app")
    with pytest.raises(GitFailed, match=r"git rev-parse --verify nothing.* ended with 128: fatal"):
        git(["rev-parse", "--verify", "nothing"], Repository(origin / ".git"))
    assert os.environ["PATH"]
