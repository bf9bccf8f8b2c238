"""Regular expressions of a pack on texts of a model, in bounded time.

Python's engine backtracks, holds the interpreter's lock while it does and cannot be interrupted
from a thread. So a pattern that cannot take long on a text of that length runs here; any other
in a process of its own that is ended when its time is up.
"""

from __future__ import annotations

from steelyard.benchmarks.pack.bounded.patterns import searched
from steelyard.benchmarks.pack.timebox import MAX_TEXT_CHARS, boxed
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.patterns import BadPattern as BadPattern
from steelyard.components.patterns import Matcher as Matcher
from steelyard.components.patterns import matcher as matcher


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
