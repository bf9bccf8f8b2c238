"""Open sessions of `docker`: an image, a container, what reaches into it."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Mapping
from typing import Any, Final

from steelyard.components.environment import (
    TOKEN_VARIABLE,
    EnvironmentDescription,
    EnvironmentFault,
    OpenRequest,
    Session,
)
from steelyard.components.values import Trust
from steelyard.environments.docker.engine import Engine, EngineRefusal, finished
from steelyard.environments.docker.finding import find_engine
from steelyard.environments.docker.images import Image, ImageFault, Images
from steelyard.environments.docker.limits import Limits, host_config, limits_of
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.places import Places
from steelyard.environments.docker.reap import TOKEN_LABEL, remove_container
from steelyard.environments.docker.session import Container, DockerSession
from steelyard.environments.files import Owner

DEFAULT_WORKDIR: Final = "/workspace"
SLEEP: Final = "trap 'exit 0' TERM; while :; do sleep 2147483647 & wait $!; done"
"""The first process: it reaps what loses its parent, and ends when told."""
_AT_ONCE: Final = 8
"""Containers that are being started: an engine takes no longer for eight in turns than at once."""


class Opener:
    """Opens the sessions of one provider, in one event loop."""

    def __init__(self, engine: Engine, params: DockerParams) -> None:
        self.engine = engine
        self.images = Images(engine, params.pull)
        self._params = params
        self._starting = asyncio.Semaphore(_AT_ONCE)
        self._has_init = True

    async def open(self, request: OpenRequest) -> Session:
        """Open a session.

        Raises:
            EnvironmentFault: there is no such image, or the engine cannot run it.
        """
        image = await self._image(request)
        limits = limits_of(self._params, request)
        container = await self._started(request, image, limits)
        try:
            return await self._session(request, image, limits, container)
        except BaseException:
            await finished(remove_container(self.engine, container.id))
            raise

    async def _image(self, request: OpenRequest) -> Image:
        name = request.image or self._params.image
        if name is None:
            raise ImageFault(
                "no image is named: neither the task nor `environment.image` names one"
            )
        return await self.images.named(name)

    async def _started(self, request: OpenRequest, image: Image, limits: Limits) -> Container:
        """Create and start a container; where that is cancelled or fails, nothing is left."""
        name = (
            f"steelyard-{re.sub('[^A-Za-z0-9_.-]', '-', request.token)[:60]}-{secrets.token_hex(4)}"
        )
        workdir = request.workdir or image.workdir
        if workdir is None or workdir == "/":
            workdir = DEFAULT_WORKDIR
        body = self._config(request, image, limits, workdir)
        async with self._starting:
            try:
                made = await finished(self._created(name, body))
                await finished(
                    self.engine.call(
                        "POST", f"containers/{made}/start", doing="starting a container"
                    )
                )
            except BaseException:
                await finished(remove_container(self.engine, name))
                raise
        return Container(made, name, workdir, None)

    async def _created(self, name: str, body: dict[str, Any]) -> str:
        body["HostConfig"]["Init"] = self._has_init
        try:
            made = await self.engine.call(
                "POST", "containers/create", doing="creating a container",
                params={"name": name}, body=body,
            )  # fmt: skip
        except EngineRefusal as error:
            if not self._has_init or "init" not in error.message:
                raise
            self._has_init = False  # an engine without its small init program; the shell reaps
            return await self._created(name, body)
        return str(made["Id"])

    def _config(
        self, request: OpenRequest, image: Image, limits: Limits, workdir: str
    ) -> dict[str, Any]:
        mounts = [
            {"Type": "bind", "Source": str(one.source), "Target": one.target, "ReadOnly": True}
            for one in request.mounts
        ]
        return {
            "Image": image.id,
            "Entrypoint": ["/bin/sh"],
            "Cmd": ["-c", SLEEP],
            "WorkingDir": workdir,
            "User": self._params.user or image.user or "",
            "Env": [f"{TOKEN_VARIABLE}={request.token}"],
            "Labels": {TOKEN_LABEL: request.token, "steelyard.owner": str(os.getpid())},
            "Hostname": "steelyard",
            "OpenStdin": False,
            "Tty": False,
            "HostConfig": dict(
                host_config(
                    limits, mounts=mounts, security=["no-new-privileges"],
                    extra_capabilities=self._params.extra_capabilities,
                    open_network=self._params.open_network, uses_init=self._has_init,
                    holds_storage=False,
                )
            ),
        }  # fmt: skip

    async def _session(
        self, request: OpenRequest, image: Image, limits: Limits, container: Container
    ) -> Session:
        facts = await self.engine.facts()
        places = Places(self.engine, container.id, container.workdir, Owner(0, 0))
        details: Mapping[str, str] = {
            "engine": f"{facts.name} {facts.version}",
            "network": limits.network,
        }
        return DockerSession(
            self.engine, request, container, limits, places, trust=Trust.CONTAINED,
            description=EnvironmentDescription("docker", image.name, image.digest, details),
            engine_name=facts.name, enter=(facts.name, "exec", "-it", container.name, "/bin/sh"),
        )  # fmt: skip


def connected(params: DockerParams) -> Engine:
    """Give a client of the engine that is to be used. Blocking, a moment.

    Raises:
        EnvironmentFault: there is none.
    """
    found = find_engine(params.host)
    if found.host is None:
        raise EnvironmentFault(found.said() or "no container engine")
    return Engine(found.host)
