"""Regular expressions of a pack on texts of a model, in bounded time.

Python's engine backtracks, holds the interpreter's lock while it does and cannot be interrupted
from a thread. So a pattern that cannot take long on a text of that length runs here; any other
in a process of its own that is ended when its time is up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from steelyard.benchmarks.pack.bounded.patterns import searched
from steelyard.benchmarks.pack.timebox import MAX_TEXT_CHARS, boxed
from steelyard.components.issues import AttemptFault, IssueCode

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


async def is_found(found: Matcher, text: str, *, full: bool) -> bool:
    """True where the pattern is found in the text; with `full`, where it matches all of it.

    Raises:
        AttemptFault: SCORER_TIMED_OUT where it takes longer than `timebox.CPU_S`.
    """
    if found.may_run_here(len(text)):
        compiled = found.compiled
        return (compiled.fullmatch(text) if full else compiled.search(text)) is not None
    return await _in_child(found, text, "full" if full else "search") is not None


async def last_group(found: Matcher, text: str) -> str | None:
    """Give group 1 of the last match (all of it where there are no groups), None without one.

    Raises:
        AttemptFault: SCORER_TIMED_OUT where it takes longer than `timebox.CPU_S`.
    """
    if not found.may_run_here(len(text)):
        return await _in_child(found, text, "last")
    return searched(found.compiled.pattern, found.compiled.flags, text, "last")


async def _in_child(found: Matcher, text: str, how: str) -> str | None:
    if len(text) > MAX_TEXT_CHARS:
        raise AttemptFault(
            IssueCode.SCORER_CRASHED, f"a text of {len(text)} characters is too long for a pattern"
        )
    compiled = found.compiled
    job = {"pattern": compiled.pattern, "flags": compiled.flags, "text": text, "how": how}
    return await boxed(searched, job, here=False, what=f"the pattern {compiled.pattern[:80]!r}")
