"""Task data is brought in once, from where the user says, and held to its digest."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from steelyard.benchmarks.harbor.data_set import DataSet, Wanted
from steelyard.benchmarks.harbor.git_tree import FetchFailed, GitTree, is_remote, without_user
from steelyard.benchmarks.pack.digest import folder_digest
from steelyard.config.errors import BadInput
from tests.benchmarks.harbor.task_folders import write_task

AS_TESTER = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@t.example",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@t.example",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        env={**os.environ, **AS_TESTER},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def data(tmp_path: Path) -> DataSet:
    return DataSet(tmp_path / "data" / "set", "set")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    write_task(folder, "one")
    write_task(folder, "two")
    return folder


@pytest.fixture
def repository(tmp_path: Path, tasks: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main", "tasks")
    git(tasks, "add", ".")
    git(tasks, "commit", "-qm", "tasks")
    return tasks


def test_what_was_never_brought_in_is_not_there(data: DataSet) -> None:
    assert data.checked(Wanted()) is None
    assert data.checked(Wanted(sha256="0" * 64)) is None


def test_a_folder_is_brought_in_and_then_found_without_it(data: DataSet, tasks: Path) -> None:
    path = data.checked(Wanted(str(tasks)))
    assert path is not None
    assert path.name == folder_digest(tasks)
    assert data.checked(Wanted()) == path
    assert data.checked(Wanted(sha256=path.name)) == path
    assert list(data.folder.glob(".*")) == []


def test_a_changed_folder_is_another_version_and_one_must_be_named(
    data: DataSet, tasks: Path
) -> None:
    first = data.checked(Wanted(str(tasks)))
    (tasks / "one/instruction.md").write_text("Another one.")
    second = data.checked(Wanted(str(tasks)))
    assert first is not None
    assert second is not None
    assert first != second
    with pytest.raises(BadInput, match="2 versions of set") as caught:
        data.checked(Wanted())
    assert first.name in str(caught.value)
    assert data.checked(Wanted(sha256=first.name)) == first


def test_another_content_than_the_pinned_one_is_refused(data: DataSet, tasks: Path) -> None:
    with pytest.raises(BadInput, match="not the one that is pinned: its digest is"):
        data.checked(Wanted(str(tasks), sha256="0" * 64))
    assert data.versions() == []


def test_data_that_changed_on_the_disk_is_refused(data: DataSet, tasks: Path) -> None:
    path = data.checked(Wanted(str(tasks)))
    assert path is not None
    (path / "one/tests/test.sh").write_text("echo 1")
    with pytest.raises(BadInput, match="is not what it was") as caught:
        data.checked(Wanted())
    assert "remove the folder" in str(caught.value)


def test_a_remote_is_fetched_once_and_then_needed_no_more(
    data: DataSet, repository: Path, tmp_path: Path
) -> None:
    wanted = Wanted(f"file://{repository}")
    path = data.checked(wanted)
    assert path is not None
    assert path.name == folder_digest(repository)
    (note,) = data.folder.glob("from-*.json")
    assert json.loads(note.read_text())["commit"] == git(repository, "rev-parse", "HEAD")
    repository.rename(tmp_path / "elsewhere")
    assert data.checked(wanted) == path
    assert data.checked(Wanted()) == path


def test_a_revision_is_taken_by_branch_tag_or_commit(data: DataSet, repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "v1")
    (repository / "one/instruction.md").write_text("Later.")
    git(repository, "commit", "-qam", "later")
    found = {
        revision: data.checked(Wanted(f"file://{repository}", revision))
        for revision in (first, "v1", "main")
    }
    assert found[first] == found["v1"] != found["main"]


def test_what_the_users_git_is_told_to_do_is_not_done(
    data: DataSet, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, canary = tmp_path / "home", tmp_path / "canary"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f"[core]\n\tfsmonitor = touch {canary}\n\thooksPath = {home}\n"
        f'[filter "evil"]\n\tsmudge = touch {canary}; cat\n'
        '[url "file:///nowhere/"]\n\tinsteadOf = file://\n'
    )
    (home / "post-checkout").write_text(f"#!/bin/sh\ntouch {canary}\n")
    (home / "post-checkout").chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=evil export-ignore text eol=crlf\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "attributes")
    monkeypatch.setenv("HOME", str(home))
    path = data.checked(Wanted(f"file://{repository}"))
    assert path is not None
    assert not canary.exists()
    assert (path / "one/instruction.md").read_bytes() == b"Make a file called done."


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("file:///nowhere/at/all.git", "cannot be brought in: `git fetch`"),
        ("ext::sh -c touch% x", "there is no ext::sh"),
        ("no/such/folder", "there is no no/such/folder"),
    ],
)
def test_a_source_that_cannot_be_had_is_said_with_what_could_be(
    data: DataSet, source: str, words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        data.checked(Wanted(source))
    assert words in str(caught.value)
    assert "Git remote" in str(caught.value)
    assert data.versions() == []


@pytest.mark.parametrize("revision", ["--upload-pack=touch x", "-x", "a b", "x:refs/heads/y"])
def test_a_revision_is_never_taken_for_an_option(tmp_path: Path, revision: str) -> None:
    with pytest.raises(FetchFailed, match="is no revision"):
        GitTree(tmp_path).fetch("file:///nowhere", revision)


def test_a_revision_without_a_remote_is_refused(data: DataSet, tasks: Path) -> None:
    with pytest.raises(BadInput, match="revision belongs to a Git remote"):
        data.checked(Wanted(str(tasks), "v1"))


def test_a_submodule_and_a_folder_without_tasks_are_refused(
    data: DataSet, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="there is no task folder in it"):
        data.checked(Wanted(str(tmp_path / "empty")))
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    git(repository, "commit", "-qm", "submodule")
    with pytest.raises(BadInput, match="'sub' is a submodule"):
        data.checked(Wanted(f"file://{repository}"))


def test_pointers_of_large_files_are_refused_with_the_way_out(data: DataSet, tasks: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    (tasks / "one/environment/model.bin").write_text(pointer)
    with pytest.raises(BadInput, match="clone it with Git LFS and name that folder"):
        data.checked(Wanted(str(tasks)))


def test_who_asks_with_which_password_is_kept_out_of_words_and_notes() -> None:
    remote = "https://me:secret@host.example/tasks.git"
    assert is_remote(remote)
    assert without_user(remote) == "https://host.example/tasks.git"
    assert is_remote("git@host.example:tasks.git")
    assert not is_remote("ext::sh -c x")
    assert not is_remote("--upload-pack=x")
