"""A secret in the name of a kept file: neither on the disk, nor a path that is not found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.results.artifacts import hide_names, list_artifacts

SECRET = b"sk-kept-out/of-names"


def has_secret(data: bytes) -> bool:
    return SECRET in data or b"sk-other" in data


def written(root: Path, *names: str) -> Path:
    folder = root / "artifacts"
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["out/a.txt"], ["out/a.txt"]),
        (["out/sk-other.txt", "out/b"], ["hidden-names/1", "out/b"]),
        (["sk-other/deep/er/a", "sk-other/b"], ["hidden-names/1", "hidden-names/2"]),
        (["sk-kept-out/of-names/a", "sk-kept-out/b"], ["hidden-names/1", "sk-kept-out/b"]),
        (["sk-other", "hidden-names/1"], ["hidden-names-/1", "hidden-names/1"]),
        ([], []),
    ],
)
def test_files_with_a_secret_in_their_path_get_another(
    names: list[str], kept: list[str], tmp_path: Path
) -> None:
    folder = written(tmp_path, *names)
    moved = sum(name not in kept for name in names)
    assert hide_names(folder, has_secret) == moved
    found = [str(one["path"]) for one in list_artifacts(tmp_path, "artifacts")]
    assert found == sorted(f"artifacts/{name}" for name in kept)
    left = [path.relative_to(folder).as_posix().encode() for path in folder.rglob("*")]
    assert not any(has_secret(name) for name in left)
    contents = {path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert contents == set(names)


def test_an_empty_folder_named_by_a_secret_goes(tmp_path: Path) -> None:
    folder = written(tmp_path, "a")
    (folder / "sk-other/empty").mkdir(parents=True)
    assert hide_names(folder, has_secret) == 0
    assert [path.name for path in folder.rglob("*")] == ["a"]
