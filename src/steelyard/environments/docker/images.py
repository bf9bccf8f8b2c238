"""Images: found by name or digest, pulled where that may be, built once, imported from a tar."""

from __future__ import annotations

import asyncio
import logging
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.environment import EnvironmentFault, ImageBuild
from steelyard.environments.docker.engine import Engine, EngineRefusal
from steelyard.environments.docker.params import PullPolicy

log = logging.getLogger(__name__)

LABEL: Final = "steelyard.made"
"""On every image that we build or import."""


class ImageFault(EnvironmentFault):
    """An image that cannot be had."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image of an engine."""

    name: str
    id: str
    """`sha256:…` of its configuration."""
    digest: str
    """What the registry knows it by where it is known there, else its id."""
    workdir: str | None
    user: str | None
    variables: Mapping[str, str] = field(default_factory=dict)


async def inspect(engine: Engine, name: str) -> Image | None:
    """Look at an image; None where the engine has none of that name."""
    try:
        said = await engine.call(
            "GET", f"images/{urllib.parse.quote(name, safe='/:@')}/json",
            doing=f"looking for the image {name}",
        )  # fmt: skip
    except EngineRefusal as error:
        if error.status == 404:
            return None
        raise ImageFault(f"the image {name!r} cannot be used: {error.message}") from error
    config = said.get("Config") or {}
    image_id = str(said["Id"])
    image_id = image_id if ":" in image_id else f"sha256:{image_id}"
    digests = [str(one) for one in said.get("RepoDigests") or ()]
    # Podman makes one up for what never came from a registry.
    known = [one.rpartition("@")[2] for one in digests if not one.startswith("localhost/")]
    pairs = (str(one).partition("=") for one in config.get("Env") or ())
    return Image(
        name,
        image_id,
        known[0] if known else image_id,
        str(config.get("WorkingDir") or "") or None,
        str(config.get("User") or "") or None,
        {variable: value for variable, _, value in pairs},
    )


class Images:
    """The images of one provider: each is looked for, pulled or built once."""

    def __init__(self, engine: Engine, pull: PullPolicy) -> None:
        self._engine = engine
        self._pull = pull
        self._locks: dict[str, asyncio.Lock] = {}
        self._found: dict[str, Image] = {}

    async def named(self, name: str) -> Image:
        """Give an image by name, pulled where that is allowed and it is not there.

        Raises:
            ImageFault: there is none, and it cannot or may not be pulled.
        """
        if found := self._found.get(name):
            return found
        async with self._locks.setdefault(name, asyncio.Lock()):
            if name not in self._found:
                self._found[name] = await self._named(name)
        return self._found[name]

    async def built(self, build: ImageBuild) -> Image:
        """Give the image of a Dockerfile, built once.

        Raises:
            ImageFault: it cannot be built.
        """
        from steelyard.environments.docker import builds

        async with self._locks.setdefault(build.digest, asyncio.Lock()):
            if build.digest not in self._found:
                self._found[build.digest] = await builds.built(self._engine, build, self._pull)
        return self._found[build.digest]

    async def imported(self, tar: Path) -> Image:
        """Give the image of a tar file, imported once.

        Raises:
            ImageFault: it cannot be imported.
        """
        from steelyard.environments.docker import builds

        async with self._locks.setdefault(str(tar), asyncio.Lock()):
            if str(tar) not in self._found:
                self._found[str(tar)] = await builds.imported(self._engine, tar)
        return self._found[str(tar)]

    async def _named(self, name: str) -> Image:
        found = None if self._pull == "always" else await inspect(self._engine, name)
        if found is None and self._pull == "never":
            raise ImageFault(
                f"the engine has no image {name!r}, and `environment.pull` is `never`; pull or "
                "build it, or set `environment.pull: missing`"
            )
        if found is None:
            await self._pulled(name)
            found = await inspect(self._engine, name)
        if found is None:
            raise ImageFault(f"the image {name!r} was pulled, and the engine does not know it")
        return found

    async def _pulled(self, name: str) -> None:
        log.warning("pulling the image %s, which this engine does not have yet", name)
        tag = {} if "@" in name or ":" in name.rpartition("/")[2] else {"tag": "latest"}
        doing = f"pulling the image {name!r}"
        try:
            async with self._engine.answer(
                "POST", "images/create", doing=doing, params={"fromImage": name, **tag}
            ) as response:
                async for line in response.content:
                    said = progress(line)
                    if error := said.get("error"):
                        raise ImageFault(_refused(name, str(error)))
        except EngineRefusal as error:
            raise ImageFault(_refused(name, error.message)) from error


def _refused(name: str, said: str) -> str:
    return (
        f"the image {name!r} cannot be pulled: {said.strip()}; check the name, log in to its "
        f"registry, or load it yourself (`docker load`, `podman load`)"
    )


def progress(line: bytes) -> Mapping[str, Any]:
    """Read one line of what an engine says while it works; empty where it is none."""
    try:
        said = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}
