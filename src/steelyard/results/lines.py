"""Lines that prove themselves: a JSON object, a tab, its CRC-32 in 8 hex digits, a newline.

A reader stops at the last valid line and says why. Split on `\\n` alone: JSON text may hold
U+2028, which `str.splitlines` takes for a line's end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Final
from zlib import crc32

import orjson

from steelyard.results.json_values import version_number
from steelyard.results.plain_files import open_plain

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
_CHUNK_BYTES: Final = 1 << 20
_LINE_BYTES: Final = 8 * 1024
"""What is read at first of a single line; most have less."""
_CLOSING_BYTES: Final = 9
"""A tab and eight hex digits."""
_MAX_DEPTH: Final = 100
_MAX_INT: Final = 2**63


def encode(obj: dict[str, Any], redact: Callable[[bytes], bytes] | None = None) -> bytes:
    """Write one object as a line.

    What JSON cannot hold (lone surrogates, integers over 64 bits, foreign objects, nesting without
    end) is replaced rather than refused: a record must not be lost over its content.

    Args:
        obj: the object.
        redact: applied to the JSON before its checksum is taken; must leave it valid JSON.
    """
    body = redacted_json(obj, redact)
    return b"%b\t%08x\n" % (body, crc32(body))


def redacted_json(
    obj: Any, redact: Callable[[bytes], bytes] | None, option: int | None = None
) -> bytes:
    """Write JSON as `json_bytes` does, then redact it; what comes out is valid JSON still."""
    body = json_bytes(obj, option)
    return body if redact is None else _redacted(body, redact, option)


def json_bytes(obj: Any, option: int | None = None) -> bytes:
    """Write JSON as `encode` does, without checksum; `option` is orjson's."""
    try:
        return orjson.dumps(obj, option=option)
    except (TypeError, RecursionError):
        return orjson.dumps(_cleaned(obj, 0), option=option)


def decode(line: bytes) -> dict[str, Any] | None:
    """Read one line without its newline; None where its checksum or form is wrong."""
    body = line[:-_CLOSING_BYTES]
    if line[-_CLOSING_BYTES:] != b"\t%08x" % crc32(body):
        return None
    try:
        obj = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return obj if isinstance(obj, dict) else None


class DamageKind(StrEnum):
    """Why reading stopped before the end of a file."""

    TORN = "torn"
    """The tail is not a whole line: the writer was cut off."""
    CORRUPT = "corrupt"
    """A line whose checksum is wrong stands before others, which are not used."""
    FUTURE = "future"
    """A line says a version of its schema that this version does not know."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Where reading stopped, and why."""

    kind: DamageKind
    offset: int
    """The first byte that was not used."""
    detail: str

    def __str__(self) -> str:
        return f"{self.detail} at byte {self.offset}"


class LineFile:
    """Iterates over (offset, object) of a file of lines, up to the last valid line.

    `damage` and `end` are set when the iteration has ended; a file that is not there is empty.
    Iterating raises `OSError` where it is no regular file, or cannot be read.
    """

    def __init__(self, path: Path, *, known: dict[str, int] | None = None, start: int = 0) -> None:
        """Read a file.

        Args:
            path: the file.
            known: the newest version of each schema that the caller understands.
            start: the offset of a line to start from.
        """
        self.path = path
        self.damage: Damage | None = None
        self.end = start
        self._known = known or {}
        self._fine: object = None
        """The schema that was last found to be known: mostly that of all lines."""

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            file = open_plain(self.path)
        except FileNotFoundError:
            return
        with file:
            yield from self._scan(file)

    def _scan(self, file: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
        for offset, line, is_whole in _split(file, self.end):
            obj = decode(line) if is_whole else None
            if obj is None:
                self.damage = _judge(file, offset, line, is_whole)
                return
            schema = obj.get("schema")
            if schema is not None and schema != self._fine:
                future = self._future(schema)
                if future is not None:
                    self.damage = Damage(DamageKind.FUTURE, offset, future)
                    return
            self.end = offset + len(line) + 1
            yield offset, obj

    def _future(self, schema: object) -> str | None:
        name, _, version = str(schema).partition("/")
        newest, number = self._known.get(name), version_number(version)
        if newest is None and self._known:
            return f"the schema {str(schema)[:80]!r} is not one of this file"
        if newest is not None and (number is None or number > newest):
            said = f"{str(schema)[:80]!r}"
            return f"the schema {said} is newer than {name}/{newest}, the newest known"
        self._fine = schema
        return None


def read_line(fd: int, offset: int) -> dict[str, Any] | None:
    """Read the line that starts at `offset` of an open file; None where it is not valid."""
    line = b""
    while b"\n" not in line and len(line) < MAX_LINE_BYTES:
        piece = os.pread(fd, max(_LINE_BYTES, len(line)), offset + len(line))
        if not piece:
            return None
        line += piece
    text, end, _ = line.partition(b"\n")
    return decode(text) if end else None


def _split(file: BinaryIO, start: int) -> Iterator[tuple[int, bytes, bool]]:
    """Give (offset, line without newline, whether it had one)."""
    file.seek(start)
    offset, held_bytes = start, 0
    held: list[bytes] = []
    while chunk := file.read(_CHUNK_BYTES):
        # Joined where a line ends: a disk's zeros would else be copied once for every piece.
        held.append(chunk)
        held_bytes += len(chunk)
        if b"\n" in chunk:
            *lines, rest = b"".join(held).split(b"\n")
            for line in lines:
                yield offset, line, True
                offset += len(line) + 1
            held, held_bytes = [rest], len(rest)
        if held_bytes > MAX_LINE_BYTES:
            break
    if held_bytes:
        yield offset, b"".join(held), False


def _judge(file: BinaryIO, offset: int, line: bytes, is_whole: bool) -> Damage:
    if not is_whole:
        return Damage(DamageKind.TORN, offset, f"a torn line of {len(line)} bytes")
    file.seek(offset + len(line) + 1)
    if file.read(1):
        return Damage(DamageKind.CORRUPT, offset, "a line with a wrong checksum before others")
    return Damage(DamageKind.CORRUPT, offset, "a last line with a wrong checksum")


def _redacted(body: bytes, redact: Callable[[bytes], bytes], option: int | None) -> bytes:
    redacted = redact(body)
    if redacted == body:
        return body
    try:
        orjson.loads(redacted)
    except orjson.JSONDecodeError:
        # A short secret may have matched JSON's own marks: then each string goes by itself.
        return orjson.dumps(_redacted_strings(orjson.loads(body), redact), option=option)
    return redacted


def _redacted_strings(value: Any, redact: Callable[[bytes], bytes]) -> Any:
    if isinstance(value, str):
        return redact(value.encode()).decode("utf-8", "replace")
    if isinstance(value, dict):
        return {
            _redacted_strings(key, redact): _redacted_strings(item, redact)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_redacted_strings(item, redact) for item in value]
    return value


def _cleaned(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return "… (nested too deep)"
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return value if -_MAX_INT <= value < 2 * _MAX_INT else str(value)
    if isinstance(value, dict):
        return {_cleaned(str(k), depth): _cleaned(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item, depth + 1) for item in value]
    return _cleaned(str(value), depth)
