"""Find and read a JSON value in a text of a model.

Stricter than Python's parser where documents could mean two things: duplicate keys, `NaN` and
`Infinity`, and numbers that no float holds are refused. Depth and size are bounded, so that
whatever looks at the value afterwards is bounded, too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

MAX_DEPTH: Final = 200
MAX_VALUES: Final = 1_000_000
LAST_CHARS: Final = 1024 * 1024
"""`last` looks at this much of the end of a text."""
_SCALARS: Final = frozenset({str, bool, type(None)})
_MAX_BITS: Final = 1023
_MAX_TRIES: Final = 100
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n]*)$", re.MULTILINE)
_BRACKETS: Final = re.compile(r"[\[\]{}]")
# A string ends with its line even where it is not closed, so that no place is looked at twice.
_BRACKETS_OUTSIDE_STRINGS: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|[\[\]{}]')
_CLOSES: Final = {"]": "[", "}": "{"}


class NotJson(ValueError):
    """A text that holds no JSON value, or one that is refused; its words are for people."""


def found_json(text: str, find: str, most: int | None = None) -> Any:
    """Find and read a value.

    Args:
        text: what a model wrote.
        find: `whole`: the text is JSON and nothing else; `block`: the last fenced block marked
            `json`, else the last one without a mark; `last`: the last object or array (or the
            whole text, where that is JSON).
        most: values it may consist of; None for `MAX_VALUES`.

    Raises:
        NotJson: there is none, or it is refused.
    """
    if find == "block":
        return read_json(_last_block(text), most)
    if find == "last":
        return _last_value(text, most)
    return read_json(text, most)


def read_json(text: str, most: int | None = None) -> Any:
    """Read a text that is JSON, outer white space aside; raise `NotJson` where it is not."""
    try:
        value = json.loads(text.strip(), object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise NotJson(message) from error
    except RecursionError as error:
        raise NotJson(f"nested deeper than {MAX_DEPTH}") from error
    except NotJson:
        raise
    except ValueError as error:  # more digits than Python reads
        raise NotJson("a number with too many digits") from error
    check_bounds(value, most)
    return value


def check_bounds(value: Any, most: int | None = None) -> None:
    """Raise `NotJson` where a value is too deep, too large or holds a number that is not finite."""
    most = MAX_VALUES if most is None else most
    count = 0
    level: list[Any] = [value]
    depth = 0
    while level:
        count += len(level)
        if count > most:
            raise NotJson(f"more than {most} values")
        if depth > MAX_DEPTH:
            raise NotJson(f"nested deeper than {MAX_DEPTH}")
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict:
                if any(type(key) is not str for key in item):
                    raise NotJson("a key that is not text")
                below.extend(item.values())
            elif kind is list:
                below.extend(item)
            elif kind is float:
                if not math.isfinite(item):
                    raise NotJson("a number too large for any float")
            elif kind is int:
                # What computes with it would raise, and the scorer with it.
                if item.bit_length() > _MAX_BITS:
                    raise NotJson("a number too large for any float")
            elif kind not in _SCALARS:
                raise NotJson(f"a {kind.__name__} is not JSON")
        level = below
        depth += 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NotJson(f"the key {key[:80]!r} stands twice in one object")
            seen.add(key)
    return found


def _constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON")


def _last_block(text: str) -> str:
    """Give the content of the last closed block that is marked `json`, else of one unmarked."""
    fence = label = ""
    start = 0
    marked = unmarked = None
    for match in _FENCE.finditer(text):
        if not fence:
            fence, start = match[1], match.end()
            label = match[2].strip().lower()
        elif match[1].startswith(fence) and not match[2].strip():
            if label == "json":
                marked = (start, match.start())
            elif not label:
                unmarked = (start, match.start())
            fence = ""
    found = marked or unmarked
    if found is None:
        raise NotJson("no closed block ```json")
    return text[slice(*found)]


def _last_value(text: str, most: int | None) -> Any:
    try:
        return read_json(text, most)
    except NotJson:
        end = text[-LAST_CHARS:]
    first: NotJson | None = None
    # A lone quote in prose hides the brackets of its line from the first pattern.
    for pattern in (_BRACKETS_OUTSIDE_STRINGS, _BRACKETS):
        for start, stop in _last_spans(end, pattern):
            try:
                return read_json(end[start:stop], most)
            except NotJson as error:
                first = first or error
    raise first or NotJson("no JSON object or array in it")


def _last_spans(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Give pairs of brackets that match, the last outermost first; a bounded number of them.

    A pair inside one that is not JSON is looked at, too. The lengths of all that is given add up
    to at most four times the text's.
    """
    open_at: list[int] = []
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        sign = match[0]
        if sign in "[{":
            open_at.append(match.start())
        elif sign in _CLOSES:
            if open_at and text[open_at[-1]] == _CLOSES[sign]:
                spans.append((open_at.pop(), match.end()))
            else:
                open_at.clear()
    chars = 4 * len(text)
    # In order of their ends a pair comes after those inside it: backwards is outermost first.
    for tries, (start, stop) in enumerate(reversed(spans)):
        chars -= stop - start
        if tries >= _MAX_TRIES or chars < 0:
            return
        yield start, stop
