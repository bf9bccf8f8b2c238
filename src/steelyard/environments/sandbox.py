"""`sandbox`: each program in a bubblewrap of its own, over one folder of the session.

No network by default, a read-only system, no capabilities, no way to make namespaces, limits.
`isolated` is said only after a probe tried the walls on this machine. What opens sessions is
imported when the first one opens: planning needs the parameters alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from steelyard.components.environment import Environment, Leftover, OpenRequest, Session
from steelyard.components.values import Trust
from steelyard.environments.sandbox_params import SandboxParams

if TYPE_CHECKING:
    from steelyard.environments.sandbox_opening import SandboxOpener


class Sandbox(Environment):
    """bubblewrap: no network, read-only system, limits, no daemon."""

    id: ClassVar[str] = "sandbox"
    offers_mounts: ClassVar[bool] = True
    best_trust: ClassVar[Trust] = Trust.ISOLATED
    keeps_sessions: ClassVar[bool] = True
    Params: ClassVar[type[BaseModel]] = SandboxParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        if not isinstance(params, SandboxParams):
            raise TypeError(f"sandbox takes SandboxParams, not {type(params).__name__}")
        self._params = params
        self._opener: SandboxOpener | None = None

    @classmethod
    def unavailable(cls) -> str | None:
        """Say why no sandbox can be started here, and the remedy; None where one can."""
        from steelyard.environments import bubblewrap

        return bubblewrap.unavailable()

    @classmethod
    def preload(cls) -> None:
        """Import what opens sessions and what cleans up behind them."""
        from steelyard.environments import leftovers, sandbox_opening  # noqa: F401

    async def open(self, request: OpenRequest) -> Session:
        """Open a session; the first one of a process tries the walls.

        Raises:
            EnvironmentFault: no sandbox can be started here, or it is not tight.
        """
        return await self._opening().open(request)

    async def enter(self, token: str, state: Mapping[str, Any], argv: Sequence[str]) -> int:
        """Run a program in a kept session: the same walls and limits, tried again here.

        Raises:
            EnvironmentFault: it is gone, or no sandbox can be started here.
        """
        return await self._opening().enter(token, state, argv)

    def _opening(self) -> SandboxOpener:
        if self._opener is None:
            from steelyard.environments.sandbox_opening import SandboxOpener

            self._opener = SandboxOpener(self._params)
        return self._opener

    async def find_leftovers(self, tokens: Sequence[str]) -> Sequence[Leftover]:
        """Find processes, folders and cgroups of sessions with these tokens."""
        from steelyard.environments import leftovers
        from steelyard.environments.local_session import in_thread

        return await in_thread(leftovers.find, self.id, tokens)

    async def end_leftovers(self, leftovers_: Sequence[Leftover]) -> None:
        """End the processes, then remove the folders and cgroups."""
        from steelyard.environments import leftovers
        from steelyard.environments.local_session import in_thread

        await in_thread(leftovers.end, [left.token for left in leftovers_])

    async def close(self) -> None:
        """Let go of the view of the interpreter's folder."""
        if self._opener is not None:
            self._opener.close()
