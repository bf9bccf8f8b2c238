"""Run a trial's programs in namespaces of their own: one bubblewrap each, as `walls.py` says.

    [nsenter] [unshare: the overlay] [prlimit] [setpriv] bwrap --args 6 -- PROGRAM

One chain of execs, no process in front. The overlay is mounted in a mount namespace that lives as
long as the program's processes do.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from steelyard.environments import bubblewrap, cgroups, processes
from steelyard.environments.mount_view import MountView
from steelyard.environments.sandbox_limits import Holders, SandboxLimits, prlimit_words
from steelyard.environments.sandbox_start import Start
from steelyard.fix import walls
from steelyard.fix.runner_values import (
    WATCH_EVERY_S,
    OverlayRefused,
    RunnerFault,
    Stage,
    StageEnd,
    Watch,
    refused,
)
from steelyard.fix.trial_tree import TreeMethod, TrialTree
from steelyard.fix.walls import INSIDE, Isolation, View

FIRST_FD: Final = 7
"""The number of a program's first descriptor of `Stage.fds`."""
_NO_OVERLAY: Final = b"steelyard: no overlay"
_MOUNT: Final = (
    'mount -t overlay overlay -o "$1" "$2" || { echo "steelyard: no overlay" >&2; exit 125; }\n'
    'shift 2; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class Held:
    """What programs are held by on this machine."""

    isolation: Isolation
    origin: Path
    """The user's checkout; a trial's tree is shown in its place."""
    tools: bubblewrap.Tools
    holders: Holders
    view: MountView | None
    shown: tuple[Path, ...]
    hidden: tuple[Path, ...]

    async def run(
        self, stage: Stage, tree: TrialTree, inputs: Path | None, watch: Watch
    ) -> StageEnd:
        """Run a program to its end and its namespace's.

        Raises:
            OverlayRefused: the tree's overlay could not be mounted.
            RunnerFault: bubblewrap failed.
            OSError: this machine can start no process, or something does not end.
        """
        limits = SandboxLimits(
            float(os.cpu_count() or 1),
            stage.limits.memory_mb,
            stage.limits.processes,
            stage.limits.disk_mb,
            self.isolation != "strict",
        )
        view = self._view(stage, tree, inputs)
        chdir = str(self.origin / stage.cwd)

        def words(status_fd: int, block_fd: int, seccomp_fd: int) -> bytes:
            return walls.options(
                view,
                stage.variables,
                chdir=chdir,
                status_fd=status_fd,
                block_fd=block_fd,
                seccomp_fd=seccomp_fd,
            )

        token = f"fix-{tree.folder.name}"
        try:
            start = Start.with_options(
                self._prefix(limits, tree),
                words,
                stage.argv,
                token=token,
                more_fds=stage.fds,
            )
        except ValueError as error:
            return refused(str(error))
        group = await asyncio.to_thread(self.holders.group, token, limits)
        rlimits = self.holders.rlimits(limits) if self.holders.prlimit is None else {}
        try:
            ended = await processes.run(
                start.command,
                timeout_s=stage.timeout_s,
                max_output_bytes=stage.limits.output_bytes,
                keeps_last=True,
                on_start=lambda _process: start.complete(rlimits, group),
                watch=watch,
                watch_every_s=WATCH_EVERY_S,
                end_tree=start.end_tree,
            )
            exit_code = start.exit_code()
            ran_out = await asyncio.to_thread(_ran_out_of_memory, group)
        finally:
            start.close()
            await asyncio.to_thread(_remove_groups, group)
        return await self._held_end(ended, exit_code, ran_out, watch, stage)

    async def _held_end(
        self,
        ended: processes.Ended,
        exit_code: int | None,
        ran_out: bool,
        watch: Watch,
        stage: Stage,
    ) -> StageEnd:
        if exit_code is not None and 128 < exit_code <= 192:
            exit_code = 128 - exit_code
        stopped_by = ended.stopped_by or await watch.last_look()
        if ran_out and exit_code != 0:
            stopped_by = stopped_by or f"memory: more than {stage.limits.memory_mb} MB"
        refusal = None
        if exit_code is None and not ended.timed_out and stopped_by is None:
            if _NO_OVERLAY in ended.stderr:
                raise OverlayRefused(ended.stderr.decode("utf-8", "replace")[-500:])
            told = bubblewrap.refusal_of_program(ended.stderr)
            if told is None:
                said = ended.stderr.decode("utf-8", "replace").strip()[-500:]
                raise RunnerFault(f"bubblewrap failed ({ended.returncode}): {said}")
            exit_code, refusal = told
        return StageEnd(
            exit_code,
            ended.stdout,
            ended.stderr,
            ended.timed_out,
            stopped_by,
            ended.duration_s,
            refusal,
        )

    def _view(self, stage: Stage, tree: TrialTree, inputs: Path | None) -> View:
        tmp = Path("/tmp")  # noqa: S108 — the trial's own, shown there
        binds = [(tree.tmp, tmp, True)]
        other = Path("/var/tmp")  # noqa: S108
        if self.isolation == "standard" and other.is_dir() and not other.is_symlink():
            binds.append((tree.tmp, other, True))
        binds += [(tree.home, INSIDE / "home", True), (tree.kit, INSIDE / "kit", False)]
        if stage.sees_result:
            binds.append((tree.result, INSIDE / "result", True))
        if inputs is not None and stage.sees_inputs:
            binds.append((inputs, INSIDE / "inputs", False))
        binds += [(path, INSIDE / name, writable) for path, name, writable in stage.more_binds]
        return View(
            self.isolation,
            tree.top,
            self.origin,
            tuple(binds),
            hidden=self.hidden,
            shown=self.shown,
            covered=tuple((self.origin / path, folder) for path, folder in stage.covered),
            network=self.isolation != "strict",
        )

    def _prefix(self, limits: SandboxLimits, tree: TrialTree) -> list[str]:
        words = [] if self.view is None else self.view.prefix()
        if self.holders.prlimit:
            words += prlimit_words(self.holders.prlimit, self.holders.rlimits(limits))
        if tree.method is TreeMethod.OVERLAY:
            is_root = os.geteuid() == 0
            words += [shutil.which("unshare") or "unshare", "--mount", "--propagation", "private"]
            words += [] if is_root else ["--user", "--map-root-user"]
            options = tree.mount_options(in_user_namespace=not is_root)
            words += ["--", "/bin/sh", "-c", _MOUNT, "sh", options, str(tree.top)]
        return [*words, *bubblewrap.prefix(self.tools)]


def without_cpu(holders: Holders) -> Holders:
    """Leave processor time alone: sharing it out would be measured."""
    slots = tuple(
        replace(slot, controllers=slot.controllers - {"cpu"})
        for slot in holders.slots
        if slot.controllers - {"cpu"}
    )
    return replace(holders, slots=slots, controllers=holders.controllers - {"cpu"})


def _ran_out_of_memory(group: cgroups.Group) -> bool:
    for folder in group.folders:
        for name, key in (("memory.events", "oom_kill "), ("memory.oom_control", "oom_kill ")):
            with suppress(OSError, ValueError):
                for line in (folder / name).read_text().splitlines():
                    if line.startswith(key) and int(line.split()[1]):
                        return True
    return False


def _remove_groups(group: cgroups.Group) -> None:
    for folder in group.folders:
        with suppress(OSError):
            cgroups.remove(folder)
