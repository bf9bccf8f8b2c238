"""A user's regular expression on a program's output, in a process that can be killed.

Python's engine backtracks without end, holds the interpreter's lock meanwhile and hears no
signal: on output that a model wrote it runs outside.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Final

from steelyard.components.issues import AttemptFault, IssueCode

CPU_S: Final = 5
MAX_TEXT_CHARS: Final = 1 << 20

_PROGRAM: Final = """
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
job = json.load(sys.stdin)
last = None
for last in re.finditer(job["pattern"], job["text"]):
    pass
found = None if last is None else last[1 if last.re.groups else 0]
json.dump(found, sys.stdout)
"""


async def last_match(pattern: str, text: str) -> str | None:
    """Give group 1, or all of it, of a pattern's last match; None where there is none.

    Only the last `MAX_TEXT_CHARS` characters are looked at.

    Raises:
        AttemptFault: CONFIGURATION, where the pattern takes more than `CPU_S` seconds.
    """
    job = json.dumps({"pattern": pattern, "text": text[-MAX_TEXT_CHARS:]}).encode()
    done = await asyncio.to_thread(_search, job)
    if done.returncode != 0:
        raise AttemptFault(
            IssueCode.CONFIGURATION,
            f"answer.extract: the pattern {pattern[:80]!r} takes more than {CPU_S} s on this "
            "output; write one without nested repetition",
        )
    found: str | None = json.loads(done.stdout)
    return found


def _search(job: bytes) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(CPU_S)]
    try:
        return subprocess.run(  # noqa: S603 — a fixed argument vector
            words, input=job, capture_output=True, timeout=10 * CPU_S, check=False, env={}
        )
    except subprocess.TimeoutExpired:  # a machine so busy that it gave no processor time
        return subprocess.CompletedProcess(words, -9, b"", b"")
