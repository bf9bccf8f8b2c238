"""The temporary folder of a session: named by its token, so that leftovers can be found."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

PREFIX: Final = "steelyard-"
_PLAIN = re.compile(r"^[A-Za-z0-9_]{1,64}$")


def label_of(token: str) -> str:
    """Give the part of a file name that stands for a token: itself where it is plain."""
    if _PLAIN.match(token):
        return token
    return "h" + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def new_folder(token: str, *, base: Path) -> Path:
    """Name, not make, a folder for a session; unguessable, so that nobody can make it first."""
    return base / f"{PREFIX}{label_of(token)}-{secrets.token_hex(8)}"


def temporary_base() -> Path:
    """Give the folder for temporary files, links resolved."""
    return Path(tempfile.gettempdir()).resolve()


def find_folders(tokens: Collection[str]) -> list[tuple[str, Path]]:
    """Find session folders of these tokens that belong to this user or are theirs to remove."""
    labels = {label_of(token): token for token in tokens}
    found = []
    for base in sorted({temporary_base(), Path("/tmp"), Path("/var/tmp")}):  # noqa: S108 — looked at
        if not base.is_dir():
            continue
        for path in base.iterdir():
            name = path.name
            label, dash, tail = name.removeprefix(PREFIX).rpartition("-")
            if not (name.startswith(PREFIX) and dash and len(tail) == 16 and label in labels):
                continue
            status = path.lstat()
            ours = os.geteuid() in (0, status.st_uid)
            if stat.S_ISDIR(status.st_mode) and ours:
                found.append((labels[label], path))
    return found


def kept_folder(token: str, name: str) -> Path | None:
    """Find the folder that a kept session with this token left; None where it is gone.

    The name alone is never believed: it stands in a file that may come from elsewhere, and what
    it leads to is given to programs.
    """
    for _, path in find_folders([token]):
        if path.name == name:
            return path
    return None
