"""Hold a session's processes in cgroups, where this process may write one.

Nothing is assumed: each controller is looked for where this process itself stands, in version 1's
hierarchies or in version 2's, and used only where a group could be made and limited. Which ones
hold is recorded; what is not here falls to rlimits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.components.session_folders import PREFIX, label_of

_ROOT = Path("/sys/fs/cgroup")
CPU_PERIOD_US: Final = 100_000
_TOGETHER: Final = "steelyard"
"""The group that holds every session's where processors are shared out; gone with the last."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a group may use; None for no bound."""

    memory_bytes: int | None = None
    processes: int | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A folder below which groups can be made for some controllers."""

    folder: Path
    version: int
    controllers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Group:
    """The groups of one session."""

    folders: tuple[Path, ...]
    controllers: frozenset[str]
    """Of `memory`, `pids`, `cpu`: those that hold a limit."""

    def add(self, pid: int) -> None:
        """Put a process in; those it starts from now on are in, too. Blocking (up to 20 ms)."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))


def slots(*, root: Path = _ROOT, own: str | None = None) -> list[Slot]:
    """Find where this process can make groups; looks, makes nothing.

    Args:
        root: where cgroup file systems are mounted.
        own: the text of `/proc/self/cgroup`; read where None.
    """
    if own is None:
        try:
            own = Path("/proc/self/cgroup").read_text()
        except OSError:
            return []
    found: list[Slot] = []
    taken: set[str] = set()
    for line in own.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0":
            found += _version_2(root, path)
            continue
        controllers = frozenset(names.split(",")) & {"memory", "pids", "cpu"}
        folder = root / names / path.lstrip("/")
        if controllers and os.access(folder, os.W_OK):
            found.append(Slot(folder, 1, controllers))
            taken |= controllers
    return [slot for slot in found if slot.version == 1 or not slot.controllers & taken]


def _version_2(root: Path, path: str) -> Iterator[Slot]:
    mount = root if (root / "cgroup.controllers").exists() else root / "unified"
    own = mount / path.lstrip("/")
    # A group with processes cannot hand controllers down, unless it is the root: else a sibling.
    for folder in (own, own.parent):
        try:
            handed = frozenset((folder / "cgroup.subtree_control").read_text().split())
        except OSError:
            continue
        controllers = handed & {"memory", "pids", "cpu"}
        writable = os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)
        if controllers and writable and mount in (folder, *folder.parents):
            yield Slot(folder, 2, controllers)
            return


def make(token: str, limits: Limits, *, among: list[Slot]) -> Group:
    """Make a session's groups and limit them; leaves out what this machine refuses. Blocking."""
    folders: list[Path] = []
    held: set[str] = set()
    for slot in among:
        wanted = _settings(slot, limits)
        if not wanted:
            continue
        try:
            folder = _new_group(slot, f"{PREFIX}{label_of(token)}-{os.urandom(4).hex()}")
        except OSError:
            continue
        here: set[str] = set()
        for controller, name, value in wanted:
            with suppress(OSError):
                (folder / name).write_text(value)
                here.add(controller)
        if here:
            folders.append(folder)
            held |= here
        else:
            folder.rmdir()
    _without_swap(folders)
    return Group(tuple(folders), frozenset(held))


def _settings(slot: Slot, limits: Limits) -> list[tuple[str, str, str]]:
    """List (controller, file, value) for what the slot can hold."""
    wanted = []
    if limits.memory_bytes is not None and "memory" in slot.controllers:
        name = "memory.limit_in_bytes" if slot.version == 1 else "memory.max"
        wanted.append(("memory", name, str(limits.memory_bytes)))
    if limits.processes is not None and "pids" in slot.controllers:
        wanted.append(("pids", "pids.max", str(limits.processes)))
    if limits.cpu is not None and "cpu" in slot.controllers:
        quota = max(1000, int(limits.cpu * CPU_PERIOD_US))
        if slot.version == 1:
            wanted.append(("cpu", "cpu.cfs_quota_us", str(quota)))
        else:
            wanted.append(("cpu", "cpu.max", f"{quota} {CPU_PERIOD_US}"))
    return wanted


def _without_swap(folders: list[Path]) -> None:
    """Let a group's memory limit stand for memory and swap together."""
    for folder in folders:
        with suppress(OSError):
            limit = (folder / "memory.limit_in_bytes").read_text()
            (folder / "memory.memsw.limit_in_bytes").write_text(limit)
        if (folder / "memory.swap.max").exists():
            with suppress(OSError):
                (folder / "memory.swap.max").write_text("0")


def _new_group(slot: Slot, name: str) -> Path:
    """Make an empty group; where processors are shared out, below the one for all sessions.

    64 sessions that each weigh as much as we do leave the event loop a 65th of the processors: it
    wakes late, and deadlines lie. Together they weigh half as much as we do, and share that.

    Raises:
        OSError: this machine refuses.
    """
    if "cpu" not in slot.controllers:
        folder = slot.folder / name
        folder.mkdir()
        return folder
    together = slot.folder / _TOGETHER
    folder = together / name
    for turn in range(5):
        try:
            together.mkdir()
        except FileExistsError:
            pass
        else:
            _let_us_go_first(together, slot)
        try:
            folder.mkdir()
        except FileNotFoundError:  # the last session of another run went, and `_TOGETHER` with it
            if turn == 4:
                raise
        else:
            break
    return folder


def _let_us_go_first(together: Path, slot: Slot) -> None:
    for name, value in (("cpu.shares", "512"), ("cpu.weight", "50")):
        if (together / name).exists():
            with suppress(OSError):
                (together / name).write_text(value)
    if slot.version == 2:
        handed = " ".join(f"+{name}" for name in sorted(slot.controllers))
        (together / "cgroup.subtree_control").write_text(handed)


def find(tokens: Collection[str], *, root: Path = _ROOT) -> list[tuple[str, Path]]:
    """Find groups of these tokens below the slots of this process and of its ancestors."""
    labels = {label_of(token): token for token in tokens}
    places: set[Path] = set()
    for slot in slots(root=root):
        for place in (slot.folder, *slot.folder.parents):
            if root in place.parents:
                places |= {place, place / _TOGETHER}
    found = []
    for place in sorted(places):
        with suppress(OSError):
            for folder in place.iterdir():
                label, dash, _ = folder.name.removeprefix(PREFIX).rpartition("-")
                if folder.name.startswith(PREFIX) and dash and label in labels:
                    found.append((labels[label], folder))
    return found


def remove(folder: Path) -> None:
    """End what is left in a group, then remove it, and the one for all sessions with the last.

    Raises:
        OSError: it stays busy.
    """
    _remove_one(folder)
    if folder.parent.name == _TOGETHER:
        with suppress(OSError):  # others are in it
            folder.parent.rmdir()


def _remove_one(folder: Path) -> None:
    for turn in range(50):
        with suppress(OSError):
            (folder / "cgroup.kill").write_text("1")
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if turn == 49:
                raise
            for pid in _members(folder):
                with suppress(OSError):
                    os.kill(pid, 9)
            time.sleep(0.002 * (turn + 1))
        else:
            return


def _members(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split() if line != "0"]
    except OSError:
        return []
