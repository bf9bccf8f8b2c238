"""Read single values of a JSON document strictly: what a disk hands us may be anyone's.

Every function raises `ValueError` or `TypeError` on what is not what it must be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

MAX_COUNT: Final = 2**53
"""What JSON numbers hold exactly everywhere."""
_MAX_VERSION_DIGITS: Final = 9


def text(value: Any) -> str:
    """Read text."""
    if not isinstance(value, str):
        raise TypeError(f"{_shown(value)} is not text")
    return value


def optional_text(value: Any) -> str | None:
    """Read text or null."""
    return None if value is None else text(value)


def count(value: Any, least: int = 0) -> int:
    """Read a whole number from `least` on."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_COUNT:
        raise ValueError(f"{_shown(value)} is not a number from {least} on")
    return value


def truth(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise TypeError(f"{_shown(value)} is neither true nor false")
    return value


def seconds(value: Any) -> float:
    """Read a finite number as seconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{_shown(value)} is not a finite number")
    return float(value)


def metric(value: Any) -> float | bool:
    """Read a metric's value: a finite number, or true or false."""
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        raise ValueError(f"{_shown(value)} is not a finite number")
    return value


def mapping(value: Any) -> Mapping[str, Any]:
    """Read an object."""
    if not isinstance(value, dict):
        raise TypeError(f"{_shown(value)} is not an object")
    return value


def optional_mapping(value: Any) -> Mapping[str, Any] | None:
    """Read an object or null."""
    return None if value is None else mapping(value)


def items(value: Any) -> list[Any]:
    """Read a list."""
    if not isinstance(value, list):
        raise TypeError(f"{_shown(value)} is not a list")
    return value


def artifact(value: Any) -> Mapping[str, Any]:
    """Read an entry of a record's `artifacts`: `{path, sha256, bytes}`, perhaps `lists`."""
    found = mapping(value)
    text(found.get("path"))
    text(found.get("sha256"))
    for name in ("bytes", "lists"):
        if name in found:
            count(found[name])
    return found


def version_number(digits: str) -> int | None:
    """Read the number of a schema's version; None where it is none that anyone would write.

    Python refuses to read a number of thousands of digits with an error of its own.
    """
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > _MAX_VERSION_DIGITS:
        return None
    return int(digits)


def _shown(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:80]}…"
