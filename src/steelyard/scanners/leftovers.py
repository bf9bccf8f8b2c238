"""Files that an attempt left: hostile content, read in part and only where it is plain text."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_FILES: Final = 200
MAX_BYTES: Final = 256 * 1024
"""Of each file."""
_SCRIPTS: Final = {".sh": "shell", ".bash": "shell", ".py": "python"}


@dataclass(frozen=True, slots=True)
class Leftover:
    """One collected file."""

    name: str
    """As the attempt's artifacts name it: a path inside the workspace."""
    text: str
    language: str | None
    """`shell` or `python` where its name or first line says so."""


def leftover(name: str, path: Path) -> Leftover | None:
    """Read a file, up to a bound; None for what is no plain text, a link, a device or a folder."""
    text = _text_of(path)
    return None if text is None else Leftover(name, text, _language(name, text))


def _text_of(path: Path) -> str | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        data = file.read(MAX_BYTES)
    return None if b"\0" in data[:8192] else data.decode("utf-8", "replace")


def _language(name: str, text: str) -> str | None:
    known = _SCRIPTS.get(Path(name).suffix)
    if known is not None:
        return known
    first = text[:200].partition("\n")[0]
    if first.startswith("#!"):
        if "python" in first:
            return "python"
        return "shell" if first.rstrip().endswith("sh") or "sh " in first else None
    return None
