"""One program in a container: started by a few lines of shell, its streams cut at its end.

The shell says when it has started, with its process id, and how the program ended, once on each
stream: so the end is seen where a process in the background still holds the streams, the deadline
counts from the start, and no call is needed for the exit code. Whoever fakes these lines only ends
their own program.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from steelyard.components.environment import EnvironmentFault
from steelyard.environments.docker.engine import Connection, Engine, EngineRefusal
from steelyard.environments.docker.scripts import END_ALL, END_TREE, START

MAX_WORD_BYTES: Final = 128 * 1024 - 1
"""MAX_ARG_STRLEN of the kernel, with its closing NUL."""
MAX_WORDS_BYTES: Final = 1024 * 1024
START_WAIT_S: Final = 60.0
_SCRIPT_WAIT_S: Final = 30.0
_END_TURNS: Final = 21
_END_PAUSE_S: Final = 0.1
"""An engine may close the streams a moment before it has noted the end."""

EXEC_VARIABLE: Final = "STEELYARD_EXEC"
"""Set for each program, so that what it started can be told from what others did."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is to be started."""

    argv: Sequence[str]
    variables: Mapping[str, str]
    folder: str
    stdin: bytes = b""
    user: str | None = None
    max_file_bytes: int = 0
    """Of one file that it writes; 0: not held."""


@dataclass(slots=True)
class Ended:
    """How it ended."""

    exit_code: int | None = None
    """As the shell says it; None where it did not come to that."""
    is_full: bool = False
    """Not started: the container's processes are used up."""
    pid: int | None = None
    """The shell's own, inside; None where it never started."""
    oom_kills: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: bool = False
    timed_out: bool = False
    started_at_s: float | None = None
    """On the event loop's clock."""
    stopped_by: str | None = None

    @property
    def has_no_end(self) -> bool:
        """True where neither the shell nor we said why it is over."""
        return self.exit_code is None and not (self.is_full or self.timed_out or self.stopped_by)


def check_words(program: Program) -> None:
    """Refuse what cannot be passed to a program.

    Raises:
        ValueError: a NUL byte, no UTF-8, an impossible name of a variable, or too much.
    """
    if not program.argv:
        raise ValueError("no program is named")
    whole = 0
    for word in (*program.argv, *(f"{n}={v}" for n, v in program.variables.items())):
        try:
            raw = word.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{word[:50]!r} is no UTF-8") from error
        if b"\0" in raw:
            raise ValueError(f"a NUL byte in {word[:50]!r}")
        whole += len(raw) + 9
        if len(raw) > MAX_WORD_BYTES or whole > MAX_WORDS_BYTES:
            raise ValueError("the arguments and variables are too long")
    for name in program.variables:
        if not name or "=" in name:
            raise ValueError(f"{name!r} is no name of a variable")


@dataclass(slots=True)
class Output:
    """One stream, kept up to a bound, cut at the mark."""

    mark: bytes
    max_bytes: int
    kept: bytearray = field(default_factory=bytearray)
    trailer: bytearray | None = None
    """What came after the mark."""
    truncated: bool = False
    _held: bytes = b""

    def feed(self, data: bytes) -> None:
        """Take what came next."""
        if self.trailer is not None:
            if len(self.trailer) < 256:
                self.trailer += data
            return
        data = self._held + data
        found = data.find(self.mark)
        if found >= 0:
            self._keep(data[:found])
            self.trailer = bytearray(data[found + len(self.mark) :])
            self._held = b""
            return
        # A mark may begin at the very end; only where a byte of it stands there is any held back.
        held = min(len(data), len(self.mark) - 1)
        self._keep(data[: len(data) - held])
        self._held = data[len(data) - held :]

    def end(self) -> None:
        """Take what was held back: no mark will come."""
        self._keep(self._held)
        self._held = b""

    def _keep(self, data: bytes) -> None:
        room = self.max_bytes - len(self.kept)
        self.kept += data[:room]
        self.truncated = self.truncated or len(data) > room


class Running:
    """A program under way."""

    def __init__(self, max_output_bytes: int) -> None:
        """Make a nonce for the shell's lines, and be ready to read."""
        self.mark = secrets.token_hex(16)
        # With control characters: a program may well print its parent's arguments.
        self._mark = f"\x1e{self.mark}\x1e".encode()
        self._out = Output(self._mark, max_output_bytes)
        self._err = Output(self._mark, max_output_bytes)
        self._begin = bytearray()
        self.started = asyncio.Event()
        self.pid: int | None = None
        self.started_at_s: float | None = None
        self.exec_id: str | None = None
        """The engine's name of it, once it is prepared."""

    def again(self) -> Running:
        """Give the same, for a second try."""
        other = Running(self._out.max_bytes)
        other.mark, other._mark = self.mark, self._mark
        other._out.mark = other._err.mark = self._mark
        return other

    def feed(self, stream: int, data: bytes) -> None:
        """Take what a stream brought."""
        if stream != 2:
            self._out.feed(data)
            return
        if not self.started.is_set():
            self._begin += data
            # An image's variables may make loader or shell complain first (LD_PRELOAD, LC_ALL).
            at = self._begin.find(self._mark)
            end = self._begin.find(b"\n", at) if at >= 0 else -1
            pid = bytes(self._begin[at + len(self._mark) : end])
            if end < 0 or not pid.isdigit():
                self._begin = self._begin[-4096:]
                return  # the engine's own words: the shell did not start
            self.pid = int(pid)
            self.started_at_s = asyncio.get_running_loop().time()
            self.started.set()
            data = bytes(self._begin[end + 1 :])
        if data:
            self._err.feed(data)

    @property
    def has_ended(self) -> bool:
        """True where both streams carry the end's mark."""
        trailer = self._err.trailer
        return self._out.trailer is not None and trailer is not None and b"\n" in trailer

    def said_before(self) -> str:
        """Give what came in place of the shell's first line."""
        return bytes(self._begin).decode("utf-8", "replace").strip()

    def ended(self) -> Ended:
        """Give what is known now."""
        self._out.end()
        self._err.end()
        ended = Ended(
            pid=self.pid, stdout=bytes(self._out.kept), stderr=bytes(self._err.kept),
            truncated=self._out.truncated or self._err.truncated, started_at_s=self.started_at_s,
        )  # fmt: skip
        words = bytes(self._err.trailer or b"").split()
        ended.is_full = words[:1] == [b"full"]
        if len(words) >= 2 and words[0].isdigit() and words[1].isdigit():
            ended.exit_code, ended.oom_kills = int(words[0]), int(words[1])
        return ended


_NO_SHELL: Final = re.compile(
    r'exec:? "?/bin/sh"?:.*(no such file|not found|permission denied|format error)', re.IGNORECASE
)


class ProgramNotStarted(EnvironmentFault):
    """The container's shell could not be started: no program ran."""

    @property
    def has_no_shell(self) -> bool:
        """True where there is none, or none that this machine runs."""
        return _NO_SHELL.search(str(self)) is not None


class OutputLost(EnvironmentFault):
    """The engine broke off: the program ran, or may have, and what it said is not known."""


async def run(
    engine: Engine, container: str, program: Program, running: Running, timeout_s: float | None
) -> Ended:
    """Run a program until it ends or its time is up; it is not ended by this.

    Raises:
        ProgramNotStarted: the container has no shell, or no room for one.
        OutputLost: whether it ran is not known.
        EnvironmentFault: the container is gone.
    """
    words = ["/bin/sh", "-c", START, "sh", running.mark, program.folder]
    # In blocks of 512 bytes, as POSIX has it; set inside, as an engine that is told of one limit
    # forgets its others.
    words += [str(-(-program.max_file_bytes // 512)), *program.argv]
    running.exec_id = await _prepared(
        engine, container, words, user=program.user, variables=program.variables,
        has_input=bool(program.stdin),
    )  # fmt: skip
    try:
        async with engine.program(running.exec_id) as connection:
            timed_out = not await _followed(connection, program.stdin, running, timeout_s)
    except EngineRefusal as error:
        raise ProgramNotStarted(str(error)) from error
    ended = running.ended()
    ended.timed_out = timed_out
    if ended.pid is None:
        said = running.said_before()
        # The one refusal after which a program may be started again: it must be certain.
        if _may_have_run(await _end_of(engine, running)):
            raise OutputLost(f"the engine lost what a program said: {said or 'no reason given'}")
        raise ProgramNotStarted(said or "the container's /bin/sh did not start")
    return ended


async def check_end(engine: Engine, running: Running) -> None:
    """Ask the engine of a program that started, and whose streams ended without its end.

    Its shell was killed, or the streams broke off.

    Raises:
        OutputLost: they broke off; the program may still run.
    """
    code = await _end_of(engine, running)
    if code is None or not _is_signal(code):
        raise OutputLost("the engine lost a program's streams before its end")


async def _end_of(engine: Engine, running: Running) -> int | None:
    """Give the exit code of a program's shell; None where it runs, or nobody knows."""
    for turn in range(_END_TURNS):
        if turn:
            await asyncio.sleep(_END_PAUSE_S)
        try:
            said = await engine.call(
                "GET", f"exec/{running.exec_id}/json", doing="asking how a program ended"
            )
        except EngineRefusal:
            return None
        if not said.get("Running"):
            code = said.get("ExitCode")
            return code if isinstance(code, int) else None
    return None


def _may_have_run(code: int | None) -> bool:
    # 0 and 2: its own, or not begun so far; a signal: it was killed. All else is the engine's.
    return code is None or code in (0, 2) or _is_signal(code)


def _is_signal(code: int) -> bool:
    return 128 < code <= 192


async def _followed(
    connection: Connection, stdin: bytes, running: Running, timeout_s: float | None
) -> bool:
    """Read until the end; False where the time was up before."""
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(connection.write(stdin)) if stdin else None
        deadline = None
        try:
            async with asyncio.timeout(START_WAIT_S) as bound:
                while (piece := await connection.read()) is not None:
                    running.feed(*piece)
                    if running.has_ended:
                        break
                    if deadline is None and running.started_at_s is not None:
                        deadline = None if timeout_s is None else running.started_at_s + timeout_s
                        bound.reschedule(deadline)
                        deadline = deadline or 0.0
        except TimeoutError:
            return False
        finally:
            if writing is not None:
                writing.cancel()
    return True


async def end_tree(engine: Engine, container: str, running: Running) -> None:
    """End a program of a container, all below it, and what carries its mark.

    Raises:
        EnvironmentFault: that cannot be done.
    """
    # Where it is not known that it started, the mark alone finds it.
    root = "-" if running.pid is None else str(running.pid)
    await _script(engine, container, END_TREE, (root, f"{EXEC_VARIABLE}={running.mark}"))


async def end_all(engine: Engine, container: str) -> None:
    """End every process of a container but its first.

    Raises:
        EnvironmentFault: that cannot be done.
    """
    await _script(engine, container, END_ALL, ())


async def _script(engine: Engine, container: str, script: str, words: Sequence[str]) -> None:
    """Run a script of ours as it is, with no process in front: there may be no room for two."""
    made = await _prepared(engine, container, ["/bin/sh", "-c", script, "sh", *words], user="0")
    with suppress(TimeoutError):
        async with asyncio.timeout(_SCRIPT_WAIT_S), engine.program(made) as connection:
            while await connection.read() is not None:
                pass


async def _prepared(
    engine: Engine, container: str, words: Sequence[str], *, user: str | None,
    variables: Mapping[str, str] | None = None, has_input: bool = False,
) -> str:  # fmt: skip
    made = await engine.call(
        "POST", f"containers/{container}/exec", doing="preparing a program",
        body={
            "Cmd": list(words),
            "Env": [f"{name}={value}" for name, value in (variables or {}).items()],
            "AttachStdin": has_input,
            "AttachStdout": True,
            "AttachStderr": True,
            "Tty": False,
            # Not the image's own, which an agent may have removed: then nothing would start.
            "WorkingDir": "/",
            **({"User": user} if user else {}),
        },
    )  # fmt: skip
    return str(made["Id"])
