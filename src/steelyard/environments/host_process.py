"""`host_process`: programs on this machine, as this user, held by nothing.

For what nobody hostile wrote. What runs programs is imported when a session opens.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from steelyard.components.environment import Environment, Leftover, OpenRequest, Session


class HostProcess(Environment):
    """Programs on this machine, trust `host`."""

    id: ClassVar[str] = "host_process"
    keeps_sessions: ClassVar[bool] = True

    @classmethod
    def unavailable(cls) -> str | None:
        """Say why it cannot work on this machine; None where it can."""
        if not hasattr(os, "pidfd_open") or not Path("/proc/self/environ").exists():
            return "host_process needs Linux 5.3 or newer; use a container engine elsewhere"
        return None

    @classmethod
    def preload(cls) -> None:
        """Import what runs programs and what cleans up behind them."""
        from steelyard.environments import host_session, leftovers  # noqa: F401

    async def open(self, request: OpenRequest) -> Session:
        """Open a session; nothing is made before it is used.

        Raises:
            EnvironmentFault: the model gateway has no address on this host.
        """
        from steelyard.environments.host_session import HostSession
        from steelyard.environments.local_session import host_url

        session = HostSession(request)
        session.model_url = await host_url(request)
        return session

    async def enter(self, token: str, state: Mapping[str, Any], argv: Sequence[str]) -> int:
        """Run a program in a kept session's folder, with the variables that it had.

        Raises:
            EnvironmentFault: the folder is gone, or the program could not be started.
        """
        from steelyard.environments.host_session import HostSession
        from steelyard.environments.leftovers import folder_to_enter
        from steelyard.environments.local_session import in_thread

        folder = await in_thread(folder_to_enter, token, state)
        return await HostSession(OpenRequest(token), folder).attach(argv)

    async def find_leftovers(self, tokens: Sequence[str]) -> Sequence[Leftover]:
        """Find processes and folders of sessions with these tokens."""
        from steelyard.environments import leftovers
        from steelyard.environments.local_session import in_thread

        return await in_thread(leftovers.find, self.id, tokens)

    async def end_leftovers(self, leftovers_: Sequence[Leftover]) -> None:
        """End the processes, then remove the folders."""
        from steelyard.environments import leftovers
        from steelyard.environments.local_session import in_thread

        await in_thread(leftovers.end, [left.token for left in leftovers_])
