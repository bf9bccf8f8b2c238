"""Paths as text: resolved against a folder that may itself be known only in part."""

from __future__ import annotations

import posixpath
from typing import Final

MAX_CHARS: Final = 4096


def resolved(path: str, cwd: str) -> str:
    """Give a path in one form: `/…`, `~/…`, `$NAME/…`, or relative to where the agent began."""
    path = path[:MAX_CHARS]
    if path.startswith("file://"):
        path = path[7:]
    if not path:
        return cwd
    whole = path if path.startswith(("/", "~", "$")) else f"{cwd}/{path}"
    normal = posixpath.normpath(whole)
    if normal.startswith("//"):
        normal = normal[1:]
    for home in ("/root", "$HOME", "${HOME}"):
        if normal == home or normal.startswith(f"{home}/"):
            normal = "~" + normal[len(home) :]
    return normal


def name_of(path: str) -> str:
    """Give the last part."""
    return path.rpartition("/")[2]


def parts_of(path: str) -> list[str]:
    """Give the parts that are not empty."""
    return [one for one in path.split("/") if one and one != "."]
