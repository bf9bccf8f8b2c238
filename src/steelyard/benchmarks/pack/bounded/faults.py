"""What ends bounded work early, other than a result."""

from __future__ import annotations

MAX_REASON_CHARS = 400


class PackFault(Exception):
    """The pack's own data cannot be used: a schema, a path, a pattern."""


def shown(value: object) -> str:
    """Write a value for a reason, cut where it is long; never larger for a larger value."""
    if isinstance(value, str):
        text = repr(value[:80])
        return text if len(value) <= 80 else f"{text}… ({len(value)} characters)"
    if isinstance(value, dict):
        return f"an object of {len(value)} keys"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)[:80] if not isinstance(value, int) or abs(value) < 10**80 else "a huge number"
