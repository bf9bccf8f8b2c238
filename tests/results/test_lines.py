"""Lines prove themselves: no truncation or flipped byte makes a reader use a wrong one."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.results.lines import DamageKind, LineFile, decode, encode, read_line

json_objects = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


def read(data: bytes, **options: Any) -> tuple[list[dict[str, Any]], LineFile]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        scan = LineFile(path, **options)
        return [obj for _, obj in scan], scan


@settings(deadline=None)
@given(st.lists(json_objects, max_size=5))
def test_what_was_written_is_read(objects: list[dict[str, Any]]) -> None:
    found, scan = read(b"".join(map(encode, objects)))
    assert found == objects
    assert scan.damage is None


@settings(deadline=None)
@given(st.lists(json_objects, min_size=1, max_size=5), st.data())
def test_a_truncated_file_gives_its_whole_lines(
    objects: list[dict[str, Any]], data: st.DataObject
) -> None:
    lines = [encode(obj) for obj in objects]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    found, scan = read(whole[:cut])
    complete = sum(sum(map(len, lines[: i + 1])) <= cut for i in range(len(lines)))
    assert found == objects[:complete]
    is_clean = cut == sum(map(len, lines[:complete]))
    assert (scan.damage is None) == is_clean
    assert scan.end == sum(map(len, lines[:complete]))
    if scan.damage is not None:
        assert scan.damage.kind is DamageKind.TORN


@settings(deadline=None)
@given(st.lists(json_objects, min_size=1, max_size=5), st.data())
def test_a_flipped_byte_ends_the_reading_before_its_line(
    objects: list[dict[str, Any]], data: st.DataObject
) -> None:
    lines = [encode(obj) for obj in objects]
    whole = bytearray(b"".join(lines))
    position = data.draw(st.integers(0, len(whole) - 1))
    whole[position] ^= data.draw(st.integers(1, 255))
    found, scan = read(bytes(whole))
    hit = next(i for i in range(len(lines)) if position < sum(map(len, lines[: i + 1])))
    assert found == objects[:hit]
    assert scan.damage is not None


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(data: bytes) -> None:
    read(data)


def test_a_bit_flip_before_other_lines_is_called_corrupt() -> None:
    lines = [encode({"n": n}) for n in range(3)]
    broken = lines[1].replace(b"1", b"2", 1)
    found, scan = read(lines[0] + broken + lines[2])
    assert found == [{"n": 0}]
    assert scan.damage is not None
    assert scan.damage.kind is DamageKind.CORRUPT
    assert scan.damage.offset == len(lines[0])


def test_a_tail_of_zeros_is_torn() -> None:
    found, scan = read(encode({"n": 0}) + b"\0" * 4096)
    assert found == [{"n": 0}]
    assert scan.damage is not None
    assert scan.damage.kind is DamageKind.TORN


@pytest.mark.parametrize("schema", ["attempt/2", "attempt/x", "other/1"])
def test_a_future_version_is_refused_by_its_name(schema: str) -> None:
    data = encode({"schema": "attempt/1"}) + encode({"schema": schema})
    found, scan = read(data, known={"attempt": 1})
    assert len(found) == 1
    assert scan.damage is not None
    assert scan.damage.kind is DamageKind.FUTURE
    assert schema in scan.damage.detail


def test_a_line_separator_in_a_text_does_not_split_a_line() -> None:
    obj = {"answer": "one\u2028two\u2029three\x85four\x0bfive"}
    assert read(encode(obj) + encode(obj))[0] == [obj, obj]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        (2**70, str(2**70)),
        (Path("a/b"), "a/b"),
    ],
)
def test_what_json_cannot_hold_is_replaced_and_not_lost(value: Any, kept: Any) -> None:
    assert read(encode({"v": value}))[0] == [{"v": kept}]


def test_endless_nesting_is_cut() -> None:
    value: Any = []
    for _ in range(5000):
        value = [value]
    found, scan = read(encode({"v": value}))
    assert len(found) == 1
    assert scan.damage is None


def test_a_line_is_redacted_before_its_checksum() -> None:
    line = encode({"v": "the secret"}, lambda data: data.replace(b"secret", b"***"))
    assert decode(line[:-1]) == {"v": "the ***"}


def test_redaction_that_hits_marks_of_json_still_leaves_json() -> None:
    line = encode({"v": '":"'}, lambda data: data.replace(b'":"', b"***"))
    assert decode(line[:-1]) is not None


def test_a_body_that_is_no_object_is_no_line() -> None:
    body = orjson.dumps([1])
    from zlib import crc32

    assert decode(b"%b\t%08x" % (body, crc32(body))) is None


def test_one_line_is_read_by_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(encode({"n": 0}) + encode({"n": 1}))
    with path.open("rb") as file:
        assert read_line(file.fileno(), len(encode({"n": 0}))) == {"n": 1}
        assert read_line(file.fileno(), 3) is None


def test_reading_goes_on_from_an_offset() -> None:
    first = encode({"n": 0})
    assert read(first + encode({"n": 1}), start=len(first))[0] == [{"n": 1}]


def test_a_line_longer_than_a_chunk_is_read() -> None:
    obj = {"v": "x" * (3 << 20)}
    assert read(encode(obj) + encode({"n": 1}))[0] == [obj, {"n": 1}]
