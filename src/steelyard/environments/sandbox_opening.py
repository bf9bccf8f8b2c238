"""Open sandbox sessions: find what they stand on, try the walls once a process, then open.

Apart from `sandbox.py`, so that planning imports none of what starts programs.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping

from steelyard.components.environment import EnvironmentFault, OpenRequest, Session
from steelyard.components.values import Trust
from steelyard.environments.local_session import host_url, in_thread
from steelyard.environments.sandbox_limits import limits_of
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

    async def open(self, request: OpenRequest) -> Session:
        """Open a session; the first one of a process tries the walls.

        Raises:
            EnvironmentFault: no sandbox can be started here, or it is not tight.
        """
        limits = limits_of(self._params, request)
        trust = Trust.CONTAINED if limits.network_open else Trust.ISOLATED
        if self._ground is None or limits.network_open not in _found_tight:
            async with self._probing:
                if self._ground is None:
                    await in_thread(self._settle, request.token)
                if limits.network_open not in _found_tight:
                    await self._probe(request, limits.network_open)
        details = {
            **_found_tight[limits.network_open],
            "network": "open" if limits.network_open else "none",
        }
        ground = self._ground
        if ground is None:
            raise EnvironmentFault("the provider was closed while a session was opened")
        url = await host_url(request) if limits.network_open else None
        return SandboxSession(request, ground, limits, trust=trust, details=details, host_url=url)

    def _settle(self, token: str) -> None:
        """Find the ground, and keep it even where whoever asked was cancelled. Blocking."""
        self._ground = find_ground(token)

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
        """Let go of the view of the interpreter's folder."""
        if self._ground is not None and self._ground.view is not None:
            self._ground.view.close()
        self._ground = None
