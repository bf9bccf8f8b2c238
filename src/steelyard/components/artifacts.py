"""What is taken out of an agent's environment: which files, how much of them, in which mode.

Values only. Sessions copy (`Session.collect`), the engine decides when.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

MAX_BYTES: Final = 256 * 1024 * 1024
MAX_FILES: Final = 10_000


class EvaluationMode(StrEnum):
    """Where an attempt is scored."""

    NONE = "none"
    """Nothing of the agent's environment is needed: it is closed first."""
    FRESH = "fresh"
    """Files are taken out, the agent's environment is closed, a new one gets them back."""
    REUSE = "reuse"
    """In the agent's own environment, still open, the harness's programs ended."""


@dataclass(frozen=True)
class ArtifactSpec:
    """Files of a session that are wanted, and the most that is taken."""

    paths: tuple[str, ...] = ()
    """Files or folders, relative to the working folder, or absolute inside the session."""
    globs: tuple[str, ...] = ()
    """Patterns of files of the working folder: `*` and `?` stay within a name, `**` crosses."""
    excludes: tuple[str, ...] = ()
    """Patterns; one without a slash leaves out every file or folder of that name."""
    command: tuple[str, ...] | None = None
    """Run in the working folder before anything is taken."""
    max_bytes: int = MAX_BYTES
    max_files: int = MAX_FILES

    def problem(self) -> str | None:
        """Say what is wrong with it; None where nothing is."""
        for path in (*self.paths, *self.globs):
            if not path or "\0" in path:
                return f"{path!r} is no path"
            if ".." in path.split("/"):
                return f"{path!r} leads out of the working folder"
        for pattern in self.globs:
            if pattern.startswith("/"):
                return f"the pattern {pattern!r} must be relative to the working folder"
        return None

    @cached_property
    def _globs(self) -> tuple[tuple[re.Pattern[str] | None, ...], ...]:
        return tuple(_compiled(pattern) for pattern in self.globs)

    @cached_property
    def _excludes(self) -> tuple[tuple[re.Pattern[str] | None, ...], ...]:
        return tuple(_compiled(p if "/" in p else f"**/{p}") for p in self.excludes)

    def matches(self, parts: Sequence[str]) -> bool:
        """True where a file at these parts of a path is named by a pattern."""
        return any(_matches(parts, pattern) for pattern in self._globs)

    def leaves_out(self, parts: Sequence[str]) -> bool:
        """True where a file or folder at these parts of a path is not wanted."""
        return any(_matches(parts, pattern) for pattern in self._excludes)

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form."""
        return {
            "paths": list(self.paths),
            "globs": list(self.globs),
            "excludes": list(self.excludes),
            "command": None if self.command is None else list(self.command),
            "max_bytes": self.max_bytes,
            "max_files": self.max_files,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ArtifactSpec:
        """Read the serialisable form."""
        command = data["command"]
        return cls(
            tuple(data["paths"]),
            tuple(data["globs"]),
            tuple(data["excludes"]),
            None if command is None else tuple(command),
            data["max_bytes"],
            data["max_files"],
        )


def is_pattern(text: str) -> bool:
    """True where a text holds a mark of a pattern."""
    return any(mark in text for mark in "*?[")


@dataclass(slots=True)
class Collected:
    """What a session copied out."""

    files: int = 0
    bytes: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Why something was not taken → how often."""

    def leave_out(self, why: str) -> None:
        """Count something that was not taken."""
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def summary(self) -> str | None:
        """Say in words what was left out; None where nothing was."""
        if not self.left_out:
            return None
        said = ", ".join(f"{count} × {why}" for why, count in sorted(self.left_out.items()))
        return f"left out: {said}"


def _compiled(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """Compile a pattern part by part; None stands for `**`."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    return tuple(None if p == "**" else re.compile(fnmatch.translate(p)) for p in parts)


def _matches(parts: Sequence[str], pattern: Sequence[re.Pattern[str] | None]) -> bool:
    """Match as with one `*` a part: after a mismatch the last `**` takes one part more."""
    at = here = 0
    back: tuple[int, int] | None = None
    while here < len(parts):
        if at < len(pattern) and (one := pattern[at]) is None:
            back = (at, here)
            at += 1
        elif at < len(pattern) and one is not None and one.match(parts[here]):
            at += 1
            here += 1
        elif back is not None:
            back = (back[0], back[1] + 1)
            at, here = back[0] + 1, back[1]
        else:
            return False
    return all(part is None for part in pattern[at:])
