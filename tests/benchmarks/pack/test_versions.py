"""New versions of a pack: counted up in place, what was is kept, nothing is done for nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard.benchmarks.pack.digest import folder_digest
from steelyard.benchmarks.pack.load import load_pack
from steelyard.benchmarks.pack.starter import write_starter
from steelyard.benchmarks.pack.versions import (
    NothingChanged,
    kept_folders,
    kept_version,
    new_version,
)
from steelyard.config.errors import BadInput


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = tmp_path / "packs" / "sums"
    write_starter(folder)
    return folder


def change(pack: Path) -> None:
    with (pack / "cases.jsonl").open("a") as file:
        file.write('{"id": "more", "area": "sums", "question": "1 and 1?", "answer": 2}\n')


def test_the_version_is_counted_up_and_nothing_else_is_touched(pack: Path) -> None:
    before = (pack / "pack.yaml").read_text()
    new_version(pack)
    after = (pack / "pack.yaml").read_text()
    assert after == before.replace("version: 1 ", "version: 2 ")
    assert "count it up when" in after
    assert load_pack(pack).file.version == 2


def test_what_was_is_kept_with_its_digest(pack: Path) -> None:
    was = load_pack(pack)
    made = new_version(pack)
    assert made.kept == pack.with_name("sums@1")
    assert folder_digest(made.kept) == was.digest
    assert (made.slug, made.was, made.version) == ("sums", 1, 2)
    assert made.digest == load_pack(pack).digest


def test_versions_that_were_kept_are_listed_by_their_number(pack: Path) -> None:
    for _ in range(11):
        new_version(pack)
        change(pack)
        (pack / "cases.jsonl").write_text(
            (pack / "cases.jsonl").read_text().replace('"more"', f'"more{os.urandom(4).hex()}"')
        )
    assert [kept_version(path) for path in kept_folders(pack)] == list(range(1, 12))


def test_a_version_without_a_change_is_refused_and_nothing_is_written(pack: Path) -> None:
    new_version(pack)
    before = sorted(pack.parent.rglob("*")), (pack / "pack.yaml").read_text()
    with pytest.raises(NothingChanged, match="version 2 holds what version 1 holds"):
        new_version(pack)
    assert (sorted(pack.parent.rglob("*")), (pack / "pack.yaml").read_text()) == before
    change(pack)
    assert new_version(pack).version == 3


@pytest.mark.parametrize("name", ["cases.jsonl", "README.md", "pack.yaml"])
def test_any_change_counts_as_one(pack: Path, name: str) -> None:
    new_version(pack)
    with (pack / name).open("a") as file:
        file.write("\n")
    assert new_version(pack).version == 3


def test_a_version_may_be_counted_without_being_kept(pack: Path) -> None:
    change(pack)
    made = new_version(pack, keeps=False)
    assert (made.kept, made.version) == (None, 2)
    assert kept_folders(pack) == []


def test_a_call_that_was_cut_off_after_the_copy_is_finished(pack: Path) -> None:
    text = (pack / "pack.yaml").read_text()
    new_version(pack)
    (pack / "pack.yaml").write_text(text)
    assert new_version(pack).version == 2


def test_another_content_that_is_kept_as_this_version_is_never_written_over(pack: Path) -> None:
    text = (pack / "pack.yaml").read_text()
    new_version(pack)
    (pack / "pack.yaml").write_text(text)
    change(pack)
    with pytest.raises(BadInput, match="with other content"):
        new_version(pack)
    assert (pack / "pack.yaml").read_text() == text


def test_a_kept_version_has_no_versions_of_its_own(pack: Path) -> None:
    kept = new_version(pack).kept
    assert kept is not None
    with pytest.raises(BadInput, match="stays as it is"):
        new_version(kept)


def test_a_malformed_pack_is_refused_with_all_that_is_wrong(pack: Path) -> None:
    (pack / "pack.yaml").write_text("schema: pack/v1\nslug: sums\nversion: 1\nnonsense: 1\n")
    with pytest.raises(BadInput) as raised:
        new_version(pack)
    assert len(raised.value.problems) > 1
    assert kept_folders(pack) == []


@pytest.mark.parametrize("written", ["0x1", "+1", "!!int 1"])
def test_a_version_that_is_written_otherwise_is_left_to_its_author(
    pack: Path, written: str
) -> None:
    text = (pack / "pack.yaml").read_text().replace("version: 1 ", f"version: {written} ")
    (pack / "pack.yaml").write_text(text)
    with pytest.raises(BadInput):
        new_version(pack)
    assert (pack / "pack.yaml").read_text() == text
    assert kept_folders(pack) == []


def test_line_ends_links_and_modes_are_kept(pack: Path) -> None:
    (pack / "pack.yaml").write_bytes((pack / "pack.yaml").read_bytes().replace(b"\n", b"\r\n"))
    (pack / "run.sh").write_text("true")
    (pack / "run.sh").chmod(0o755)
    (pack / "link").symlink_to("run.sh")
    (pack / "__pycache__").mkdir()
    made = new_version(pack)
    assert made.kept is not None
    assert (pack / "pack.yaml").read_bytes().count(b"\r\n") > 10
    assert (made.kept / "link").is_symlink()
    assert os.access(made.kept / "run.sh", os.X_OK)
    assert not (made.kept / "__pycache__").exists()
