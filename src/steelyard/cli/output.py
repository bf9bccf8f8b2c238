"""Print tables for people and JSON for programs; nothing is cut silently, no colour is forced."""

from __future__ import annotations

import errno
import json
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from steelyard.cli.errors import hush_stdout, problem_json
from steelyard.config import printable
from steelyard.config.errors import Problem

_READER_GONE: Final = (errno.EPIPE, errno.EIO)
"""What a pipe without a reader says, and a terminal that was closed."""


def say(text: str = "") -> None:
    """Print a line to standard output; a closed pipe or terminal ends it, not the command."""
    try:
        sys.stdout.write(f"{printable.lines(text)}\n")
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in _READER_GONE:
            raise
        hush_stdout()


def note(text: str) -> None:
    """Print a line to standard error."""
    try:
        sys.stderr.write(f"{printable.lines(text)}\n")
        sys.stderr.flush()
    except OSError as error:
        if error.errno not in _READER_GONE:
            raise


def print_json(document: Any) -> None:
    """Print one JSON document."""
    say(printable.json_lines(json.dumps(document, ensure_ascii=False, indent=2, default=str)))


def print_warnings(problems: Sequence[Problem]) -> None:
    """Print warnings to standard error, each with its place and remedy."""
    for problem in problems:
        text = str(problem).replace("\n  ", "\n         ")
        note(f"warning: {text}")


def warnings_json(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """Give warnings as JSON."""
    return [problem_json(problem) for problem in problems]


def counted(count: int, noun: str) -> str:
    """Write a number of things: `1 run`, `2 runs`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def uses_colour() -> bool:
    """True where colour is welcome: a terminal that is not dumb, and no `NO_COLOR`."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, columns as wide as their widest cell; long lines are the terminal's."""
    for line in table_lines(columns, rows):
        say(line)


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lay out a table: numbers to the right, text to the left, control characters escaped."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [
        max([_width(title), *(_width(row[i]) for row in cells if i < len(row))])
        for i, title in enumerate(columns)
    ]
    numeric = [
        bool(rows) and all(_is_number(row[i]) for row in rows if i < len(row))
        for i in range(len(columns))
    ]
    lines = [_line(list(columns), widths, numeric)]
    lines += [_line(row, widths, numeric) for row in cells]
    return lines


def pairs_lines(pairs: Mapping[str, object], indent: str = "  ") -> list[str]:
    """Lay out names and values, one pair a line."""
    width = max((_width(name) for name in pairs), default=0)
    return [
        f"{indent}{name}{' ' * (width - _width(name))}  {_cell(value)}".rstrip()
        for name, value in pairs.items()
    ]


def _line(cells: list[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = []
    for cell, width, is_number in zip(cells, widths, numeric, strict=False):
        space = " " * (width - _width(cell))
        parts.append(space + cell if is_number else cell + space)
    return "  ".join(parts).rstrip()


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    # A model's or a file's text must not move the cursor or paint the terminal.
    return printable.one_line(str(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | None) and not isinstance(value, bool)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    marks = sum(unicodedata.combining(char) > 0 for char in text)
    return len(text) + wide - marks
