"""Read JSON into nodes that remember where they were written.

Strict RFC 8259: no comments, no trailing commas, no NaN, duplicate keys refused. The standard
library's reader gives no places, hence this one; it is for settings, not for data.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from steelyard.config.errors import Problem, Where
from steelyard.config.source import (
    MAX_DEPTH,
    FieldPath,
    Malformed,
    Node,
    Origin,
    duplicate,
    path_text,
)

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_DECODER: Final = JSONDecoder()
_WORDS: Final = (("true", True), ("false", False), ("null", None))


def read_json(text: str, file: str, *, layer: str = "file", prefix: FieldPath = ()) -> Node:
    """Read one JSON document.

    Args:
        text: the document.
        file: how messages name it: a file, or an option.
        layer: the name that values remember.
        prefix: the path at which the document stands.

    Raises:
        Malformed: it is not well formed, with line and column; every duplicate key is listed.
    """
    return _Reader(text, file, layer).read(prefix)


class _Reader:
    """A recursive-descent reader over one text."""

    def __init__(self, text: str, file: str, layer: str) -> None:
        self._text = text
        self._file = file
        self._layer = layer
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._problems: list[Problem] = []

    def read(self, prefix: FieldPath) -> Node:
        at = self._skip(0)
        node, at = self._value(at, prefix, None, 0)
        at = self._skip(at)
        if at != len(self._text):
            raise self._fault(at, "more text after the end of the document")
        if self._problems:
            raise Malformed.of(self._problems)
        return node

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def _where(self, at: int, path: FieldPath) -> Where:
        return Where(self._file, *self._place(at), path_text(path) or None)

    def _fault(self, at: int, said: str) -> Malformed:
        return Malformed(f"not well-formed JSON: {said}", where=self._where(at, ()))

    def _value(
        self, at: int, path: FieldPath, key: tuple[int, int] | None, depth: int
    ) -> tuple[Node, int]:
        if depth > MAX_DEPTH:
            raise self._fault(at, f"nested more than {MAX_DEPTH} levels deep")
        origin = Origin(self._layer, self._where(at, path), key)
        start = self._text[at : at + 1]
        value: Any
        if start == "{":
            value, at = self._object(at, path, depth)
        elif start == "[":
            value, at = self._array(at, path, depth)
        elif start == '"':
            value, at = self._string(at)
        else:
            value, at = self._literal(at)
        return Node(value, origin), at

    def _string(self, at: int) -> tuple[str, int]:
        try:
            text, end = _DECODER.raw_decode(self._text, at)
        except JSONDecodeError as error:
            raise self._fault(error.pos, error.msg.lower()) from error
        return str(text), end

    def _literal(self, at: int) -> tuple[Any, int]:
        for word, value in _WORDS:
            if self._text.startswith(word, at):
                return value, at + len(word)
        found = _NUMBER.match(self._text, at)
        if not found or len(found[0]) > 1000:
            got = self._text[at : at + 12].split("\n")[0]
            raise self._fault(at, f"expected a value, found {got!r}" if got else "it ends early")
        if found[2] or found[3]:
            return float(found[0]), found.end()
        return int(found[0]), found.end()

    def _array(self, at: int, path: FieldPath, depth: int) -> tuple[list[Node], int]:
        items: list[Node] = []
        at = self._skip(at + 1)
        if self._text.startswith("]", at):
            return items, at + 1
        while True:
            node, at = self._value(at, (*path, len(items)), None, depth + 1)
            items.append(node)
            at = self._skip(at)
            if self._text.startswith("]", at):
                return items, at + 1
            at = self._comma(at, "]")

    def _object(self, at: int, path: FieldPath, depth: int) -> tuple[dict[str, Node], int]:
        value: dict[str, Node] = {}
        lines: dict[str, int] = {}
        at = self._skip(at + 1)
        if self._text.startswith("}", at):
            return value, at + 1
        while True:
            if not self._text.startswith('"', at):
                raise self._fault(at, "expected a key in double quotes")
            place = self._place(at)
            key_at = at
            key, at = self._string(at)
            at = self._skip(at)
            if not self._text.startswith(":", at):
                raise self._fault(at, f"expected `:` after the key {key!r}")
            node, at = self._value(self._skip(at + 1), (*path, key), place, depth + 1)
            if key in value:
                where = self._where(key_at, (*path, key))
                self._problems.append(duplicate(where, key, lines[key]))
            else:
                value[key], lines[key] = node, place[0]
            at = self._skip(at)
            if self._text.startswith("}", at):
                return value, at + 1
            at = self._comma(at, "}")

    def _comma(self, at: int, closing: str) -> int:
        if not self._text.startswith(",", at):
            raise self._fault(at, f"expected `,` or `{closing}`")
        return self._skip(at + 1)
