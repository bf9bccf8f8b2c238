"""Run bounded work here where it is certain to be short, else in a process that can be ended.

Python cannot interrupt a regular expression, a parser or a comparison in a thread, and all of them
hold the interpreter's lock. A child has a limit on its CPU time, which holds however busy the
machine is, and on its memory.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import orjson

from steelyard.benchmarks.pack import bounded
from steelyard.benchmarks.pack.bounded.faults import PackFault
from steelyard.components.issues import AttemptFault, IssueCode

CPU_S: Final = 5
"""CPU time of one child, in seconds."""
MEMORY_BYTES: Final = 2 * 1024**3
"""Address space of one child, its stack of 256 MiB included."""
HERE_CHARS: Final = 64 * 1024
"""Texts up to this length are parsed and compared without a child: a few milliseconds."""
MAX_TEXT_CHARS: Final = 10 * 1024 * 1024
_WALL_S: Final = 60.0
_CHILD: Final = Path(bounded.__file__).with_name("child.py")
_TIME_SIGNALS: Final = (-signal.SIGXCPU, -signal.SIGKILL)

P = ParamSpec("P")
T = TypeVar("T")

# Children beyond the number of processors only slow each other down.
_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def boxed(
    work: Callable[..., T], arguments: Mapping[str, Any], *, here: bool, what: str
) -> T:
    """Give what a function of `bounded` returns.

    Args:
        work: a function of a module of `bounded`; what it takes and gives is JSON data.
        arguments: by name.
        here: True where it is certain to be short; what then nests too deep for this process's
            stack goes to a child all the same.
        what: names the work in faults, as "the pattern 'a+'".

    Raises:
        AttemptFault: TASK_INVALID where the pack's data is at fault, SCORER_TIMED_OUT after
            `CPU_S` seconds of CPU time, SCORER_CRASHED where it needs too much memory.
    """
    if here:
        try:
            return work(**arguments)
        except PackFault as error:
            raise AttemptFault(IssueCode.TASK_INVALID, str(error)) from error
        except RecursionError:
            pass
    package = bounded.__name__
    job: dict[str, object] = {
        "module": work.__module__,
        "function": work.__qualname__,
        "package": package,
        "paths": [path for path in sys.path if path],
        "arguments": dict(arguments),
    }
    loop = asyncio.get_running_loop()
    gate = _gates.setdefault(loop, asyncio.Semaphore(os.cpu_count() or 1))
    async with gate:
        reply = await _reply_to(_json_bytes(job), what)
    if "result" in reply:
        result: T = reply["result"]
        return result
    if "fault" in reply:
        raise AttemptFault(IssueCode.TASK_INVALID, reply["fault"])
    said = "nests too deep" if "recursion" in reply else "needs too much memory on this text"
    raise AttemptFault(IssueCode.SCORER_CRASHED, f"{what} {said}")


async def _reply_to(payload: bytes, what: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-B", str(_CHILD), str(CPU_S), str(MEMORY_BYTES)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(_WALL_S):
            reply, _ = await process.communicate(payload)
    except TimeoutError as error:
        raise _timed_out(what) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode in _TIME_SIGNALS:
        raise _timed_out(what)
    if process.returncode != 0 or not reply:
        raise AttemptFault(
            IssueCode.SCORER_CRASHED, f"the process for {what} ended with {process.returncode}"
        )
    # Not orjson: texts may hold lone surrogates.
    return _from_json(reply)


def _timed_out(what: str) -> AttemptFault:
    return AttemptFault(
        IssueCode.SCORER_TIMED_OUT,
        f"{what} took longer than {CPU_S} s on this text; write it so that its cost does not grow "
        "faster than the text",
    )


def _json_bytes(job: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(job)
    except TypeError:  # lone surrogates, huge numbers
        import json

        return json.dumps(job).encode()


def _from_json(reply: bytes) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(reply)
    return found
