"""What a session copies out of folders that a hostile program filled."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.environments.collecting import safe_name
from steelyard.environments.files import Confined


def collected(work: Path, target: Path, wanted: ArtifactSpec) -> tuple[Collected, list[str]]:
    target.mkdir()
    found = Confined({"/inside": work}, workdir="/inside").collect(wanted, target)
    names = [p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file()]
    return found, sorted(names)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for name in ("a.txt", "b.log", "src/a.txt", "src/deep/er/c.txt", "src/.cache/d.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (ArtifactSpec(paths=("src",)), ["src/.cache/d.txt", "src/a.txt", "src/deep/er/c.txt"]),
        (ArtifactSpec(paths=("src",), excludes=(".cache",)), ["src/a.txt", "src/deep/er/c.txt"]),
        (ArtifactSpec(paths=("/inside/b.log", "a.txt", "none")), ["a.txt", "b.log"]),
        (ArtifactSpec(globs=("*.txt",)), ["a.txt"]),
        (ArtifactSpec(globs=("*/*.txt",)), ["src/a.txt"]),
        (ArtifactSpec(globs=("**/c.txt",)), ["src/deep/er/c.txt"]),
        (
            ArtifactSpec(globs=("src/**",), excludes=("src/deep/**",)),
            ["src/.cache/d.txt", "src/a.txt"],
        ),
        (ArtifactSpec(globs=("[ab].*",)), ["a.txt", "b.log"]),
        (ArtifactSpec(paths=(".",), excludes=("src",)), ["a.txt", "b.log"]),
    ],
)
def test_paths_patterns_and_excludes(
    wanted: ArtifactSpec, names: list[str], work: Path, tmp_path: Path
) -> None:
    found, taken = collected(work, tmp_path / "out", wanted)
    assert taken == names
    assert found.files == len(names)


@pytest.mark.parametrize("path", ["../secret", "src/../../secret", "out", "/etc/hostname", "/"])
def test_nothing_outside_is_taken(path: str, work: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    (work / "out").symlink_to(tmp_path)
    found, taken = collected(work, tmp_path / "taken", ArtifactSpec(paths=(path,)))
    assert taken == []
    assert found.files == 0


def test_links_inside_are_left_out_and_counted(work: Path, tmp_path: Path) -> None:
    (work / "src" / "link").symlink_to("a.txt")
    (work / "src" / "folder").symlink_to("deep")
    found, taken = collected(work, tmp_path / "out", ArtifactSpec(paths=("src",)))
    assert "src/link" not in taken
    assert found.left_out == {"link": 2}


def test_counts_and_bytes_are_bounded(work: Path, tmp_path: Path) -> None:
    (work / "sparse").touch()
    os.truncate(work / "sparse", 10**12)
    found, taken = collected(work, tmp_path / "a", ArtifactSpec(paths=(".",), max_files=2))
    assert len(taken) == found.files == 2
    found, taken = collected(work, tmp_path / "b", ArtifactSpec(paths=(".",), max_bytes=1000))
    assert "sparse" not in taken
    assert found.left_out == {"above 1000 bytes in all": 1}


def test_a_hundred_thousand_files_are_counted_not_copied(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "0").touch()
    for number in range(1, 100_000):
        if number % 30_000:  # a file system allows only so many links
            os.link(work / str(number - number % 30_000), work / str(number))
        else:
            (work / str(number)).touch()
    found, taken = collected(work, tmp_path / "out", ArtifactSpec(globs=("*",), max_files=50))
    assert len(taken) == 50
    assert found.left_out == {"more than 50 files": 99_950}


def test_names_that_are_not_utf8_are_kept_apart(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name in (b"caf\xe9", b"caf%E9", b"\xff/x"):
        path = work / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name)
    found, taken = collected(work, tmp_path / "out", ArtifactSpec(paths=(".",)))
    assert taken == ["%FF/x", "caf%E9"]
    assert found.left_out == {"a name that another file has already": 1}


def test_a_folder_that_is_swapped_for_a_link_meanwhile_is_not_followed(
    work: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("of the host")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (work / "src").rename(work / "real")
            (work / "src").symlink_to(tmp_path / "secret")
            (work / "src").unlink()
            (work / "real").rename(work / "src")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(100):
            _, taken = collected(work, tmp_path / f"out-{number}", ArtifactSpec(paths=("src", ".")))
            assert not [name for name in taken if name.endswith("key")]
    finally:
        done.set()
        swapping.join()


@pytest.mark.parametrize(
    "wanted",
    [
        ArtifactSpec(paths=("../a",)),
        ArtifactSpec(globs=("a/../../b",)),
        ArtifactSpec(globs=("/etc/*",)),
        ArtifactSpec(paths=("",)),
        ArtifactSpec(paths=("a\0b",)),
    ],
)
def test_what_leads_out_is_said_before_anything_runs(wanted: ArtifactSpec) -> None:
    assert wanted.problem() is not None


def test_a_specification_comes_back_as_it_was() -> None:
    wanted = ArtifactSpec(("a",), ("*",), ("b",), ("make", "x"), 5, 6)
    assert ArtifactSpec.from_json(wanted.as_json()) == wanted


def test_a_safe_name_is_utf8() -> None:
    assert safe_name("plain%") == "plain%"
    assert safe_name(os.fsdecode(b"50%\xff")) == "50%25%FF"
