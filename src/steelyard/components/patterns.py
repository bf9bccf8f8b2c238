"""What a regular expression of a user may cost on a text: one estimate for all who search.

Python's engine backtracks, holds the interpreter's lock while it does and cannot be interrupted
from a thread. What this cannot promise to be short belongs into a process of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

IN_PROCESS_STEPS: Final = 2_000_000
"""About 50 ms of the engine's own steps."""

_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_REFERENCE: Final = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")
_NESTED: Final = re.compile(r"\)[*+{]")


class BadPattern(ValueError):
    """A regular expression that cannot be compiled."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled pattern with what is known of its cost."""

    compiled: re.Pattern[str]
    repeats: int
    """Its open-ended repetitions; each multiplies the steps by the text's length."""
    branches: int
    """Its alternatives and optional parts; each may double the steps."""
    is_unbounded: bool
    """True where repetitions nest or groups are referred to: no estimate holds."""

    def may_run_here(self, length: int) -> bool:
        """True where a search of a text of that length takes at most `IN_PROCESS_STEPS`."""
        if self.is_unbounded or self.branches > 20:
            return False
        steps = float(2**self.branches) * float(length + 1) ** (self.repeats + 1)
        return bool(steps <= IN_PROCESS_STEPS)


@lru_cache(maxsize=512)
def matcher(pattern: str, flags: int = 0) -> Matcher:
    """Compile a pattern; raise `BadPattern` where it is malformed."""
    try:
        compiled = re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise BadPattern(f"malformed regular expression {pattern[:80]!r}: {error}") from error
    bare = _ESCAPE.sub("x", pattern)
    repeats = sum(bare.count(sign) for sign in "*+{")
    branches = bare.count("|") + bare.count("?") - bare.count("(?")
    nested = bool(_REFERENCE.search(pattern) or _NESTED.search(bare))
    return Matcher(compiled, repeats, max(branches, 0), nested)
