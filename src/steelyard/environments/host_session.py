"""A session of `host_process`: programs on this machine, as this user, held by nothing.

For what nobody hostile wrote. Its one promise is order: an own folder, an explicit set of
variables without our secrets, and the process tree's end. A program that both starts a session
of its own and clears its environment can outlive its parent; use `sandbox` where that matters.
"""

from __future__ import annotations

import os
import platform
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from steelyard.components.environment import (
    EnvironmentDescription,
    EnvironmentFault,
    ExecResult,
    Network,
    OpenRequest,
)
from steelyard.components.session_folders import new_folder, temporary_base
from steelyard.components.values import Trust
from steelyard.environments import processes
from steelyard.environments.files import Confined
from steelyard.environments.local_session import LocalSession, in_thread, refused
from steelyard.environments.process_trees import (
    EXEC_VARIABLE,
    descendants,
    end_marked,
    live_pids,
)
from steelyard.environments.terminal import SHELL, in_own_terminal, is_terminal, run_attached

INHERITED: Final = (
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""All that a program inherits beside PATH; keys and proxies with passwords stay with us."""

DESCRIPTION: Final = EnvironmentDescription(
    "host_process", details={"python": platform.python_version()}
)


def host_path() -> str:
    """Give the search path: the Python that we stand on first, as in the sandbox."""
    inherited = os.environ.get("PATH", os.defpath)
    return os.pathsep.join((os.path.join(sys.base_prefix, "bin"), inherited))  # noqa: PTH118


class HostSession(LocalSession):
    """A temporary folder and the programs that run in it."""

    trust = Trust.HOST
    description = DESCRIPTION

    def __init__(self, request: OpenRequest, kept: Path | None = None) -> None:
        """Make a session; given the folder of a kept one, over that."""
        folder = kept or new_folder(request.token, base=temporary_base())
        self.workdir = str(folder)
        super().__init__(request, folder, Confined({self.workdir: folder}, workdir=self.workdir))

    def _make_folder(self) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o700)

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
        max_output_bytes: int = 10 * 1024 * 1024,
    ) -> ExecResult:
        """Run a program to its end, its whole process tree ended with it.

        Raises:
            EnvironmentFault: the session is gone or could not start any process.
        """
        async with self._busy():
            mark = secrets.token_hex(8)
            try:
                variables = self._variables(env, self._inherited()) | {EXEC_VARIABLE: mark}
            except ValueError as error:
                return refused(error)
            folder = self._folder / cwd if cwd else self._folder
            if not folder.is_dir():
                if not self._folder.is_dir():
                    raise EnvironmentFault(f"the session's folder {self._folder} is gone")
                return ExecResult(127, b"", f"{cwd}: no such folder\n".encode())
            before = live_pids()

            async def end_tree() -> None:
                await in_thread(end_marked, mark, variable=EXEC_VARIABLE, unless=before)

            try:
                ended = await processes.run(
                    processes.Command(argv, variables, str(folder), stdin),
                    timeout_s=timeout_s,
                    max_output_bytes=max_output_bytes,
                    on_start=self._on_start,
                    end_tree=end_tree,
                    find_more=descendants,
                    running=self._running,
                )
            except processes.ProgramNotStarted as error:
                ended = None
                result = ExecResult(error.exit_code, b"", f"{error}\n".encode("utf-8", "replace"))
            except OSError as error:
                raise EnvironmentFault(f"no process can be started: {error}") from error
        if self._is_closed:
            raise EnvironmentFault("the session was closed while a program ran")
        return result if ended is None else ended.as_result()

    async def end_programs(self) -> None:
        """End every program that carries the session's token, those in the background too.

        No `exec` leaves one running by intent: a service does not outlive it here.
        """
        await super().end_programs()
        if self._is_made:
            await in_thread(end_marked, self._request.token)

    async def fixed_network(self, networks: Sequence[Network]) -> str | None:
        """Nothing holds it: it is the machine's, whatever a task asks for."""
        return None

    async def change_network(self, network: Network, allowed_hosts: Sequence[str] = ()) -> None:
        """Change nothing; trust `host` says so."""

    def _inherited(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        return {**kept, "PATH": host_path(), "HOME": self.workdir, "PWD": self.workdir}

    def _release(self) -> None:
        left = end_marked(self._request.token)
        if left:
            raise OSError(f"{left} processes of the session do not end")

    async def attach(self, argv: Sequence[str]) -> int:
        """Run a program in the folder with this process's terminal; its exit code.

        What it started ends with it; other programs of the session do not.

        Raises:
            EnvironmentFault: it could not be started.
        """
        async with self._busy():
            mark = secrets.token_hex(8)
            words = in_own_terminal(argv or SHELL, has_terminal=is_terminal())
            terminal = {"TERM": os.environ.get("TERM", "dumb")}
            variables = self._variables(terminal, self._inherited()) | {EXEC_VARIABLE: mark}

            async def end_tree() -> None:
                await in_thread(end_marked, mark, variable=EXEC_VARIABLE)

            command = processes.Command(words, variables, str(self._folder))
            try:
                return await run_attached(command, end_tree=end_tree)
            except (processes.ProgramNotStarted, OSError) as error:
                raise EnvironmentFault(f"the program cannot be run: {error}") from error
