"""Regular expressions of a pack on texts of a model, in bounded time.

Python's engine backtracks, holds the interpreter's lock while it does and cannot be interrupted
from a thread. So a pattern that cannot take long on a text of that length runs here; any other
in a process of its own that is ended when its time is up.
"""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import orjson

from steelyard.components.issues import AttemptFault, IssueCode

IN_PROCESS_STEPS: Final = 2_000_000
"""About 50 ms of the engine's own steps."""
TIMEOUT_S: Final = 5.0
MAX_TEXT_CHARS: Final = 10 * 1024 * 1024
_MAX_REPLY_BYTES: Final = 64 * 1024 * 1024

_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_REFERENCE: Final = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")
_NESTED: Final = re.compile(r"\)[*+{]")

# Reads one line of JSON, writes one. Its own CPU limit ends it should its parent die first.
_CHILD: Final = r"""
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
job = json.load(sys.stdin.buffer)
compiled = re.compile(job["pattern"], job["flags"])
if job["how"] == "last":
    last = None
    for last in compiled.finditer(job["text"]):
        pass
    found = None if last is None else last[1] if compiled.groups else last[0]
elif job["how"] == "full":
    found = "" if compiled.fullmatch(job["text"]) else None
else:
    found = "" if compiled.search(job["text"]) else None
sys.stdout.write(json.dumps({"found": found}))
"""


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
        AttemptFault: SCORER_TIMED_OUT where it takes longer than `TIMEOUT_S`.
    """
    if found.may_run_here(len(text)):
        compiled = found.compiled
        return (compiled.fullmatch(text) if full else compiled.search(text)) is not None
    return await _in_child(found, text, "full" if full else "search") is not None


async def last_group(found: Matcher, text: str) -> str | None:
    """Give group 1 of the last match (all of it where there are no groups), None without one.

    Raises:
        AttemptFault: SCORER_TIMED_OUT where it takes longer than `TIMEOUT_S`.
    """
    if not found.may_run_here(len(text)):
        return await _in_child(found, text, "last")
    last = None
    for last in found.compiled.finditer(text):  # noqa: B007 — the last one is what is wanted
        pass
    if last is None:
        return None
    group: str | None = last[1] if found.compiled.groups else last[0]
    return group


async def _in_child(found: Matcher, text: str, how: str) -> str | None:
    if len(text) > MAX_TEXT_CHARS:
        raise AttemptFault(
            IssueCode.SCORER_CRASHED, f"a text of {len(text)} characters is too long for a pattern"
        )
    pattern = found.compiled.pattern
    job = {"pattern": pattern, "flags": found.compiled.flags, "text": text, "how": how}
    payload = _json_bytes(job)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-B", "-c", _CHILD, str(int(TIMEOUT_S) + 1)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        limit=_MAX_REPLY_BYTES,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reply, _ = await process.communicate(payload)
    except TimeoutError as error:
        raise AttemptFault(
            IssueCode.SCORER_TIMED_OUT,
            f"the pattern {pattern[:80]!r} took longer than {TIMEOUT_S:g} s on this text; "
            "write it without nested repetition",
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise AttemptFault(
            IssueCode.SCORER_CRASHED,
            f"the process for the pattern {pattern[:80]!r} ended with {process.returncode}",
        )
    answer: str | None = orjson.loads(reply)["found"]
    return answer


def _json_bytes(job: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(job)
    except TypeError:  # lone surrogates, as a JSON-speaking endpoint may send them
        job = {
            k: v.encode("utf-8", "replace").decode() if isinstance(v, str) else v
            for k, v in job.items()
        }
        return orjson.dumps(job)
