"""Digests of a pack's files: the same on every machine, changed by any change of content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.benchmarks.pack.paths import entries

DIGEST_CHARS: Final = 12
"""How much of the digest stands in a version."""


def folder_digest(folder: Path) -> str:
    """Digest every file below a folder: names, contents, links, and whether it is executable.

    Order, times, owners and the folder's own place do not count.

    Raises:
        PathProblem: a link leads out, or something is neither file, folder nor link.
    """
    text = "\n".join(file_digests(folder))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def file_digests(folder: Path) -> list[str]:
    """List what a folder's digest is made of, sorted: a line for each file and link below it.

    Raises:
        PathProblem: a link leads out, or something is neither file, folder nor link.
    """
    lines = []
    for entry in entries(folder):
        if entry.link is not None:
            lines.append(f"link {entry.relative}\0{entry.link}")
            continue
        with entry.path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        mode = "program" if entry.is_executable else "file"
        lines.append(f"{mode} {entry.relative}\0{content}")
    return sorted(lines)


def data_digest(data: Any) -> str:
    """Digest plain data, the order of keys aside."""
    return hashlib.sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()
