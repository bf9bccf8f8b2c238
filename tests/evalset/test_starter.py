"""`evalset init`: what it writes runs as it stands, and nothing is ever written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.config.errors import BadInput
from steelyard.evalset.expansion import expand
from steelyard.evalset.manifest import read_manifest
from steelyard.evalset.project import read_project
from steelyard.evalset.references import resolve_references
from steelyard.evalset.starter import DEFAULT_FILE, DEPLOYMENT_LINES, write_starter


def resolves(file: Path) -> bool:
    read = read_manifest(file)
    project = read_project(environ={}, cwd=file.parent)
    return bool(resolve_references(read, expand(read), project).packs)


def test_the_manifest_and_the_project_fit_each_other(tmp_path: Path) -> None:
    written = write_starter(tmp_path / DEFAULT_FILE)
    assert [path.name for path in written.files] == [DEFAULT_FILE, "steelyard.yaml"]
    assert written.ignored == tmp_path / ".gitignore"
    assert resolves(tmp_path / DEFAULT_FILE)


@pytest.mark.parametrize("there", ["file", "link", "dangling", "folder"])
def test_nothing_is_written_over(tmp_path: Path, there: str) -> None:
    file = tmp_path / DEFAULT_FILE
    if there == "folder":
        file.mkdir()
    elif there == "file":
        file.write_text("mine")
    else:
        file.symlink_to(tmp_path / "target")
        if there == "link":
            (tmp_path / "target").write_text("mine")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(BadInput, match="is there already"):
        write_starter(file)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    if there == "file":
        assert file.read_text() == "mine"


def test_a_project_that_is_there_stays_and_is_told_what_it_lacks(tmp_path: Path) -> None:
    project = tmp_path / "steelyard.yaml"
    project.write_text("packs: []\n")
    written = write_starter(tmp_path / DEFAULT_FILE)
    assert (written.files, written.add_to) == ((tmp_path / DEFAULT_FILE,), project)
    assert project.read_text() == "packs: []\n"
    project.write_text(f"packs: []\n{DEPLOYMENT_LINES}")
    assert resolves(tmp_path / DEFAULT_FILE)
    assert write_starter(tmp_path / "second.yaml").add_to is None


def test_the_project_of_a_repository_is_found_from_below(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "steelyard.yaml").write_text(DEPLOYMENT_LINES)
    (tmp_path / "sets").mkdir()
    written = write_starter(tmp_path / "sets" / "a.yaml")
    assert written.files == (tmp_path / "sets" / "a.yaml",)
    assert written.add_to is None


def test_a_new_folder_is_made_and_other_formats_are_refused(tmp_path: Path) -> None:
    assert write_starter(tmp_path / "new" / "set.yml").files[0].exists()
    with pytest.raises(BadInput, match="is YAML") as raised:
        write_starter(tmp_path / "set.json")
    assert "set.yaml" in str(raised.value.problems[0].remedy)
