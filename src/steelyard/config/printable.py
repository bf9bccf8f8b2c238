"""Texts of others made safe to look at: they move no cursor, paint nothing, hide nothing."""

from __future__ import annotations

import re
from typing import Final

# Controls of both sets, soft hyphen, bidirectional marks, line separators, invisible characters,
# lone surrogates, tags. Not the joiners of emoji and scripts, nor wide spaces.
_CONTROLS: Final = "\x00-\x1f"
_CONTROLS_IN_LINES: Final = "\x00-\x08\x0b-\x1f"  # without tab and line end
_UNSEEN: Final = (
    f"{_CONTROLS}\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
_UNSAFE: Final = re.compile(f"[{_UNSEEN}]")
# Not `(?![\n\t])` before the set: looked at before each character, it takes five times as long.
_UNSAFE_IN_LINES: Final = re.compile(f"[{_UNSEEN.replace(_CONTROLS, _CONTROLS_IN_LINES)}]")


def one_line(text: str) -> str:
    """Copy a text with what cannot be seen written as escapes, line ends too."""
    return _UNSAFE.sub(_escape, text)


def lines(text: str) -> str:
    """Copy a text as `one_line` does; line ends and tabs stay."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def json_lines(text: str) -> str:
    """Copy a JSON document with what cannot be seen in its strings as JSON's own escapes."""
    return _UNSAFE_IN_LINES.sub(_json_escape, text)


def spaced(text: str) -> str:
    """Copy a text with a space for each run of what cannot be seen."""
    return re.sub(f"[{_UNSEEN}]+", " ", text)


def _escape(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
