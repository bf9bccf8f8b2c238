"""What reaches into a container from the host: the model gateway, the proxy of an allowlist.

Both listen on the container's own loopback, by a socket made in its network namespace. Nothing of
ours runs inside.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.components.environment import TOKEN_VARIABLE, EnvironmentFault, OpenRequest
from steelyard.environments.docker import proxy
from steelyard.environments.docker.allowlist import Allowlist
from steelyard.environments.docker.engine import Engine
from steelyard.environments.docker.limits import Limits
from steelyard.environments.local_session import in_thread
from steelyard.environments.namespaces import listen_inside
from steelyard.environments.sandbox_start import GATE_PORT


@dataclass(slots=True)
class Reach:
    """What was opened into one container."""

    model_url: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    endings: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    proxy: proxy.Proxy | None = None
    """The one way out, where there is one."""

    async def end(self) -> None:
        """Close all of it."""
        await self.end_proxy()
        while self.endings:
            await self.endings.pop()()

    async def end_proxy(self) -> None:
        """Close the way out, and every connection through it."""
        served, self.proxy = self.proxy, None
        self.variables = {}
        if served is not None:
            await served.close()


async def reach_in(
    engine: Engine, container: str, request: OpenRequest, limits: Limits, reach: Reach
) -> None:
    """Open what a session's programs are to reach; `reach` holds what is to be ended.

    Raises:
        EnvironmentFault: the container's network cannot be entered from here.
    """
    if request.gate is None and limits.network != "allowlist":
        return
    pid = await _pid_of(engine, container, request.token)
    if limits.network == "allowlist":
        await _open_proxy(pid, proxy.PORT, limits, request.token, reach)
    if request.gate is not None:
        listener = await _listening(pid, GATE_PORT)
        try:
            end = await request.gate.serve(listener)
        except Exception as error:  # a gate is somebody else's code
            listener.close()
            raise EnvironmentFault(f"the model gateway cannot be reached: {error}") from error

        async def end_gate() -> None:
            end()

        reach.endings.append(end_gate)
        reach.model_url = f"http://127.0.0.1:{GATE_PORT}"


async def check_inside(engine: Engine, container: str, token: str) -> None:
    """See whether anything could be opened into a container.

    Raises:
        EnvironmentFault: the engine's processes are not this machine's.
    """
    await _pid_of(engine, container, token)


async def change_network(
    engine: Engine, container: str, token: str, limits: Limits, reach: Reach
) -> None:
    """Close the way out of a container that has no network of its own, or open another.

    `open` is the proxy as well, with every public host: an engine gives no network to a container
    that was made without one.

    Raises:
        EnvironmentFault: the container's network cannot be entered from here.
    """
    await reach.end_proxy()
    if limits.network != "none":
        pid = await _pid_of(engine, container, token)
        await _open_proxy(pid, 0, limits, token, reach)


async def _open_proxy(pid: int, port: int, limits: Limits, token: str, reach: Reach) -> None:
    lists = Allowlist.everything if limits.network == "open" else Allowlist.of
    try:
        allowed = lists(limits.allowed_hosts)
    except ValueError as error:
        raise EnvironmentFault(f"the allowed hosts: {error}") from error
    listener = await _listening(pid, port)
    reach.proxy = proxy.Proxy(allowed, token)
    await reach.proxy.start(listener)
    reach.variables = proxy.variables(listener.getsockname()[1])


async def _listening(pid: int, port: int) -> socket.socket:
    try:
        return await listen_inside(pid, port)
    except OSError as error:
        raise EnvironmentFault(
            f"the container's network cannot be entered from here: {error}; run as the user who "
            "owns the engine, on its machine"
        ) from error


async def _pid_of(engine: Engine, container: str, token: str) -> int:
    """Give the container's first process, as this machine numbers it.

    Raises:
        EnvironmentFault: the engine's processes are not this machine's.
    """
    said = await engine.call(
        "GET", f"containers/{container}/json", doing="looking at the container"
    )
    pid = int((said.get("State") or {}).get("Pid") or 0)
    if not await in_thread(_belongs, pid, container, token):
        raise EnvironmentFault(
            f"the engine at {engine.host} runs its containers elsewhere (another machine, a "
            "virtual one, another process namespace): the model gateway and allowlists need an "
            "engine of this machine"
        )
    return pid


def _belongs(pid: int, container: str, token: str) -> bool:
    """True where a process of this machine is one of the container's.

    By its cgroup, or by its token: a rootless engine may have no cgroup of its own, and another
    user's variables cannot be read.
    """
    if pid <= 0:
        return False
    with suppress(OSError):
        if container in Path(f"/proc/{pid}/cgroup").read_text():
            return True
    with suppress(OSError):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return f"{TOKEN_VARIABLE}={token}".encode() in variables
    return False
