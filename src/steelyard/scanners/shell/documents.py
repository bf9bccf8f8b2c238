"""Take here-documents out of shell text, leaving every other character where it was.

They are most of a long command and no syntax of it; the grammar's own handling of what follows
`<<EOF` on its line loses pipes. Each becomes a redirection from a name that only we know.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

MAX_DOCUMENTS: Final = 36
MARK: Final = "%"
_MAX_TRIED: Final = 200
_MAX_DELIMITER: Final = 64
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_BEGIN: Final = re.compile(
    r"(?<!<)<<(?!<)(-?)[ \t]*(?:'([^'\n]{1,64})'|\"([^\"\n]{1,64})\"|\\?(\w{1,64}))"
)


@dataclass(frozen=True, slots=True)
class Document:
    """A here-document."""

    text: str
    is_literal: bool
    """True where its delimiter was quoted: no variables in it."""


def without_documents(text: str) -> tuple[str, dict[str, Document]]:
    """Give the text with documents blanked, of the same length, and the documents by name.

    A name is `MARK` and one character, as the target of `<`.
    """
    if "<<" not in text:
        return text, {}
    lines = _lines(text)
    pieces: list[str] = []
    found: dict[str, Document] = {}
    at = tried = cursor = 0
    while len(found) < MAX_DOCUMENTS and tried < _MAX_TRIED:
        begin = _BEGIN.search(text, cursor)
        end_of_line = text.find("\n", begin.end()) if begin is not None else -1
        if begin is None or end_of_line < 0:
            break
        body_at = end_of_line + 1
        while begin is not None and tried < _MAX_TRIED and len(found) < MAX_DOCUMENTS:
            tried += 1
            word = begin[2] or begin[3] or begin[4]
            closed = _closed(lines, body_at, word, strips=bool(begin[1]))
            if closed is not None:
                name = f"{MARK}{_DIGITS[len(found)]}"
                body = text[body_at : closed[0]]
                if begin[1]:
                    body = re.sub(r"^\t+", "", body, flags=re.MULTILINE)
                found[name] = Document(body, begin[4] is None or "\\" in begin.group())
                pieces += [text[at : begin.start()], f"<{name}".ljust(len(begin.group()))]
                at, body_at = begin.end(), closed[1]
            begin = _BEGIN.search(text, begin.end(), end_of_line)
        if body_at > end_of_line + 1:
            pieces += [text[at : end_of_line + 1], " " * (body_at - end_of_line - 1)]
            at = body_at
        cursor = body_at
    pieces.append(text[at:])
    return "".join(pieces), found


def _lines(text: str) -> dict[str, list[int]]:
    """Give where each short line begins, by its text."""
    places: dict[str, list[int]] = {}
    at = 0
    for line in text.split("\n"):
        if len(line) <= _MAX_DELIMITER + 8:
            places.setdefault(line.rstrip("\r"), []).append(at)
            if line.startswith("\t"):
                places.setdefault("\t" + line.strip("\t\r"), []).append(at)
        at += len(line) + 1
    return places


def _closed(
    lines: dict[str, list[int]], at: int, word: str, *, strips: bool
) -> tuple[int, int] | None:
    """Find where a document ends and where the text goes on; None where nothing closes it."""
    best: tuple[int, int] | None = None
    for form in (word, f"\t{word}") if strips else (word,):
        places = lines.get(form, ())
        place = bisect_left(places, at)
        if place < len(places) and (best is None or places[place] < best[0]):
            # An indented line may have more tabs than one: they are blanks all the same.
            best = places[place], places[place] + len(form)
    return best
