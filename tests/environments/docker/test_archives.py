"""Tar streams: what a hostile one holds is left out, what a folder holds comes through."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.environments.docker import archives
from steelyard.environments.docker.archives import Bytes, Entry
from steelyard.environments.files import Owner

NOBODY = Owner(1000, 1000)


def _archive(*entries: tuple[str, bytes, bytes | str]) -> Bytes:
    """Make an archive of entries: name, type, content or what it links to."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, kind, content in entries:
            header = tarfile.TarInfo(name)
            header.type, header.mode = kind, 0o755
            if isinstance(content, str):
                header.linkname = content
            header.size = len(content) if kind == tarfile.REGTYPE else 0
            tar.addfile(header, io.BytesIO(content) if isinstance(content, bytes) else None)
    return _reader(data.getvalue())


def _reader(data: bytes, piece: int = 1000) -> Bytes:
    pieces = (data[start : start + piece] for start in range(0, len(data), piece))
    return Bytes(lambda: next(pieces, b""))


def _found(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_names_that_lead_out_devices_and_links_outside_are_left_out(tmp_path: Path) -> None:
    target = tmp_path / "out"
    archives.unpack(
        _archive(
            ("d/", tarfile.DIRTYPE, b""),
            ("d/../../escaped", tarfile.REGTYPE, b"x"),
            ("d/file", tarfile.REGTYPE, b"kept"),
            ("d/fifo", tarfile.FIFOTYPE, b""),
            ("d/disk", tarfile.BLKTYPE, b""),
            ("d/absolute", tarfile.SYMTYPE, "/etc/passwd"),
            ("d/up", tarfile.SYMTYPE, "../../x"),
            ("d/in", tarfile.SYMTYPE, "file"),
            ("d/again", tarfile.LNKTYPE, "d/file"),
            ("d/hard", tarfile.LNKTYPE, "../../etc/passwd"),
        ),
        target,
    )
    assert _found(target) == ["again", "file", "in"]
    assert (target / "again").read_bytes() == b"kept"
    assert _found(tmp_path) == ["out", "out/again", "out/file", "out/in"]


def test_nothing_is_written_through_a_link_that_came_before(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    target = tmp_path / "out"
    with pytest.raises((OSError, ValueError)):
        archives.unpack(
            _archive(
                ("d/", tarfile.DIRTYPE, b""),
                ("d/link", tarfile.SYMTYPE, "../host"),
                ("d/link/escaped", tarfile.REGTYPE, b"x"),
            ),
            target,
        )
    assert _found(tmp_path / "host") == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: _archive(("d/" + "x/" * 200, tarfile.DIRTYPE, b"")),
        lambda: _archive(("fifo", tarfile.FIFOTYPE, b"")),
        lambda: _archive(),
    ],
)
def test_what_is_too_deep_or_neither_file_nor_folder_is_refused(
    make: Callable[[], Bytes], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"deeper|neither"):
        archives.unpack(make(), tmp_path / "out")


def test_a_torn_archive_is_no_whole_one(tmp_path: Path) -> None:
    whole = b"".join(archives.packed_tree(_folder(tmp_path), NOBODY))
    with pytest.raises((tarfile.TarError, OSError)):
        archives.unpack(_reader(whole[: len(whole) // 2]), tmp_path / "out")


def _folder(base: Path) -> Path:
    folder = base / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "big").write_bytes(os.urandom(3 * archives.BLOCK_BYTES + 7))
    (folder / "é\udce9").write_bytes(b"a name that is no UTF-8")
    (folder / "link").symlink_to("sub/big")
    os.mkfifo(folder / "fifo")
    return folder


def test_a_folder_comes_through_in_blocks_whatever_its_names(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    blocks = list(archives.packed_tree(folder, NOBODY))
    assert max(len(block) for block in blocks) < 3 * archives.BLOCK_BYTES
    with tarfile.open(fileobj=io.BytesIO(b"".join(blocks))) as tar:
        names = {member.name: member for member in tar}
        assert set(names) == {"sub", "sub/big", "é\udce9", "link"}
        assert {(one.uid, one.gid) for one in names.values()} == {(1000, 1000)}
        assert names["link"].linkname == "sub/big"
        file = tar.extractfile("sub/big")
        assert file is not None
        assert file.read() == (folder / "sub" / "big").read_bytes()


def test_zeros_become_holes_and_the_size_stays(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 5)
    packed = archives.packed_tree(source, NOBODY, name="hole")
    archives.unpack(Bytes(lambda: next(packed, b"")), tmp_path / "out")
    status = (tmp_path / "out").stat()
    assert status.st_size == 64 * 1024 * 1024 + 5
    assert status.st_blocks * 512 < 1024 * 1024


@pytest.mark.parametrize("piece", [70_000, 700_000, 3_000_001])
def test_a_hole_is_found_wherever_the_pieces_end(piece: int, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(32 * 1024 * 1024)
        file.seek(0, os.SEEK_END)
        file.write(b"end")
    whole = b"".join(archives.packed_tree(source, NOBODY, name="hole"))
    archives.unpack(_reader(whole, piece), tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == source.read_bytes()
    assert (tmp_path / "out").stat().st_blocks * 512 < 1024 * 1024


def test_what_is_collected_is_bounded_and_never_a_link(tmp_path: Path) -> None:
    wanted = ArtifactSpec(("d",), (), ("skip",), max_bytes=4, max_files=3)
    found = Collected()
    archives.collect(
        _archive(
            ("d/", tarfile.DIRTYPE, b""),
            ("d/a", tarfile.REGTYPE, b"12"),
            ("d/large", tarfile.REGTYPE, b"12345"),
            ("d/link", tarfile.SYMTYPE, "a"),
            ("d/skip/", tarfile.DIRTYPE, b""),
            ("d/skip/b", tarfile.REGTYPE, b"1"),
            ("d/c", tarfile.REGTYPE, b"1"),
        ),
        ("d",), wanted, tmp_path, found, taken=set(), by_pattern=False,
    )  # fmt: skip
    assert _found(tmp_path) == ["d", "d/a", "d/c"]
    assert (found.files, found.bytes) == (2, 3)
    assert found.left_out == {"above 4 bytes in all": 1, "link": 1}


def test_small_entries_make_a_whole_archive() -> None:
    data = archives.packed_entries([Entry("d", 0o755), Entry("d/f", 0o640, b"x" * 600)], NOBODY)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert [(one.name, one.isdir(), one.mode) for one in tar] == [
            ("d", True, 0o755),
            ("d/f", False, 0o640),
        ]
