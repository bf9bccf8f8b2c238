"""What a sandbox may use: from what people ask to what this machine can hold."""

from __future__ import annotations

import platform
import re
import resource
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.components.environment import OpenRequest
from steelyard.environments import cgroups
from steelyard.environments.sandbox_params import (
    DEFAULT_CPU,
    DEFAULT_DISK_MB,
    DEFAULT_MEMORY_MB,
    DEFAULT_PROCESSES,
    SandboxParams,
)

MIB: Final = 1024 * 1024
_CAP_SYS_RESOURCE: Final = 24
_OPTION: Final = {
    resource.RLIMIT_CORE: "core",
    resource.RLIMIT_FSIZE: "fsize",
    resource.RLIMIT_DATA: "data",
}
MAX_FILES: Final = 200_000
"""A session with more files than this counts as full: looking at them costs us."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one session may use."""

    cpu: float
    memory_mb: int
    processes: int
    disk_mb: int
    network_open: bool


def limits_of(params: SandboxParams, request: OpenRequest) -> SandboxLimits:
    """Take the tighter of what the user and what the task says; a default where neither speaks."""
    asked = request.resources
    return SandboxLimits(
        _tighter(params.cpu, asked.cpu, DEFAULT_CPU),
        int(_tighter(params.memory_mb, asked.memory_mb, DEFAULT_MEMORY_MB)),
        int(_tighter(params.processes, asked.processes, DEFAULT_PROCESSES)),
        int(_tighter(params.disk_mb, asked.disk_mb, DEFAULT_DISK_MB)),
        "open" in (networks := {params.network, request.network}) and "none" not in networks,
    )


def _tighter(user: float | None, task: float | None, default: float) -> float:
    said = [value for value in (user, task) if value is not None]
    return min(said) if said else default


@dataclass(frozen=True, slots=True)
class Holders:
    """What holds each limit on this machine."""

    slots: tuple[cgroups.Slot, ...]
    controllers: frozenset[str]
    has_scoped_nproc: bool
    """True where RLIMIT_NPROC can be set inside and counts there alone (Linux 5.14 on)."""
    prlimit: str | None = None
    """The program that sets rlimits in front, where this root may not set another user's."""

    def as_details(self) -> dict[str, str]:
        """Say, for the record, how tightly each limit is held."""
        nproc = "rlimit" if self.has_scoped_nproc else "not held"
        return {
            "memory": "cgroup" if "memory" in self.controllers else "rlimit, each process",
            "processes": "cgroup" if "pids" in self.controllers else nproc,
            "cpu": "cgroup" if "cpu" in self.controllers else "not held",
            "disk": "one file by rlimit, the sum watched",
        }

    def group(self, token: str, limits: SandboxLimits) -> cgroups.Group:
        """Make the session's cgroups. Blocking.

        Raises:
            OSError: one that this machine was seen to have cannot be made now.
        """
        group = cgroups.make(
            token,
            cgroups.Limits(
                limits.memory_mb * MIB,
                limits.processes + 1,  # bubblewrap's own first process
                limits.cpu,
            ),
            among=list(self.slots),
        )
        if missing := self.controllers - group.controllers:
            for folder in group.folders:
                cgroups.remove(folder)
            raise OSError(f"no cgroup for {', '.join(sorted(missing))}, though there was one")
        return group

    def rlimits(self, limits: SandboxLimits) -> Mapping[int, int]:
        """Give the rlimits for what no cgroup holds."""
        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: limits.disk_mb * MIB,
        }
        if "memory" not in self.controllers:
            # Not RLIMIT_AS: runtimes that only reserve address space (node, JVM) would not start.
            wanted[resource.RLIMIT_DATA] = limits.memory_mb * MIB
        if "pids" not in self.controllers and self.has_scoped_nproc:
            wanted[resource.RLIMIT_NPROC] = limits.processes + 1
        return wanted


def find_holders(token: str, *, may_limit_others: bool) -> Holders:
    """Find by trying what this machine can hold. Blocking.

    Args:
        token: names the cgroups that are tried.
        may_limit_others: False where rlimits must be set before the user changes.

    Raises:
        FileNotFoundError: there is no program to set them.
    """
    among = tuple(cgroups.slots())
    trial = cgroups.make(token, cgroups.Limits(64 * MIB, 64, 1.0), among=list(among))
    for folder in trial.folders:
        with suppress(OSError):
            cgroups.remove(folder)
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    is_new = version is not None and (int(version[1]), int(version[2])) >= (5, 14)
    if may_limit_others:
        return Holders(among, trial.controllers, is_new)
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        raise FileNotFoundError("root without CAP_SYS_RESOURCE needs `prlimit` (util-linux)")
    return Holders(among, trial.controllers, False, prlimit)


def may_limit_others() -> bool:
    """True where this process may set rlimits of a process of another user."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) & 1 << _CAP_SYS_RESOURCE)


def prlimit_words(program: str, wanted: Mapping[int, int]) -> list[str]:
    """Give the words in front of a command that set its rlimits."""
    options = [f"--{_OPTION[what]}={value}:{value}" for what, value in wanted.items()]
    return [program, *options, "--"]


def apply_rlimits(pid: int, wanted: Mapping[int, int]) -> None:
    """Set soft and hard limits of a process that has not started its program yet.

    Raises:
        OSError: the process is gone, or is not ours to limit.
    """
    for what, value in wanted.items():
        _, hard = resource.prlimit(pid, what)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, what, (bound, bound))
