"""Remove containers, by label and by id, and what an engine leaves standing beside them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from steelyard.components.environment import Leftover
from steelyard.config.printable import one_line
from steelyard.environments.docker.engine import Engine, EngineRefusal
from steelyard.environments.local_session import in_thread

TOKEN_LABEL: Final = "steelyard.token"  # noqa: S105 — a label's name
OWNER_LABEL: Final = "steelyard.owner"
"""For people alone: the user and the process that opened it. What is reaped is told by tokens."""
_BUILD_ROUNDS: Final = 50
_BUILD_PAUSE_S: Final = 0.1
_HOSTS_BYTES: Final = 64 * 1024
_LAYER: Final = re.compile(r" / / .*[, ]upperdir=[^ ,]*/overlay/([0-9a-f]{64})/diff")
_LABELS: Final = ("run", "task", "attempt")
_LABEL_CHARS: Final = 200


def labels_of(labels: Mapping[str, str]) -> dict[str, str]:
    """Say on a container what it is for: `podman ps --filter label=steelyard.run=ID` finds a run's.

    Args:
        labels: `OpenRequest.labels`; a task's id may be any text.
    """
    return {
        f"steelyard.{name}": one_line(labels[name])[:_LABEL_CHARS]
        for name in _LABELS
        if name in labels
    }


async def remove_container(engine: Engine, container: str, *, had_programs: bool = True) -> None:
    """Remove a container with its processes and anonymous volumes; one that is gone is no fault.

    Raises:
        EnvironmentFault: the engine refuses, or does not answer.
    """
    try:
        await engine.call(
            "DELETE", f"containers/{container}", doing=f"removing the container {container[:12]}",
            params={"force": "1", "v": "1"},
        )  # fmt: skip
    except EngineRefusal as error:
        gone = error.status == 404 or "no such container" in error.message.lower()
        if not gone and "already in progress" not in error.message:
            raise
    if had_programs and (await engine.facts()).is_podman:
        await end_helpers(container)


async def hold_processes(engine: Engine, container: str, limit: int) -> None:
    """Bound a container's processes anew.

    Raises:
        EnvironmentFault: the engine cannot.
    """
    doing = "changing the bound of processes"
    if (await engine.facts()).is_podman:
        body: dict[str, object] = {"pids": {"limit": limit}}
        await engine.call("POST", f"libpod/containers/{container}/update", doing=doing, body=body)
    else:
        body = {"PidsLimit": limit}
        await engine.call("POST", f"containers/{container}/update", doing=doing, body=body)


async def end_helpers(container: str) -> None:
    """End the `conmon` processes of a container's programs.

    podman keeps one for each program for five minutes after its end, in case somebody asks for
    its exit code. Ours are known by the container's id, which no other process carries.
    """
    await in_thread(_end_helpers, container)


def _end_helpers(container: str) -> None:
    name, wanted = b"conmon", container.encode()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if not words[0].endswith(name) or wanted not in words:
                continue
            fd = os.pidfd_open(int(process.name))
            try:
                # Looked at again: the id may have become another process's meanwhile.
                if wanted in (process / "cmdline").read_bytes().split(b"\0"):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
            finally:
                os.close(fd)


async def find_containers(engine: Engine, tokens: Sequence[str]) -> list[tuple[str, str, str]]:
    """List containers that carry one of the tokens: token, id, name."""
    found = await engine.call(
        "GET", "containers/json", doing="looking for containers",
        params={"all": "1", "filters": orjson.dumps({"label": [TOKEN_LABEL]}).decode()},
    )  # fmt: skip
    wanted = set(tokens)
    return [
        (token, str(one["Id"]), str((one.get("Names") or ["?"])[0]).lstrip("/"))
        for one in found or ()
        if (token := str((one.get("Labels") or {}).get(TOKEN_LABEL))) in wanted
    ]


async def find_leftovers(engine: Engine, provider: str, tokens: Sequence[str]) -> list[Leftover]:
    """List what sessions with these tokens left."""
    return [
        Leftover(provider, token, f"container {name} with its processes and files")
        for token, _, name in await find_containers(engine, tokens)
    ]


async def end_leftovers(engine: Engine, tokens: Sequence[str]) -> None:
    """Remove the containers of these tokens.

    Raises:
        EnvironmentFault: one cannot be removed.
    """
    for _, container, _ in await find_containers(engine, tokens):
        await remove_container(engine, container)


async def end_build(engine: Engine, mark: str) -> None:
    """End what a build's steps still run; podman lets them run on after whoever asked has gone.

    A step that prints without end would stay for ever, its container with it: nobody reads what
    it says.

    Args:
        engine: podman, of this machine.
        mark: a host's name that stands in `/etc/hosts` of this build's steps alone.

    Raises:
        EnvironmentFault: the engine does not answer.
    """
    layers: set[str] = set()
    for _ in range(_BUILD_ROUNDS):
        if not await in_thread(_end_marked, mark.encode(), layers):
            break
        await asyncio.sleep(_BUILD_PAUSE_S)
    folder = (await engine.facts()).storage_folder
    if layers and folder is not None:
        for container in await in_thread(_containers_on, Path(folder), layers):
            with suppress(EngineRefusal):  # podman has removed it itself
                await engine.call(
                    "DELETE", f"containers/{container}", doing="removing a build's container",
                    params={"force": "1"},
                )  # fmt: skip


def _containers_on(storage: Path, layers: set[str]) -> list[str]:
    """Name a storage's containers whose files lie in these layers; a build's have no other mark."""
    with suppress(OSError, ValueError):
        listed = orjson.loads((storage / "overlay-containers/containers.json").read_bytes())
        return [str(one["id"]) for one in listed if one.get("layer") in layers]
    return []


def _end_marked(mark: bytes, layers: set[str]) -> int:
    marked = [pid for pid in _pids() if _is_marked(pid, mark)]
    for pid in marked:
        with suppress(OSError):
            layers.update(_LAYER.findall(Path(f"/proc/{pid}/mountinfo").read_text()))
    # Whoever passes on what a step prints waits for a reader that has gone.
    runtimes = {parent for pid in marked if (parent := _parent_of(pid)) not in marked}
    for pid in marked:
        _end(pid, lambda pid: _is_marked(pid, mark))
    for pid in runtimes:
        _end(pid, _is_build_runtime)
    return len(marked)


def _pids() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]


def _end(pid: int, is_meant: Callable[[int], bool]) -> None:
    with suppress(OSError):
        fd = os.pidfd_open(pid)
        try:
            # Looked at once the descriptor is open: so it is of this process and no later one.
            if is_meant(pid):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        finally:
            os.close(fd)


def _parent_of(pid: int) -> int:
    with suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _is_build_runtime(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"buildah-oci-runtime\0")


def _is_marked(pid: int, mark: bytes) -> bool:
    """True where a process sees the host's name; bounded, for the file is a hostile build's."""
    with suppress(OSError):
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(Path("/proc", str(pid), "root", "etc", "hosts"), flags)
        try:
            return mark in os.read(fd, _HOSTS_BYTES)
        finally:
            os.close(fd)
    return False
