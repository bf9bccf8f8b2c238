"""Search with a regular expression of a pack."""

from __future__ import annotations

import re


def searched(pattern: str, flags: int, text: str, how: str) -> str | None:
    """Search a text.

    Args:
        pattern: one that compiles.
        flags: of `re`.
        text: what is searched.
        how: `search` or `full` (all of the text); `last` for group 1 of the last match, or all of
            it where there are no groups.

    Returns:
        None where nothing is found; for `search` and `full`, the empty text where something is.
    """
    compiled = re.compile(pattern, flags)
    if how == "last":
        last = None
        for last in compiled.finditer(text):  # noqa: B007 — the last one is what is wanted
            pass
        if last is None:
            return None
        group: str | None = last[1] if compiled.groups else last[0]
        return group
    found = compiled.fullmatch(text) if how == "full" else compiled.search(text)
    return None if found is None else ""
