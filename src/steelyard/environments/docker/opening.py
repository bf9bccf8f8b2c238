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
from steelyard.environments.docker import probe, programs
from steelyard.environments.docker.engine import Engine, EngineFacts, EngineRefusal, finished
from steelyard.environments.docker.finding import find_engine
from steelyard.environments.docker.images import Image, ImageFault, Images
from steelyard.environments.docker.limits import Limits, host_config, limits_of, start_remedy
from steelyard.environments.docker.params import DEFAULT_IMAGE, DockerParams
from steelyard.environments.docker.places import Places
from steelyard.environments.docker.programs import Program
from steelyard.environments.docker.reach import Reach, reach_in
from steelyard.environments.docker.reap import (
    OWNER_LABEL,
    TOKEN_LABEL,
    labels_of,
    remove_container,
)
from steelyard.environments.docker.seccomp_profile import profile_file, profile_text
from steelyard.environments.docker.session import Container, DockerSession
from steelyard.environments.files import Owner
from steelyard.environments.local_session import in_thread

DEFAULT_WORKDIR: Final = "/workspace"
SLEEP: Final = "while :; do sleep 2147483647 & wait $!; done"
"""The first process: it reaps what loses its parent.

No signal of an agent ends it (`killall sh`, `kill -9 -1`): the kernel lets none through to a first
process that does not ask for it. So it is none of the engine's own init programs, whose child any
signal ends, and the container with it. The engine ends it by SIGKILL.
"""
_ROOT: Final = frozenset({None, "0", "root", "0:0", "root:root"})
_NO_PROFILE: Final = ["no-new-privileges"]
_AT_ONCE: Final = 8
"""Containers that are being started: an engine takes no longer for eight in turns than at once."""

_tried: dict[tuple[str, str, str], list[str]] = {}
"""By engine, image and network: what the walls of the first such container let through."""


class Opener:
    """Opens the sessions of one provider, in one event loop."""

    def __init__(self, engine: Engine, params: DockerParams) -> None:
        self.engine = engine
        self.images = Images(engine, params.pull)
        self._params = params
        self._starting = asyncio.Semaphore(_AT_ONCE)
        self._holds_storage = True
        self._has_profile = True
        self._owners: dict[tuple[str, str], Owner] = {}
        self._probing = asyncio.Lock()

    async def open(self, request: OpenRequest) -> Session:
        """Open a session.

        Raises:
            EnvironmentFault: there is no such image, or the engine cannot run it.
        """
        image = await self._image(request)
        limits = limits_of(self._params, request)
        container = await self._started(request, image, limits)
        reach = Reach()
        try:
            await reach_in(self.engine, container.id, request, limits, reach)
            return await self._session(request, image, limits, container, reach)
        except BaseException:
            await finished(self._given_up(container, reach))
            raise

    async def _given_up(self, container: Container, reach: Reach) -> None:
        await reach.end()
        await remove_container(self.engine, container.id)

    async def _image(self, request: OpenRequest) -> Image:
        if request.build is not None:
            return await self.images.built(request.build)
        if request.image is not None:
            return await self.images.named(request.image)
        try:
            if self._params.image is None and self._params.image_tar is not None:
                return await self.images.imported(self._params.image_tar)
            return await self.images.named(self._params.image or DEFAULT_IMAGE)
        except ImageFault as fault:
            fault.is_of_request = True  # no task named it: each attempt asks for the same
            raise

    async def _started(self, request: OpenRequest, image: Image, limits: Limits) -> Container:
        """Create and start a container; where that is cancelled or fails, nothing is left."""
        name = (
            f"steelyard-{re.sub('[^A-Za-z0-9_.-]', '-', request.token)[:60]}-{secrets.token_hex(4)}"
        )
        workdir = request.workdir or image.workdir
        if workdir is None or workdir == "/":
            workdir = DEFAULT_WORKDIR
        body = await self._config(request, image, limits, workdir)
        async with self._starting:
            try:
                made = await finished(self._created(name, body))
                await finished(
                    self.engine.call(
                        "POST", f"containers/{made}/start", doing="starting a container"
                    )
                )
            except BaseException as error:
                await finished(remove_container(self.engine, name))
                remedy = start_remedy(error.message) if isinstance(error, EngineRefusal) else None
                if remedy is None:
                    raise
                fault = EnvironmentFault(f"{error}; {remedy}")
                fault.is_of_request = True
                raise fault from error
        user = self._params.user or image.user
        return Container(made, name, workdir, None if user in _ROOT else user)

    async def _created(self, name: str, body: dict[str, Any]) -> str:
        host = body["HostConfig"]
        try:
            made = await self.engine.call(
                "POST", "containers/create", doing="creating a container",
                params={"name": name}, body=body,
            )  # fmt: skip
        except EngineRefusal as error:
            # What this call asked for decides: another may have learnt the same meanwhile.
            if "StorageOpt" in host:
                self._holds_storage = False  # most storage cannot; then the sum is watched
                del host["StorageOpt"]
            elif "seccomp" in error.message and host["SecurityOpt"] != _NO_PROFILE:
                # Somebody else's engine cannot read our file: its own filter stays, the probe says
                # what that is worth.
                self._has_profile = False
                host["SecurityOpt"] = _NO_PROFILE
            else:
                raise
            return await self._created(name, body)
        return str(made["Id"])

    async def _config(
        self, request: OpenRequest, image: Image, limits: Limits, workdir: str
    ) -> dict[str, Any]:
        facts = await self.engine.facts()
        mounts = [
            {"Type": "bind", "Source": str(one.source), "Target": one.target, "ReadOnly": True}
            for one in request.mounts
        ]
        config = host_config(
            limits, mounts=mounts, security=await self._security(facts),
            extra_capabilities=self._params.extra_capabilities,
            open_network=self._params.open_network,
            holds_storage=self._holds_storage,
        )  # fmt: skip
        return {
            "Image": image.id,
            "Entrypoint": ["/bin/sh"],
            "Cmd": ["-c", SLEEP],
            "StopSignal": "SIGKILL",
            "WorkingDir": workdir,
            # Podman gives a container's own user, where that is not root, what `CapAdd` names; a
            # program that is started as that user has nothing.
            "User": "0",
            "Env": [f"{TOKEN_VARIABLE}={request.token}"],
            "Labels": {
                TOKEN_LABEL: request.token,
                OWNER_LABEL: f"uid {os.getuid()}, pid {os.getpid()}",
                **labels_of(request.labels),
            },
            "Hostname": "steelyard",
            "HostConfig": dict(config),
        }

    async def _security(self, facts: EngineFacts) -> list[str]:
        if not self._has_profile:
            return ["no-new-privileges"]
        if not facts.is_podman:
            return ["no-new-privileges", f"seccomp={profile_text()}"]
        if not facts.is_local:  # a path of this machine would mean another file there
            return ["no-new-privileges"]
        return ["no-new-privileges", f"seccomp={await in_thread(profile_file)}"]

    async def _session(
        self, request: OpenRequest, image: Image, limits: Limits, container: Container,
        reach: Reach,
    ) -> Session:  # fmt: skip
        facts = await self.engine.facts()
        owner = await self._owner(image, container)
        trust, tried = await self._trust(image, limits, container)
        details = {
            "engine": f"{facts.name} {facts.version}",
            "rootless": "yes" if facts.is_rootless else "no",
            "network": limits.network,
            "image_id": image.id,
            **tried,
        }
        return DockerSession(
            self.engine, request, container, limits,
            Places(self.engine, container.id, container.workdir, owner), reach,
            trust=trust,
            description=EnvironmentDescription("docker", image.name, image.digest, details),
            enter=_enter(self.engine.host, facts, container),
            watches_disk=limits.disk_mb is not None and not self._holds_storage,
        )  # fmt: skip

    async def _owner(self, image: Image, container: Container) -> Owner:
        """Find whom the programs are, by number; the working folder becomes theirs."""
        user = self._params.user or image.user or "root"
        if user in _ROOT:
            return Owner(0, 0)
        known = self._owners.get((image.id, user))
        script = 'id -u "$1" && id -g "$1"; chown "$2" "$3"'
        words = ["/bin/sh", "-c", script, "sh", user.partition(":")[0], user, container.workdir]
        program = Program(words, {}, "/", user="0")
        said = await programs.run(
            self.engine, container.id, program, programs.Running(4096), timeout_s=30
        )
        if known is not None:
            return known
        numbers = said.stdout.split()
        if user.replace(":", "").isdigit():
            uid, _, gid = user.partition(":")
            numbers = [uid.encode(), (gid or uid).encode()]
        if len(numbers) < 2:
            raise ImageFault(f"the image {image.name!r} has no user {user!r}")
        owner = Owner(int(numbers[0]), int(numbers[1]))
        self._owners[image.id, user] = owner
        return owner

    async def _trust(
        self, image: Image, limits: Limits, container: Container
    ) -> tuple[Trust, Mapping[str, str]]:
        """Try the walls of an image's first container; the others are made the same way."""
        if limits.network == "open" or self._params.extra_capabilities:
            return Trust.CONTAINED, {}
        kind = (self.engine.host, image.id, limits.network)
        if kind not in _tried:
            async with self._probing:
                if kind not in _tried:
                    _tried[kind] = await self._probed(container)
        weak = _tried[kind]
        if not weak:
            return Trust.ISOLATED, {"probe": "tight"}
        return Trust.CONTAINED, {"probe": "; ".join(weak)[:500]}

    async def _probed(self, container: Container) -> list[str]:
        program = Program(["python3", "-I", "-S", "-c", probe.PROGRAM], {}, "/", user="0")
        said = await programs.run(
            self.engine, container.id, program, programs.Running(65536), timeout_s=60
        )
        if said.exit_code == 127:
            return ["the image has no Python to try its walls with"]
        return probe.weaknesses(said.stdout, network_open=False)


def _enter(host: str, facts: EngineFacts, container: Container) -> tuple[str, ...]:
    """Give the command by which a person enters a container."""
    shell = ("exec", "-it", container.name, "/bin/sh")
    if not facts.is_podman:
        return ("docker", "--host", host, *shell)
    # `podman` alone speaks to this user's own storage, which is what its service has.
    return ("podman", "--url", host, *shell)


def connected(params: DockerParams) -> Engine:
    """Give a client of the engine that is to be used. Blocking, a moment.

    Raises:
        EnvironmentFault: there is none.
    """
    found = find_engine(params.host)
    if found.host is None:
        raise EnvironmentFault(found.said() or "no container engine")
    return Engine(found.host)
