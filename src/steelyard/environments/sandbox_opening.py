"""Open sandbox sessions: find what they stand on, try the walls once a process, then open.

Apart from `sandbox.py`, so that planning imports none of what starts programs.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from steelyard.components.environment import EnvironmentFault, Mount, OpenRequest, Session
from steelyard.components.values import Trust
from steelyard.environments import bubblewrap
from steelyard.environments.leftovers import folder_to_enter
from steelyard.environments.local_session import host_url, in_thread
from steelyard.environments.mount_view import MountView, ViewUnavailable, first_closed
from steelyard.environments.sandbox_limits import SandboxLimits, limits_of
from steelyard.environments.sandbox_params import SandboxParams
from steelyard.environments.sandbox_session import Ground, SandboxSession, find_ground

_found_tight: dict[bool, Mapping[str, str]] = {}
"""By whether the network is open: the details of this process's probe, once it passed."""


class SandboxOpener:
    """Opens the sessions of one provider."""

    def __init__(self, params: SandboxParams) -> None:
        self._params = params
        self._ground: Ground | None = None
        self._probing = asyncio.Lock()
        self._mounting: dict[tuple[Mount, ...], Ground] = {}
        """What sessions with these mounts stand on."""

    async def open(self, request: OpenRequest) -> Session:
        """Open a session; the first one of a process tries the walls.

        Raises:
            EnvironmentFault: no sandbox can be started here, or it is not tight.
        """
        limits = limits_of(self._params, request)
        trust = Trust.CONTAINED if limits.network_open else Trust.ISOLATED
        ground = await self._tried(request, network_open=limits.network_open)
        if request.mounts:
            ground = await self._with_mounts(ground, request.mounts)
        details = {
            **_found_tight[limits.network_open],
            "network": "open" if limits.network_open else "none",
        }
        url = await host_url(request) if limits.network_open else None
        return SandboxSession(request, ground, limits, trust=trust, details=details, host_url=url)

    async def enter(self, token: str, state: Mapping[str, Any], argv: Sequence[str]) -> int:
        """Run a program in a kept session, once the walls have been tried.

        Raises:
            EnvironmentFault: it is gone, or no sandbox can be started here.
        """
        try:
            limits = SandboxLimits(**state["limits"])
            mounts = tuple(Mount(Path(source), target) for source, target in state["mounts"])
        except (KeyError, TypeError, ValueError) as error:
            raise EnvironmentFault(f"the journal does not say how {token} was kept") from error
        request = OpenRequest(token, mounts=mounts)
        folder = await in_thread(folder_to_enter, token, state)
        ground = await self._tried(request, network_open=limits.network_open)
        if mounts:
            ground = await self._with_mounts(ground, mounts)
        session = SandboxSession(request, ground, limits, trust=Trust.HOST, details={}, kept=folder)
        try:
            return await session.attach(argv)
        finally:
            await session.keep()

    async def _tried(self, request: OpenRequest, *, network_open: bool) -> Ground:
        """Give the ground, its walls tried once a process.

        Raises:
            EnvironmentFault: no sandbox can be started here, or it is not tight.
        """
        if self._ground is None or network_open not in _found_tight:
            async with self._probing:
                if self._ground is None:
                    await in_thread(self._settle, request.token)
                if network_open not in _found_tight:
                    await self._probe(request, network_open)
        ground = self._ground
        if ground is None:
            raise EnvironmentFault("the provider was closed while a session was opened")
        return ground

    def _settle(self, token: str) -> None:
        """Find the ground, and keep it even where whoever asked was cancelled. Blocking."""
        self._ground = find_ground(token)

    async def _with_mounts(self, ground: Ground, mounts: tuple[Mount, ...]) -> Ground:
        async with self._probing:
            if mounts not in self._mounting:
                self._mounting[mounts] = await in_thread(_ground_of, ground, mounts)
            return self._mounting[mounts]

    async def _probe(self, request: OpenRequest, network_open: bool) -> None:
        ground = self._ground
        if ground is None:  # pragma: no cover - found before
            raise AssertionError("no ground")
        # With the default limits: a session's own may be too tight for the probe's Python.
        limits = limits_of(
            SandboxParams(network="open" if network_open else "none"), OpenRequest(request.token)
        )
        tried = SandboxSession(
            OpenRequest(request.token), ground, limits, trust=Trust.HOST, details={}
        )
        try:
            weak = await tried.probe()
        finally:
            await tried.close()
        if weak:
            raise EnvironmentFault("the sandbox is not tight on this machine: " + "; ".join(weak))
        _found_tight[network_open] = {
            "python": platform.python_version(),
            "python_folder": str(ground.python),
            "outside": "unprivileged user" if ground.owner else "calling user",
            **ground.holders.as_details(),
        }

    def close(self) -> None:
        """Let go of the views of the interpreter's folder and of what is mounted."""
        for ground in (self._ground, *self._mounting.values()):
            if ground is not None and ground.view is not None:
                ground.view.close()
        self._ground = None
        self._mounting.clear()


def _ground_of(ground: Ground, mounts: tuple[Mount, ...]) -> Ground:
    """Let sessions reach what is mounted. Blocking.

    Raises:
        EnvironmentFault: something is not there, or cannot be mounted where it is asked.
    """
    for mount in mounts:
        target = PurePosixPath(mount.target)
        if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
            raise EnvironmentFault(f"nothing can be mounted at {mount.target!r}")
        for own in (bubblewrap.WORKDIR, "/usr", "/proc", "/dev", "/etc"):
            if target.is_relative_to(own):
                raise EnvironmentFault(f"{mount.target} lies below {own}: mount it elsewhere")
        if not mount.source.exists():
            raise EnvironmentFault(f"there is no {mount.source} to mount at {mount.target}")
    if ground.owner is None:
        return ground
    shown = [ground.python.resolve(), *(mount.source.resolve() for mount in mounts)]
    closed = [path for path in shown if first_closed(path)]
    if not closed:
        return ground
    try:
        return replace(ground, view=MountView(closed))
    except ViewUnavailable as error:
        raise EnvironmentFault(f"an unprivileged user cannot reach what is mounted: {error}") from (
            error
        )
