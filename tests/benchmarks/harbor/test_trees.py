"""What is brought in stays in its folder, and does not go on without end."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.benchmarks.harbor.trees import (
    Planting,
    TreeRefused,
    large_file_pointers,
    plant_archive,
    plant_folder,
)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def member(name: str, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def plant(source: Path, target: Path, **bounds: int) -> None:
    planting = Planting(target, **bounds)
    (plant_folder if source.is_dir() else plant_archive)(source, planting)
    planting.finish()


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_archive_is_unpacked_with_modes_and_inner_links(
    tmp_path: Path, target: Path, mode: str
) -> None:
    source = tar(
        tmp_path / "a.tar",
        (member("./top", type=tarfile.DIRTYPE, mode=0o755), b""),
        (member("./top/run.sh", mode=0o4777), b"#!"),
        (member("top/text", mode=0o600), b"text"),
        (member("top/link", type=tarfile.SYMTYPE, linkname="text"), b""),
        (member("top/.git/config", mode=0o600), b"left out"),
        mode=mode,
    )
    plant(source, target)
    assert sorted(path.name for path in target.rglob("*")) == ["link", "run.sh", "text", "top"]
    assert stat.S_IMODE((target / "top/run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "top/text").stat().st_mode) == 0o644
    assert str((target / "top/link").readlink()) == "text"


def test_a_zip_archive_is_unpacked(tmp_path: Path, target: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("top/text", "text")
        program = zipfile.ZipInfo("top/run.sh")
        program.external_attr = (stat.S_IFREG | 0o755) << 16
        archive.writestr(program, "#!")
        link = zipfile.ZipInfo("top/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "text")
    plant(tmp_path / "a.zip", target)
    assert (target / "top/text").read_text() == "text"
    assert (target / "top/run.sh").stat().st_mode & 0o100
    assert str((target / "top/link").readlink()) == "text"


ESCAPES = {
    "dots": [(member("../out"), b"x")],
    "inner dots": [(member("a/../../out"), b"x")],
    "a root": [(member("/out"), b"x")],
    "a link out": [(member("a", type=tarfile.SYMTYPE, linkname="../out"), b"")],
    "a link to a root": [(member("a", type=tarfile.SYMTYPE, linkname="/etc"), b"")],
    "a file through a link": [
        (member("a", type=tarfile.SYMTYPE, linkname=".."), b""),
        (member("a/out"), b"x"),
    ],
    "a link through a link": [
        (member("d/e", type=tarfile.SYMTYPE, linkname="."), b""),
        (member("f", type=tarfile.SYMTYPE, linkname="d/e/../.."), b""),
    ],
    "a hard link": [(member("a", type=tarfile.LNKTYPE, linkname="/etc/passwd"), b"")],
    "a device": [(member("a", type=tarfile.CHRTYPE), b"")],
    "a fifo": [(member("a", type=tarfile.FIFOTYPE), b"")],
    "a file twice": [(member("a"), b"1"), (member("a"), b"2")],
    "a file below a file": [(member("a"), b"1"), (member("a/b"), b"2")],
}


@pytest.mark.parametrize("name", ESCAPES)
def test_an_archive_that_leads_out_is_refused(tmp_path: Path, target: Path, name: str) -> None:
    source = tar(tmp_path / "a.tar", *ESCAPES[name])
    with pytest.raises(TreeRefused):
        plant(source, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "target"]


def test_a_bomb_is_refused_by_what_comes_out_of_it(tmp_path: Path, target: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(4 * 1024 * 1024))
    assert (tmp_path / "a.zip").stat().st_size < 10_000
    with pytest.raises(TreeRefused, match="more than 1 MiB"):
        plant(tmp_path / "a.zip", target, max_bytes=1024 * 1024)
    assert (target / "zeros").stat().st_size <= 1024 * 1024


def test_too_many_files_are_refused(tmp_path: Path, target: Path) -> None:
    source = tar(tmp_path / "a.tar", *((member(str(n)), b"") for n in range(4)))
    with pytest.raises(TreeRefused, match="more than 3 files"):
        plant(source, target, max_files=3)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.txt", lambda path: path.write_text("no archive")),
        (
            "a.tgz",
            lambda path: (tar(path, (member("a"), os.urandom(9000)), mode="w:gz"), cut(path)),
        ),
    ],
)
def test_what_is_no_whole_archive_is_refused(
    tmp_path: Path, target: Path, name: str, make: Callable[[Path], object]
) -> None:
    make(tmp_path / name)
    with pytest.raises(TreeRefused, match=r"neither a tar nor a zip|cannot be unpacked"):
        plant(tmp_path / name, target)


def test_a_locked_zip_is_refused(tmp_path: Path, target: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "x")
    raw = bytearray(path.read_bytes())
    raw[6] |= 1  # the flag of encryption, in both headers
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(TreeRefused, match="encrypted"):
        plant(path, target)


def test_a_folder_is_copied_without_what_leads_out(tmp_path: Path, target: Path) -> None:
    source = tmp_path / "source"
    (source / "a").mkdir(parents=True)
    (source / "a/text").write_text("x")
    (source / ".git").mkdir()
    (source / ".git/config").write_text("x")
    plant(source, target)
    assert [path.name for path in sorted(target.rglob("*"))] == ["a", "text"]
    (source / "out").symlink_to("/etc")
    with pytest.raises(TreeRefused, match="leads out"):
        plant(source, tmp_path / "other")


def test_pointers_to_content_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "big.tar").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    )
    (tmp_path / "small").write_text("version 1\n")
    assert list(large_file_pointers(tmp_path)) == ["big.tar"]
