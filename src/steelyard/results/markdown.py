"""Markdown of which strangers' texts are a part: cells, tables, code spans. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from steelyard.config import printable

MAX_CODE_CHARS: Final = 120
_PIPES: Final = re.compile(r"\\*\|")
_MARKS: Final = re.compile(r"([\\`*_\[\]<>|#])")


def escaped(value: object) -> str:
    """Copy a text so that none of it is markup, on one line."""
    return _MARKS.sub(r"\\\1", printable.spaced(str(value)))


def code(value: object, max_chars: int = MAX_CODE_CHARS) -> str:
    """Quote a text as code: in it nothing is markup, a link, or a mention of anybody.

    Fit for a table's cell; backticks become apostrophes, and what is long is cut.
    """
    text = printable.spaced(str(value)).strip()
    if len(text) > max_chars:
        text = f"{text[: max_chars - 1]}…"
    # A backslash before a pipe would take the pipe's own escape away.
    text = _PIPES.sub(r"\\|", text.replace("`", "'"))
    return f"`{text or ' '}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table; the cells are Markdown already."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
