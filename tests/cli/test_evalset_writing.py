"""What `-o FILE` does to what is there already."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from steelyard.cli.evalset_writing import NotWritten, write_bytes


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reading = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reading.start()
    write_bytes(iter([b"a,b\n", b"1,2\n"]), pipe)
    reading.join(10)
    assert found == [b"a,b\n1,2\n"]
    assert pipe.is_fifo()


def test_a_device_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    # Named by a link: were it replaced after all, the machine would keep its device.
    null, full = tmp_path / "null", tmp_path / "full"
    null.symlink_to("/dev/null")
    full.symlink_to("/dev/full")
    write_bytes(iter([b"x"]), null)
    assert null.is_symlink()
    assert null.is_char_device()
    with pytest.raises(NotWritten, match="No space left"):
        write_bytes(iter([b"x"]), full)
    assert full.is_char_device()


def test_a_link_to_a_file_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "rows.csv", tmp_path / "latest.csv"
    file.write_bytes(b"old")
    link.symlink_to(file)
    write_bytes(iter([b"new"]), link)
    assert (file.read_bytes(), link.is_symlink()) == (b"new", True)
    assert sorted(tmp_path.iterdir()) == [link, file]
