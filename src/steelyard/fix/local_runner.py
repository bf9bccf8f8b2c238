"""Run a trial's programs on this machine: in namespaces of their own, or without, as they are.

With namespaces each program sees the host read-only, and neither the user's checkout nor state,
other trials or credentials (`walls.py`); its end is the end of its process namespace. Without them
it is started by a supervisor that adopts and ends all it leaves behind (`supervisor.py`); nothing
else holds it, and its trust is `host`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from steelyard.components.values import Trust
from steelyard.environments import bubblewrap, processes
from steelyard.environments.mount_view import MountView, ViewUnavailable, first_closed
from steelyard.environments.sandbox_limits import find_holders, may_limit_others
from steelyard.environments.tree_copy import remove_tree
from steelyard.fix import held_runner, runner_probe, supervised_runner, walls
from steelyard.fix.runner_values import Places, RunnerFault, Stage, StageEnd, UnknownEnd, Watch
from steelyard.fix.trial_tree import TreeMethod, TrialTree, has_reflinks, trial_of
from steelyard.fix.walls import INSIDE, Isolation


class LocalRunner:
    """Runs on this host. `prepare` first; it says with what trust."""

    def __init__(
        self,
        origin: Path,
        base: Path,
        *,
        isolation: Isolation = "standard",
        hidden: Sequence[Path] = (),
        home: Path | None = None,
        path: str | None = None,
    ) -> None:
        """Make a runner; nothing is started or written.

        Args:
            origin: the user's checkout, never shown; a trial's tree stands in its place.
            base: a folder for trials; the sealed trees they run on lie below it, too.
            isolation: as the profile says.
            hidden: what else is covered: state kept elsewhere, another checkout's repository.
            home: the user's, for the credentials in it.
            path: the search path of programs; this process's by default.
        """
        self.origin = origin.resolve()
        self.base = base.resolve()
        self.isolation: Isolation = isolation
        self._more_hidden = tuple(hidden)
        self._home = home or Path.home()
        self.path = os.environ.get("PATH", os.defpath) if path is None else path
        self._held: held_runner.Held | None = None
        self.without_namespaces: str | None = None
        """Why programs are held by nothing, and the remedy; None where they are held."""
        self.method = TreeMethod.COPY

    # What stands

    async def prepare(self) -> None:
        """Find out what this machine can do, and try it.

        Raises:
            RunnerFault: namespaces are there and are not tight. Never a weaker trust instead.
        """
        await asyncio.to_thread(self._settle)
        if self._held is None:
            if await asyncio.to_thread(has_reflinks, self.base):
                self.method = TreeMethod.REFLINK
            return
        if self._can_name_layers() and await self._try(TreeMethod.OVERLAY):
            return
        has_links = await asyncio.to_thread(has_reflinks, self.base)
        await self._try(TreeMethod.REFLINK if has_links else TreeMethod.COPY)

    async def _try(self, method: TreeMethod) -> bool:
        self.method = method
        return await runner_probe.try_walls(self)

    def _can_name_layers(self) -> bool:
        """True where an overlay's options can hold our paths, and there is what mounts it."""
        plain = not set(str(self.base)) & set(",:\\")
        return plain and shutil.which("unshare") is not None and shutil.which("mount") is not None

    def _settle(self) -> None:
        self.base.mkdir(parents=True, exist_ok=True)
        self.base.chmod(0o711)
        reason = bubblewrap.unavailable()
        tools = bubblewrap.find_tools()
        if reason is not None or isinstance(tools, str):
            self.without_namespaces = reason or str(tools)
            return
        as_other = tools.setpriv is not None
        bases = [Path(sys.base_prefix), Path(sys.prefix)]
        shown = walls.interpreter_folders(self.path, self._home, bases, self.origin)
        view = None
        if as_other:
            shown = tuple(path for path in shown if first_closed(path) != path)
            closed = [path for path in (*shown, self.base) if first_closed(path)]
            if closed:
                try:
                    view = MountView(closed)
                except ViewUnavailable as error:
                    self.without_namespaces = f"trials cannot reach their files: {error}"
                    return
        hidden = [*self._more_hidden, *walls.credential_places(self._home)]
        if self.origin not in self.base.parents:
            hidden.append(self.base)
        sockets = Path("/proc/net/unix").read_text(errors="replace")
        hidden += [p for p in walls.listening_sockets(sockets, self.origin) if p.exists()]
        hidden = [p for p in hidden if walls.can_be_reached(p, as_other_user=as_other)]
        try:
            may_limit = not as_other or may_limit_others()
            holders = find_holders(f"fix{secrets.token_hex(4)}", may_limit_others=may_limit)
        except FileNotFoundError as error:
            self.without_namespaces = str(error)
            return
        self._held = held_runner.Held(
            self.isolation,
            self.origin,
            tools,
            held_runner.without_cpu(holders),
            view,
            shown,
            tuple(hidden),
        )

    @property
    def sealed_base(self) -> Path:
        """Where the sealed trees of this runner's trials are laid out."""
        return self.base / "sealed"

    @property
    def owner(self) -> int | None:
        """Whom trials' files belong to, where not to this process."""
        if self._held is None or self._held.tools.setpriv is None:
            return None
        return bubblewrap.DROP_TO_ID

    def trust(self, *, has_subject: bool) -> Trust:
        """Say how far a trial's result can be believed."""
        if self._held is None:
            return Trust.HOST
        return Trust.ISOLATED if has_subject else Trust.CONTAINED

    def details(self) -> dict[str, str]:
        """Say, for the record, how tightly each limit is held."""
        if self._held is None:
            return {
                "namespaces": "none",
                "memory": "rlimit, each process",
                "processes": "counted ten times a second",
                "disk": "one file by rlimit, the sum watched",
                "network": "the host's",
            }
        held = self._held.holders.as_details()
        held.pop("cpu", None)
        network = "none" if self.isolation == "strict" else "the host's"
        return {"namespaces": self.isolation, **held, "network": network}

    def close(self) -> None:
        """Let go of what is held."""
        if self._held is not None and self._held.view is not None:
            self._held.view.close()
        self._held = None

    def remove_leftovers(self, trials: Collection[str]) -> list[str]:
        """Remove the folders of trials whose owner is gone; their names. Blocking.

        Their processes are gone: those in namespaces end with whoever started them, and so does
        the supervisor of those without, after it has ended them.
        """
        found = []
        for folder in self.base.iterdir():
            if trial_of(folder) in trials:
                remove_tree(folder)
                found.append(folder.name)
        return sorted(found)

    def places(self, tree: TrialTree) -> Places:
        """Say where programs of a trial find things."""
        if self._held is None:
            inputs = tree.folder / "inputs"
            return Places(tree.top, tree.home, tree.tmp, tree.result, inputs, tree.kit)
        tmp = Path("/tmp")  # noqa: S108 — the trial's own, shown there
        return Places(
            self.origin, INSIDE / "home", tmp, INSIDE / "result", INSIDE / "inputs", INSIDE / "kit"
        )

    @property
    def first_fd(self) -> int:
        """The number of a program's first descriptor of `Stage.fds`."""
        return supervised_runner.FIRST_FD if self._held is None else held_runner.FIRST_FD

    # Programs

    async def run(
        self, stage: Stage, tree: TrialTree, *, inputs: Path | None, stop: asyncio.Event
    ) -> StageEnd:
        """Run a program to its end and the end of all it started.

        Args:
            stage: what to run.
            tree: the trial's.
            inputs: the folder of frozen data.
            stop: set by whoever wants it ended.

        Raises:
            RunnerFault: it could not be run.
            UnknownEnd: something of it does not end.
        """
        watch = Watch(tree, stage.limits, stop)
        try:
            if self._held is None:
                return await supervised_runner.run_supervised(stage, tree, watch)
            return await self._held.run(stage, tree, inputs, watch)
        except processes.ProgramNotStarted as error:
            raise RunnerFault(f"the program that starts others cannot be run: {error}") from error
        except OSError as error:
            if error.errno == errno.EBUSY or "do not end" in str(error):
                raise UnknownEnd(str(error)) from error
            raise RunnerFault(f"no program can be started: {error}") from error
