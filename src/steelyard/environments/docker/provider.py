"""`docker`: one container a session, on any engine that speaks the Docker API.

Podman and Docker, rootless and rootful. What opens sessions is imported when the first one opens:
planning needs the parameters alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel

from steelyard.components.environment import Environment, Leftover, OpenRequest, Session
from steelyard.components.values import Trust
from steelyard.environments.docker.params import DockerParams

if TYPE_CHECKING:
    from steelyard.environments.docker.opening import Opener


class Docker(Environment):
    """A container engine: images, limits, closed or named networks."""

    id: ClassVar[str] = "docker"
    offers_images: ClassVar[bool] = True
    offers_mounts: ClassVar[bool] = True
    offers_allowlist: ClassVar[bool] = True
    keeps_services: ClassVar[bool] = True
    keeps_sessions: ClassVar[bool] = True
    best_trust: ClassVar[Trust] = Trust.ISOLATED
    Params: ClassVar[type[BaseModel]] = DockerParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        if not isinstance(params, DockerParams):
            raise TypeError(f"docker takes DockerParams, not {type(params).__name__}")
        self._params = params
        self._opener: Opener | None = None
        if host := params.host:
            from steelyard.environments.docker import finding

            def unavailable() -> str | None:
                """Say why the engine that is named cannot be used."""
                return finding.unavailable(host)

            # Asked of the class it is about the engine that would be found without a name.
            self.unavailable = unavailable  # type: ignore[method-assign]

    @classmethod
    def has_extra(cls) -> bool:
        """True where the package is installed, whether or not there is an engine."""
        from steelyard.environments.docker.finding import has_client

        return has_client()

    @classmethod
    def unavailable(cls) -> str | None:
        """Say why no container can be opened here, and the remedy; None where one can."""
        from steelyard.environments.docker.finding import unavailable

        return unavailable()

    @classmethod
    def preload(cls) -> None:
        """Import what opens sessions, the engine's client among it."""
        import aiodocker  # noqa: F401

        from steelyard.environments.docker import opening  # noqa: F401

    async def open(self, request: OpenRequest) -> Session:
        """Open a session.

        Raises:
            EnvironmentFault: there is no engine or image, or a container cannot be started.
        """
        return await self._opened().open(request)

    async def describe_engine(self) -> str:
        """Say which engine is used, and how it runs.

        Raises:
            EnvironmentFault: there is none, or it does not answer.
        """
        engine = self._opened().engine
        facts = await engine.facts()
        kind = "rootless" if facts.is_rootless else "rootful"
        return f"{facts.name} {facts.version}, {kind}, at {engine.host}"

    async def try_engine(self) -> str:
        """Start one container, run a program in it, remove it; say which trust it may have.

        Raises:
            EnvironmentFault: there is no engine, or it cannot.
        """
        from steelyard.environments.docker.trial import tried

        return await tried(self._opened().engine)

    def _opened(self) -> Opener:
        if self._opener is None:
            from steelyard.environments.docker.opening import Opener, connected

            self._opener = Opener(connected(self._params), self._params)
        return self._opener

    async def find_leftovers(self, tokens: Sequence[str]) -> Sequence[Leftover]:
        """Find containers of sessions with these tokens.

        Raises:
            EnvironmentFault: the engine does not answer.
        """
        from steelyard.environments.docker import reap

        return await reap.find_leftovers(self._opened().engine, self.id, tokens)

    async def end_leftovers(self, leftovers: Sequence[Leftover]) -> None:
        """Remove them.

        Raises:
            EnvironmentFault: one cannot be removed.
        """
        from steelyard.environments.docker import reap

        await reap.end_leftovers(self._opened().engine, [one.token for one in leftovers])

    async def close(self) -> None:
        """Close the connections to the engine."""
        if self._opener is not None:
            await self._opener.engine.close()
            self._opener = None
