"""Cells of CSV that no spreadsheet takes for a formula. Pure.

Case ids, agents' names and messages are others' texts, and a spreadsheet runs what begins with
`=`, `+`, `-` or `@`. Such a text gets an apostrophe before it, which spreadsheets hide (OWASP, CSV
injection). Numbers are left alone. JSON Lines and Parquet hold texts as they are.
"""

from __future__ import annotations

from typing import Final

_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_cell(value: object) -> object:
    """Give what is written for a value: None is empty, true and false are words."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value.replace("\0", "\\0")
        # Full-width signs, too: some spreadsheets take them for the plain ones.
        risky = text.lstrip(" ").startswith((*_STARTS, "＝", "＋", "－", "＠"))
        return f"'{text}" if risky else text
    return value
