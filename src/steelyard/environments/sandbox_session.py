"""A session of `sandbox`: what it stands on, and the programs that run in it.

Each `exec` is one bubblewrap: what a program leaves running ends with it; `/workspace` and `/tmp`
stay.
"""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from steelyard.components.environment import (
    EnvironmentDescription,
    EnvironmentFault,
    ExecResult,
    OpenRequest,
)
from steelyard.components.session_folders import new_folder, temporary_base
from steelyard.components.values import Trust
from steelyard.environments import bubblewrap, cgroups, processes, sandbox_probe
from steelyard.environments.files import Confined, Owner
from steelyard.environments.local_session import LocalSession, in_thread, refused
from steelyard.environments.mount_view import MountView, ViewUnavailable, first_closed
from steelyard.environments.sandbox_limits import (
    MAX_FILES,
    MIB,
    Holders,
    SandboxLimits,
    find_holders,
    may_limit_others,
    prlimit_words,
)
from steelyard.environments.sandbox_start import GATE_PORT, Start
from steelyard.environments.terminal import SHELL, in_own_terminal, is_terminal, run_attached
from steelyard.environments.tree_copy import used_bytes

_PROBE_WAIT_S: Final = 60.0
_UNWATCHED_PROGRAMS: Final = 8


@dataclass(frozen=True, slots=True)
class Ground:
    """What every session of a provider stands on."""

    tools: bubblewrap.Tools
    base: Path
    python: Path
    view: MountView | None
    """Where only root can reach `python`, or what is mounted, by its path."""
    holders: Holders

    def prefix(self, limits: SandboxLimits) -> list[str]:
        """Give the words before bubblewrap's options."""
        view = [] if self.view is None else self.view.prefix()
        prlimit = self.holders.prlimit
        held = prlimit_words(prlimit, self.holders.rlimits(limits)) if prlimit else []
        return [*view, *held, *bubblewrap.prefix(self.tools)]

    @property
    def owner(self) -> Owner | None:
        """Whom the session's folders belong to, where not to this process."""
        if self.tools.setpriv is None:
            return None
        return Owner(bubblewrap.DROP_TO_ID, bubblewrap.DROP_TO_ID)


class SandboxSession(LocalSession):
    """One folder, and programs that see nothing else of the host that can be written."""

    workdir = bubblewrap.WORKDIR

    def __init__(
        self,
        request: OpenRequest,
        ground: Ground,
        limits: SandboxLimits,
        *,
        trust: Trust,
        details: Mapping[str, str],
        host_url: str | None = None,
        kept: Path | None = None,
    ) -> None:
        """Make a session; nothing is written before it is used.

        `host_url` is where the gateway listens on the host's loopback, for sessions that share
        the host's network; others get a way in of their own. `kept` is the folder of a session
        that was kept, to work in that.
        """
        folder = kept or new_folder(request.token, base=ground.base)
        self._was_kept = kept is not None
        self._work, self._tmp, self._etc = folder / "work", folder / "tmp", folder / "etc"
        files = Confined(
            {bubblewrap.WORKDIR: self._work, bubblewrap.TMP: self._tmp},
            workdir=bubblewrap.WORKDIR,
            owner=ground.owner,
            are_fixed=True,
        )
        super().__init__(request, folder, files)
        self._ground = ground
        self._limits = limits
        self._group: cgroups.Group | None = None
        self._free_bytes = 0
        self._unwatched = 0
        """Programs since somebody looked at the folders."""
        self._gate = None if limits.network_open else request.gate
        self.model_url = host_url if self._gate is None else f"http://127.0.0.1:{GATE_PORT}"
        self.trust = trust
        self.description = EnvironmentDescription("sandbox", details=details)

    def _make_folder(self) -> None:
        if not self._was_kept:
            self._make_new_folder()
        self._free_bytes = _free_bytes(self._work)
        self._group = self._ground.holders.group(self._request.token, self._limits)

    def _make_new_folder(self) -> None:
        self._folder.mkdir(mode=0o700)
        for folder in (self._work, self._tmp, self._etc):
            folder.mkdir(mode=0o755)
        for name, text in bubblewrap.ETC_FILES.items():
            (self._etc / name).write_text(text)
            (self._etc / name).chmod(0o644)
        if owner := self._ground.owner:
            for folder in (self._folder, self._work, self._tmp):
                os.chown(folder, owner.uid, owner.gid)

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

        An exit code from 129 to 192 is given as the signal it stands for.

        Raises:
            EnvironmentFault: the session is gone or could not start any process.
        """
        async with self._busy():
            try:
                start = self._prepare(argv, env, cwd)
            except ValueError as error:
                return refused(error)
            except OSError as error:
                raise EnvironmentFault(f"no program can be started: {error}") from error
            try:
                ended = await processes.run(
                    replace(start.command, stdin=stdin),
                    timeout_s=timeout_s,
                    max_output_bytes=max_output_bytes,
                    on_start=lambda process: self._complete(start, process),
                    watch=self._over_limit,
                    end_tree=start.end_tree,
                    running=self._running,
                )
                exit_code = start.exit_code()
                if ended.stopped_by is None and self._has_grown():
                    ended = replace(ended, stopped_by=await self._over_limit())
            except processes.ProgramNotStarted as error:
                if error.blames_words:
                    return refused(error)
                raise EnvironmentFault(f"bubblewrap cannot be started: {error}") from error
            except OSError as error:
                raise EnvironmentFault(f"no process can be started: {error}") from error
            finally:
                start.close()
        if self._is_closed:
            raise EnvironmentFault("the session was closed while a program ran")
        return self._result(argv, ended, exit_code)

    def _result(
        self, argv: Sequence[str], ended: processes.Ended, exit_code: int | None
    ) -> ExecResult:
        if exit_code is not None:
            return ended.as_result(128 - exit_code if 128 < exit_code <= 192 else exit_code)
        if ended.timed_out or ended.stopped_by or ended.on_request:
            return ended.as_result(-9)
        if refusal := bubblewrap.refusal_of_program(ended.stderr):
            code, why = refusal
            said = f"{argv[0]}: {why}\n".encode("utf-8", "replace")
            return ExecResult(code, b"", said, duration_s=ended.duration_s)
        said_text = ended.stderr.decode("utf-8", "replace").strip()[-500:]
        raise EnvironmentFault(f"bubblewrap failed ({ended.returncode}): {said_text}")

    def _prepare(
        self, argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None
    ) -> Start:
        ground = self._ground
        variables = self._variables(
            env,
            {
                "PATH": bubblewrap.search_path(ground.python),
                "HOME": self.workdir,
                "LANG": "C.UTF-8",
                "TMPDIR": bubblewrap.TMP,
                "USER": "sandbox",
            },
        )
        layout = bubblewrap.Layout(
            self._work,
            self._tmp,
            self._etc,
            ground.python,
            min(self._limits.memory_mb, self._limits.disk_mb) * MIB,
            self._limits.network_open,
            self._request.mounts,
        )
        return Start.prepare(
            ground.prefix(self._limits),
            layout,
            argv,
            variables,
            chdir=posixpath.join(self.workdir, cwd or ""),
            token=self._request.token,
        )

    async def _complete(self, start: Start, process: processes.Process | None) -> None:
        if self._is_closed and process is not None:
            process.kill()
            return
        holders = self._ground.holders
        rlimits = holders.rlimits(self._limits) if holders.prlimit is None else {}
        await start.complete(rlimits, self._group, self._gate)

    def _has_grown(self) -> bool:
        """True where so much went from the file system that the folders must be looked at again.

        Programs too short for the watch could else fill it one after another. What others free
        meanwhile hides growth, so after some programs it is looked at all the same.
        """
        self._unwatched += 1
        if self._unwatched >= _UNWATCHED_PROGRAMS:
            return True
        free = _free_bytes(self._work)
        return self._free_bytes - free > self._limits.disk_mb * MIB // 4

    async def _over_limit(self) -> str | None:
        """Say `disk` where the session's folders hold more than they may."""
        most = self._limits.disk_mb * MIB
        used = await in_thread(
            used_bytes, [self._work, self._tmp], enough_bytes=most + 1, enough_entries=MAX_FILES
        )
        self._free_bytes = _free_bytes(self._work)
        self._unwatched = 0
        return "disk" if used > most else None

    def _state(self) -> dict[str, Any]:
        mounts = [[str(mount.source), mount.target] for mount in self._request.mounts]
        return {"limits": asdict(self._limits), "mounts": mounts}

    def _release(self) -> None:
        for folder in self._group.folders if self._group is not None else ():
            cgroups.remove(folder)
        self._group = None

    async def attach(self, argv: Sequence[str]) -> int:
        """Run a program with this process's terminal, behind the walls; its exit code.

        Raises:
            EnvironmentFault: it could not be started.
        """
        async with self._busy():
            words = in_own_terminal(argv or SHELL, has_terminal=is_terminal())
            start = self._prepare(words, {"TERM": os.environ.get("TERM", "dumb")}, None)
            try:
                code = await run_attached(
                    start.command,
                    on_start=lambda: self._complete(start, None),
                    watch=self._over_limit,
                    end_tree=start.end_tree,
                )
                exit_code = start.exit_code()
            except (processes.ProgramNotStarted, OSError) as error:
                raise EnvironmentFault(f"bubblewrap cannot be started: {error}") from error
            finally:
                start.close()
        if exit_code is None and code < 0:  # by a limit of the session, or from outside
            return code
        if exit_code is None:  # bubblewrap says itself, on the terminal, why
            raise EnvironmentFault(f"the program did not start in the sandbox ({code})")
        return exit_code

    async def probe(self) -> list[str]:
        """Try the walls; what is not tight.

        Raises:
            EnvironmentFault: the probe could not be run.
        """
        await self.write_file(".probe", b"")
        await in_thread((self._work / ".probe").unlink)
        canary = self._folder / "canary"
        await in_thread(canary.touch, 0o600)
        python = self._ground.python / "bin" / "python3"
        result = await self.exec(
            [str(python), "-I", "-S", "-c", sandbox_probe.PROGRAM, str(canary)],
            timeout_s=_PROBE_WAIT_S,
        )
        if result.exit_code != 0:
            said = result.stderr_text.strip()[-500:]
            return [f"the probe ended with {result.exit_code}: {said}"]
        weak = sandbox_probe.weaknesses(
            result.stdout, network_open=self._limits.network_open, python=self._ground.python
        )
        owner = self._ground.owner
        written = await in_thread((self._work / ".probe").stat)
        if os.geteuid() == 0 and owner is not None and written.st_uid != owner.uid:
            weak.append(f"programs are user {written.st_uid} outside")
        return weak


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def find_ground(token: str) -> Ground:
    """Find what sessions stand on. Blocking.

    Raises:
        EnvironmentFault: this machine lacks something; the remedy is in the message.
    """
    if reason := bubblewrap.unavailable():
        raise EnvironmentFault(reason)
    tools = bubblewrap.find_tools()
    if isinstance(tools, str):  # pragma: no cover - `unavailable` says it first
        raise EnvironmentFault(tools)
    python = Path(sys.base_prefix)
    view: MountView | None = None
    base = temporary_base()
    if tools.setpriv is not None:
        bases = (base, Path("/tmp"), Path("/var/tmp"))  # noqa: S108 — unguessable names below
        open_bases = [folder for folder in bases if folder.is_dir() and not first_closed(folder)]
        if not open_bases:
            raise EnvironmentFault(f"an unprivileged user cannot reach {base}; set TMPDIR")
        base = open_bases[0]
        if first_closed(python.resolve()):
            try:
                view = MountView([python.resolve()])
            except ViewUnavailable as error:
                raise EnvironmentFault(
                    f"an unprivileged user cannot reach {python}: {error}"
                ) from error
    try:
        may_limit = tools.setpriv is None or may_limit_others()
        holders = find_holders(token, may_limit_others=may_limit)
    except FileNotFoundError as error:
        raise EnvironmentFault(str(error)) from error
    return Ground(tools, base, python, view, holders)
