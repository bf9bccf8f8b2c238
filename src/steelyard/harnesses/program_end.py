"""How a program ended, said for people: by every harness that runs one."""

from __future__ import annotations

from typing import Final

from steelyard.components.environment import ExecResult

_QUOTED_BYTES: Final = 1000


def fate(ended: ExecResult) -> str:
    """Say what ended a program, as the rest of a sentence that begins with its name."""
    if ended.timed_out:
        return "was ended when its time was up"
    if ended.stopped_by is not None:
        return f"was ended by the environment's limit on {ended.stopped_by}"
    if ended.exit_code < 0:
        return f"was ended by signal {-ended.exit_code}"
    return f"ended with exit code {ended.exit_code}"


def last_words(ended: ExecResult) -> str:
    """Quote the end of what a program printed, its errors first."""
    said = (ended.stderr or ended.stdout)[-_QUOTED_BYTES:]
    return said.decode("utf-8", "replace").strip() or "it said nothing"
