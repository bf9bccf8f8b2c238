"""Users' patterns on issues: which ERRORs are worth another try.

Python's engine backtracks, holds the interpreter's lock while it does and cannot be interrupted
from a thread, and messages quote models and endpoints. So a pattern that is certain to be short on
a text of that length is searched here, any other in a process with a limit on its CPU time.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from steelyard.components.issues import Issue, Severity
from steelyard.components.patterns import BadPattern as BadPattern
from steelyard.components.patterns import Matcher, matcher

log = logging.getLogger(__name__)

MAX_TEXT_CHARS: Final = 2_000
"""Of a message; what comes after is not searched."""
CHILD_CPU_S: Final = 1
_CHILD_WALL_S: Final = 20.0
_REMEMBERED: Final = 1024
_CHILD: Final = Path(__file__).with_name("pattern_child.py")


@dataclass(frozen=True, slots=True)
class IssuePatterns:
    """Patterns, compiled once. Without any nothing matches."""

    patterns: tuple[Matcher, ...] = ()

    @classmethod
    def of(cls, sources: Iterable[str]) -> IssuePatterns:
        """Compile patterns of Python's `re`.

        Raises:
            BadPattern: one cannot be compiled; says which.
        """
        return cls(tuple(matcher(source) for source in sources))

    def is_quick(self, issues: Iterable[Issue]) -> bool:
        """True where `first_match` needs no process."""
        texts = [text for issue in issues for text in _texts(issue)]
        return all(one.may_run_here(len(text)) for one in self.patterns for text in texts)

    def first_match(self, issues: Sequence[Issue]) -> Issue | None:
        """Give the first ERROR whose message or code a pattern is found in.

        Blocking where it is not `is_quick`: for a thread. A search that takes longer than
        `CHILD_CPU_S` finds nothing; the log says so.
        """
        errors = [issue for issue in issues if issue.severity is Severity.ERROR]
        for issue in errors:
            for text in _texts(issue):
                if any(is_found(one, text, "the retry pattern") for one in self.patterns):
                    return issue
        return None


NO_PATTERNS: Final = IssuePatterns()


def _texts(issue: Issue) -> tuple[str, str]:
    return issue.code.value, issue.message[:MAX_TEXT_CHARS]


def is_found(pattern: Matcher, text: str, what: str) -> bool:
    """Search a text, in a process of its own where that may take long.

    Blocking there: for a thread. A search that takes longer than `CHILD_CPU_S` finds nothing;
    the log says so.

    Args:
        pattern: a user's.
        text: some thousand characters at most.
        what: the pattern's role, for the log: "the retry pattern".
    """
    if pattern.may_run_here(len(text)):
        return pattern.compiled.search(text) is not None
    return _found_in_child(pattern.compiled.pattern, text, what)


@lru_cache(maxsize=_REMEMBERED)
def _found_in_child(source: str, text: str, what: str) -> bool:
    """Search in a process that is ended when its time is up."""
    job = json.dumps({"pattern": source, "text": text}).encode()
    words = [sys.executable, "-I", "-S", "-B", str(_CHILD), str(CHILD_CPU_S)]
    try:
        done = subprocess.run(  # noqa: S603 — a fixed argument vector
            words, input=job, capture_output=True, check=False, timeout=_CHILD_WALL_S, env={}
        )
    except subprocess.TimeoutExpired:  # a machine so busy that it gave no processor time
        done = subprocess.CompletedProcess(words, -9, b"", b"")
    if done.returncode == 0:
        return done.stdout == b"found"
    log.warning(
        "%s %r matches nothing where it takes longer than %d s; write it so that "
        "its cost does not grow faster than the text",
        what,
        source[:80],
        CHILD_CPU_S,
        extra={"cause": source},
    )
    return False
