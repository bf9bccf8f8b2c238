"""Read TOML into values that remember where they were written.

`tomllib` reads the values and judges the syntax; it says no positions. A second walk over text
that is known to be well formed finds those, so it need not judge anything.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from steelyard.config.errors import Where
from steelyard.config.source import FieldPath, Malformed, Node, Origin, Unreadable, path_text

MAX_BYTES: Final = 1024 * 1024
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")
_SCALAR: Final = re.compile(r"[^,\]}\n#]+")
_MAX_DEPTH: Final = 50

Place = tuple[int, int]
"""Line and column, from 1."""


def read_toml(path: Path, *, shown: str, layer: str = "file") -> Node:
    """Read a TOML file into nodes.

    Args:
        path: the file.
        shown: how messages name it.
        layer: the name that values remember.

    Raises:
        Unreadable: it is not there, too large, no text or nested too deep.
        Malformed: it is not well formed.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}", where=Where(shown)) from error
    if len(raw) > MAX_BYTES:
        raise Unreadable(f"larger than {MAX_BYTES // 2**20} MiB", where=Where(shown))
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable("not UTF-8 text", where=Where(shown, line)) from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said, line, column = _said(str(error), text)
        raise Malformed(
            f"not well-formed TOML: {said}", where=Where(shown, line, column)
        ) from error
    except RecursionError as error:
        raise Unreadable("nested too deep", where=Where(shown)) from error
    finder = _Finder(text)
    finder.walk()
    return _node(values, (), finder, Origin(layer, Where(shown, 1, 1)))


def _said(message: str, text: str) -> tuple[str, int, int]:
    found = _PLACE.search(message)
    said = _PLACE.sub("", message).strip().rstrip(".")
    if found is None or found[1] is None:
        return said, text.count("\n") + 1, 1
    return said, int(found[1]), int(found[2])


def _node(value: Any, path: FieldPath, finder: _Finder, above: Origin) -> Node:
    if len(path) > _MAX_DEPTH:
        raise Unreadable("nested too deep", where=above.where)
    key, place = finder.keys.get(path), finder.values.get(path)
    field = path_text(path) or None
    file = above.where.file
    at = place or key or (above.where.line, above.where.column)
    where = Where(file, at[0], at[1], field)
    origin = Origin(above.layer, where, key)
    if isinstance(value, dict):
        below = {name: _node(item, (*path, name), finder, origin) for name, item in value.items()}
        return Node(below, origin)
    if isinstance(value, list):
        items = [_node(item, (*path, n), finder, origin) for n, item in enumerate(value)]
        return Node(items, origin)
    return Node(value, origin)


class _Finder:
    """Notes where keys and values stand in well-formed text."""

    def __init__(self, text: str) -> None:
        self.keys: dict[FieldPath, Place] = {}
        self.values: dict[FieldPath, Place] = {}
        self._text = text
        self._at = 0
        self._line = 1
        self._line_start = 0
        self._lists: dict[FieldPath, int] = {}
        """How many tables `[[…]]` has added to each list."""

    def walk(self) -> None:
        """Walk the whole document."""
        table: FieldPath = ()
        while True:
            self._skip(newlines=True)
            if self._at >= len(self._text):
                return
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    # -- lines -------------------------------------------------------------------------------

    def _header(self) -> FieldPath:
        is_list = self._text.startswith("[[", self._at)
        self._step(2 if is_list else 1)
        names = self._key()
        path: FieldPath = ()
        for number, (name, place) in enumerate(names, 1):
            path = (*path, name)
            self.keys.setdefault(path, place)
            if number == len(names) and is_list:
                index = self._lists[path] = self._lists.get(path, -1) + 1
                path = (*path, index)
                self.keys[path] = place
            elif path in self._lists:
                path = (*path, self._lists[path])
        self._step(2 if is_list else 1)
        return path

    def _pair(self, table: FieldPath) -> None:
        path = table
        for name, place in self._key():
            path = (*path, name)
            self.keys.setdefault(path, place)
        self._step(1)  # the equals sign
        self._skip()
        self._value(path)

    def _key(self) -> list[tuple[str, Place]]:
        names = []
        while True:
            self._skip()
            place = self._place()
            if self._text[self._at] in "\"'":
                names.append((_key_text(self._quoted()), place))
            else:
                found = _BARE.match(self._text, self._at)
                word = found[0] if found is not None else ""
                self._step(max(len(word), 1))
                names.append((word, place))
            self._skip()
            if self._text[self._at] != ".":
                return names
            self._step(1)

    # -- values ------------------------------------------------------------------------------

    def _value(self, path: FieldPath) -> None:
        self.values[path] = self._place()
        first = self._text[self._at]
        if first in "\"'":
            self._quoted()
        elif first == "[":
            self._list(path)
        elif first == "{":
            self._inline(path)
        elif (found := _SCALAR.match(self._text, self._at)) is not None:
            self._step(len(found[0]))

    def _list(self, path: FieldPath) -> None:
        self._step(1)
        index = 0
        while True:
            self._skip(newlines=True)
            if self._text[self._at] == "]":
                self._step(1)
                return
            if self._text[self._at] == ",":
                self._step(1)
                continue
            self._value((*path, index))
            index += 1

    def _inline(self, path: FieldPath) -> None:
        self._step(1)
        while True:
            self._skip(newlines=True)
            if self._text[self._at] == "}":
                self._step(1)
                return
            if self._text[self._at] == ",":
                self._step(1)
                continue
            self._pair(path)

    def _quoted(self) -> str:
        """Pass a string; give it as it is written, its quotes with it."""
        quote = self._text[self._at]
        is_long = self._text.startswith(quote * 3, self._at)
        mark = quote * 3 if is_long else quote
        at = self._at + len(mark)
        while not self._text.startswith(mark, at):
            at += 2 if quote == '"' and self._text[at] == "\\" else 1
        at += len(mark)
        while is_long and at < len(self._text) and self._text[at] == quote:
            at += 1  # up to two quotes may end the text itself
        written = self._text[self._at : at]
        self._step(at - self._at)
        return written

    # -- the text ----------------------------------------------------------------------------

    def _place(self) -> Place:
        return self._line, self._at - self._line_start + 1

    def _step(self, count: int) -> None:
        end = self._at + count
        while (newline := self._text.find("\n", self._at, end)) >= 0:
            self._line += 1
            self._at = self._line_start = newline + 1
        self._at = end

    def _skip(self, *, newlines: bool = False) -> None:
        """Pass blanks and comments, and the ends of lines where asked to."""
        while self._at < len(self._text):
            here = self._text[self._at]
            if here in " \t" or (newlines and here == "\n"):
                self._step(1)
            elif here == "#" and newlines:
                end = self._text.find("\n", self._at)
                self._step((len(self._text) if end < 0 else end) - self._at)
            else:
                return


def _key_text(written: str) -> str:
    return str(tomllib.loads(f"key = {written}")["key"])
