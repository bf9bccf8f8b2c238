"""The terminal of one attempt: tmux in the session, whose server lives as long as it should.

Where a session ends with each program what that left in the background, one program stays for the
whole attempt and holds the server. Where services stay, so does the terminal: what runs in it may
be what the task asks for.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from steelyard.components.environment import EnvironmentFault, ExecResult, Session
from steelyard.components.issues import AttemptFault, IssueCode

EXEC_S: Final = 300.0
"""For a command of the harness's own in the environment, where it names no time."""
_START_S: Final = 20.0
_LOOK_S: Final = 0.1
_END_S: Final = 10.0
_FIND: Final = """
command -v bash >/dev/null || { echo bash; exit 3; }
[ -n "$1" ] || command -v tmux >/dev/null || { echo tmux; exit 3; }
d="${TMPDIR:-/tmp}"
[ ${#d} -le 60 ] || d=/tmp
exec mktemp -d "$d/steelyard-tmux-XXXXXX"
"""
_HOLD: Final = "\nexec tmux wait-for steelyard-end"


class Terminal:
    """Runs commands as harbor words them, with one tmux server of the attempt's own."""

    def __init__(self, session: Session, group: asyncio.TaskGroup, folder: str) -> None:
        self._session = session
        self._group = group
        self._folder = folder
        self._holder: asyncio.Task[ExecResult | EnvironmentFault] | None = None

    async def run(
        self,
        command: str,
        *,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = EXEC_S,
    ) -> ExecResult:
        """Run a command by bash.

        Raises:
            EnvironmentFault: the session is gone.
        """
        return await self._session.exec(
            ["bash", "-c", command],
            env={**(env or {}), "TMUX_TMPDIR": self._folder},
            cwd=cwd,
            timeout_s=timeout_s,
        )

    async def serve(self, command: str) -> ExecResult:
        """Start the tmux server by a command, such that it stays.

        Raises:
            EnvironmentFault: the session is gone.
        """
        started = await self.run(command)
        if started.exit_code != 0 or await self._has_server():
            return started
        self._holder = self._group.create_task(self._held(command))
        deadline_s = asyncio.get_running_loop().time() + _START_S
        while asyncio.get_running_loop().time() < deadline_s:
            if self._holder.done():
                ended = self._holder.result()
                if isinstance(ended, EnvironmentFault):
                    raise ended
                return ended
            if await self._has_server():
                return started
            await asyncio.sleep(_LOOK_S)
        return ExecResult(1, b"", f"tmux did not start within {_START_S:g} s".encode())

    async def leave(self) -> None:
        """Let go of the terminal: where services stay, with what runs in it; else end it."""
        if self._holder is not None:
            await self.end()

    async def end(self) -> None:
        """End the terminal with what runs in it."""
        with suppress(EnvironmentFault, TimeoutError):
            async with asyncio.timeout(_END_S):
                await self.run('tmux kill-server; rm -rf -- "$TMUX_TMPDIR"', timeout_s=_END_S)
        if self._holder is not None:
            self._holder.cancel()
            await asyncio.wait({self._holder})

    async def _has_server(self) -> bool:
        return (await self.run("tmux list-sessions", timeout_s=_END_S)).exit_code == 0

    async def _held(self, command: str) -> ExecResult | EnvironmentFault:
        """Run the server's holder; a fault is given back, since a group would wrap it."""
        try:
            return await self.run(command + _HOLD, timeout_s=None)
        except EnvironmentFault as fault:
            return fault


async def terminal_folder(session: Session, *, may_install: bool) -> str:
    """Make the folder of an attempt's tmux, and see that what a terminal takes is there.

    Raises:
        AttemptFault: the environment lacks bash, or tmux where that may not be installed.
        EnvironmentFault: the session is gone.
    """
    made = await session.exec(
        ["sh", "-c", _FIND, "sh", "install" if may_install else ""], timeout_s=60
    )
    folder = made.stdout_text.strip()
    if made.exit_code == 0 and folder.startswith("/"):
        return folder
    if made.exit_code == 3 and folder in ("bash", "tmux"):
        raise lacks(folder)
    if made.exit_code == 127:
        raise lacks("sh")
    raise AttemptFault(
        IssueCode.CONFIGURATION,
        f"terminus2 cannot make a folder in the environment: {made.stderr_text.strip()[:300]}",
    )


def lacks(program: str, more: str = "") -> AttemptFault:
    """Make the fault of an environment without a program that Terminus 2 works in."""
    return AttemptFault(
        IssueCode.CONFIGURATION,
        f"the environment has no {program}, which terminus2 works in{more}; take an image that "
        f"brings it (in a Dockerfile: RUN apt-get update && apt-get install -y {program}), or the "
        "harness terminal_agent, which needs a shell alone",
        request_fault=True,
    )
