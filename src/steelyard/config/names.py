"""Turn the names that people give into safe path components, and tell which of them clash."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

UUID_FORM: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
MAX_CHARACTERS: Final = 80
MAX_NAME_BYTES: Final = 200
"""File systems allow 255 bytes, and eighty characters of UTF-8 may be more."""

_PLAIN: Final = re.compile(r"(?!.*--)[A-Za-z0-9_][A-Za-z0-9._-]*")
"""Names that stand for themselves; asked for every attempt of a run, so by one match."""
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"}
)


def normalise(name: str) -> str:
    """Give the path component that a name stands for; empty where nothing of it is usable.

    NFKC, case kept; what is no letter, digit, `.`, `_` or `-` becomes `-`; runs collapse; leading
    dots and dashes go; above 80 characters (or 200 bytes) the rest is replaced by a hash.
    """
    if len(name) <= MAX_CHARACTERS and _PLAIN.fullmatch(name):
        return name
    folded = unicodedata.normalize("NFKC", name)
    kept = "".join(char if char.isalnum() or char in "._-" else "-" for char in folded)
    # NFKC of what was kept: `isalnum` accepts characters that compose differently once joined.
    safe = re.sub(r"-+", "-", unicodedata.normalize("NFKC", kept)).lstrip(".-")
    if len(safe) <= MAX_CHARACTERS and len(safe.encode()) <= MAX_NAME_BYTES:
        return safe
    digest = hashlib.sha256(safe.encode()).hexdigest()[:12]
    head = safe[:MAX_CHARACTERS]
    while len(head.encode()) > MAX_NAME_BYTES:
        head = head[:-1]
    return f"{head}-{digest}"


def clash_key(component: str) -> str:
    """Give what two path components share where some file system takes them for one."""
    return unicodedata.normalize("NFKC", component.casefold()).rstrip(". ")


def is_device_name(component: str) -> bool:
    """True for what Windows takes for a device, whatever its suffix: `nul`, `COM1.txt`."""
    return clash_key(component).split(".")[0].rstrip() in _DEVICES


def is_path_component(text: str) -> bool:
    """True where a text can be used as a folder's name just as it is."""
    return bool(text) and normalise(text) == text and not is_device_name(text)


def joined(model: str, benchmark: str, harness: str) -> str:
    """Give the name of a request that nobody named: `<model>_<benchmark>_<harness>`.

    Of an id that is a path only the last part is used, of a class only its name.
    """
    return normalise("_".join((normalise(model), short_id(benchmark), short_id(harness))))


def short_id(component_id: str) -> str:
    """Give the part of a component's id that names it: no folders, no module."""
    last = component_id.rstrip("/").rpartition("/")[2]
    return normalise(last.rpartition(":")[2] or last)
