"""Patches read as edits: the form of `apply_patch`, and unified diffs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from steelyard.scanners.acts import How, Touch
from steelyard.scanners.shell.paths import resolved

_FILE: Final = re.compile(
    r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)|^--- (?:a/)?(\S+)"
)


def is_patch(text: str) -> bool:
    """True where a text is a patch of either form."""
    return "*** Begin Patch" in text or ("\n+++ " in text and "--- " in text)


def patched(text: str, cwd: str, by: str) -> Iterator[Touch]:
    """Give an edit, a new file or a deletion for each file of a patch."""
    kind, path, header, before = "", "", "", ""
    old: list[str] = []
    new: list[str] = []
    for line in text.split("\n"):
        found = _FILE.match(line)
        if found is None:
            if path and line[:1] in "+-" and line:
                (new if line[0] == "+" else old).append(line[1:])
            continue
        if found[4] is not None:
            before = found[4]
            continue
        if path:
            yield _touch(kind, path, header, old, new, cwd, by)
        old, new, header = [], [], line.rstrip("\r")
        if found[1]:
            kind, path = found[1], found[2].strip()
        elif found[3] == "/dev/null":
            kind, path = "Delete", before
        else:
            kind, path = ("Add" if before == "/dev/null" else "Update"), found[3]
    if path:
        yield _touch(kind, path, header, old, new, cwd, by)


def _touch(
    kind: str, path: str, header: str, old: list[str], new: list[str], cwd: str, by: str
) -> Touch:
    where = resolved(path, cwd)
    if kind == "Delete":
        return Touch(How.DELETE, where, header, by=by)
    if kind == "Add":
        return Touch(How.WRITE, where, header, "\n".join(new), by=by)
    return Touch(How.EDIT, where, header, "\n".join(new), "\n".join(old), by=by)
