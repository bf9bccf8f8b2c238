"""Run a model's Python code under given tests, as HumanEval does, in the scorer's session.

The code and the tests share one process, as published, so a determined program can lie about
the outcome: trust is `contained` at best. What simple cheats try does not work: the program's
output goes nowhere, leaving early leaves no verdict, and the word that means "passed" is random
and not in the process's memory, arguments or environment until the tests have passed.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import orjson

from steelyard.components.environment import Session
from steelyard.components.issues import AttemptFault, IssueCode

PYTHON_NAMES: Final = ("python3", "python")
_READY: Final = "steelyard-ready"
_VERDICT_BYTES: Final = 64 * 1024

# Read from its arguments, not from a file: the session's folder belongs to the agent's work.
# Standard input is one JSON line (the programs), then the verdict's word. The word stays unread in
# the pipe until the tests are through.
_RUNNER: Final = r"""
import os, sys
def main():
    word_fd, out_fd = os.dup(0), os.dup(1)
    head = b""
    while not head.endswith(b"\n"):
        byte = os.read(word_fd, 1)
        if not byte:
            os._exit(70)
        head += byte
    left, parts = int(head), []
    while left:
        part = os.read(word_fd, min(left, 1 << 16))
        if not part:
            os._exit(70)
        parts.append(part)
        left -= len(part)
    import json
    job = json.loads(b"".join(parts))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    write, read, leave = os.write, os.read, os._exit
    write(out_fd, ("%s %d.%d.%d\n" % ((job["ready"],) + sys.version_info[:3])).encode())
    stage = "code"
    try:
        space = {"__name__": "__candidate__"}
        run = exec
        run(compile(job["program"], "<answer>", "exec"), space)
        if job["entry_point"] is not None and job["entry_point"] not in space:
            raise NameError("the answer does not define " + job["entry_point"])
        stage = "tests"
        run(compile(job["tests"], "<tests>", "exec"), space)
        if job["entry_point"] is not None and job["calls_check"]:
            space["check"](space[job["entry_point"]])
    except BaseException as error:
        try:
            said = "%s: %s" % (type(error).__name__, str(error)[:500])
        except BaseException:
            said = type(error).__name__
        write(out_fd, ("\n%s failed %s\n" % (stage, said)).encode("utf-8", "replace"))
        leave(1)
    write(out_fd, b"\n" + read(word_fd, 256) + b"\n")
    leave(0)
main()
"""


class CodeVerdict(StrEnum):
    """How a program fared."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class CodeResult:
    """What running a program under its tests showed."""

    verdict: CodeVerdict
    detail: str
    """For people, in the program's own words: never to be trusted."""
    python: str
    """The version that ran it."""
    duration_s: float

    @property
    def passed(self) -> bool:
        """True where every test passed."""
        return self.verdict is CodeVerdict.PASSED


async def run_tests(
    session: Session,
    *,
    program: str,
    tests: str,
    entry_point: str | None,
    timeout_s: float,
    calls_check: bool = True,
) -> CodeResult:
    """Execute `program`, then `tests` in the same name space, then `check(entry_point)`.

    Args:
        session: where it runs; its limits are the program's.
        program: what the model wrote.
        tests: defines `check(candidate)`; without `calls_check`, statements that raise.
        entry_point: the function under test; None where the tests name it themselves.
        timeout_s: wall clock of the whole process.
        calls_check: False where the tests are statements.

    Raises:
        AttemptFault: SCORER_CRASHED where no Python started, SCORER_TIMED_OUT where it did not
            get to the program in time. Neither says anything about the answer.
        EnvironmentFault: the session is gone.
    """
    word, ready = secrets.token_hex(16), f"{_READY}-{secrets.token_hex(8)}"
    job = orjson.dumps(
        {
            "program": program.encode("utf-8", "replace").decode(),
            "tests": tests,
            "entry_point": entry_point,
            "calls_check": calls_check,
            "ready": ready,
        }
    )
    stdin = b"%d\n" % len(job) + job + word.encode()
    for name in PYTHON_NAMES:
        result = await session.exec(
            [name, "-I", "-B", "-X", "utf8", "-c", _RUNNER],
            stdin=stdin,
            timeout_s=timeout_s,
            max_output_bytes=_VERDICT_BYTES,
        )
        if result.exit_code != 127 or ready in result.stdout_text:
            break
    first, _, rest = result.stdout_text.partition("\n")
    if not first.startswith(f"{ready} "):
        raise _not_started(result.exit_code, result.timed_out, result.stderr_text, timeout_s)
    python = first.removeprefix(f"{ready} ")
    if result.timed_out:
        detail = f"did not end within {timeout_s:g} s"
        return CodeResult(CodeVerdict.TIMED_OUT, detail, python, result.duration_s)
    if result.exit_code == 0 and rest.strip() == word:
        return CodeResult(CodeVerdict.PASSED, "", python, result.duration_s)
    detail = rest.strip()[:600] or _silent_end(result.exit_code)
    return CodeResult(CodeVerdict.FAILED, detail, python, result.duration_s)


def _not_started(exit_code: int, timed_out: bool, stderr: str, timeout_s: float) -> AttemptFault:
    if timed_out:
        return AttemptFault(
            IssueCode.SCORER_TIMED_OUT,
            f"Python did not start in the scorer's environment within {timeout_s:g} s",
        )
    said = stderr.strip()[-500:]
    missing = "there is no Python in" if exit_code == 127 else "Python does not start in"
    return AttemptFault(
        IssueCode.SCORER_CRASHED,
        f"{missing} the scorer's environment (exit code {exit_code}){': ' + said if said else ''}; "
        "use an environment or image with Python 3",
    )


def _silent_end(exit_code: int) -> str:
    if exit_code < 0 or exit_code > 128:
        signal = -exit_code if exit_code < 0 else exit_code - 128
        return f"ended by signal {signal} before the tests were through"
    return f"left with exit code {exit_code} before the tests were through"
