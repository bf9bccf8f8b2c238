"""Build an image from a Dockerfile, or import one from a tar: once, however many ask.

Named by the digest of what it is made of. One builder at a time on this machine, whatever processes
ask: by a lock on a file. What a failed or cancelled build made is removed again.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.environment import ImageBuild
from steelyard.environments.docker import archives
from steelyard.environments.docker.engine import Engine, EngineRefusal, finished
from steelyard.environments.docker.images import (
    LABEL,
    Image,
    ImageFault,
    inspect,
    progress,
)
from steelyard.environments.docker.limits import MIB
from steelyard.environments.docker.params import PullPolicy
from steelyard.environments.docker.places import pieces
from steelyard.environments.docker.reap import end_build
from steelyard.environments.files import Owner
from steelyard.environments.local_session import in_thread

log = logging.getLogger(__name__)

BUILT: Final = "localhost/steelyard-build"
IMPORTED: Final = "localhost/steelyard-import"
_LAST_LINES: Final = 20
_LINE_CHARS: Final = 400
_POLL_S: Final = 0.2
LEAST_MEMORY: Final = 2 * 1024 * MIB
"""A build may use this much, or half of what the machine has."""
_KILLED: Final = re.compile(r"(?:exit status|code:?) 137\b")
_REMOVALS: Final = 80
_REMOVAL_PAUSE_S: Final = 0.3
"""An engine ends the step of a cancelled build that is running before it lets go of its images:
podman runs it to its end. All together less than the grace of a clean-up."""
_STEP_IMAGE: Final = re.compile(r"^\s*--+>\s+([0-9a-f]{10,64})\s*$")
_FROM: Final = re.compile(
    r"^\s*FROM\s+(?:--\S+\s+)*(?P<name>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE
)


async def built(engine: Engine, build: ImageBuild, pull: PullPolicy) -> Image:
    """Give the image of a Dockerfile, built where it is not there yet.

    Raises:
        ImageFault: it cannot be built; the last lines of the build are in it.
    """
    name = f"{BUILT}:{build.digest[:40]}"
    if found := await inspect(engine, name):
        return found
    async with _one_at_a_time(name):
        found = await inspect(engine, name)
        if found is None:
            try:
                async with asyncio.timeout(build.timeout_s):
                    await _build(engine, build, name, pull)
            except TimeoutError as error:
                raise ImageFault(
                    f"building {build.context / build.dockerfile} took more than "
                    f"{build.timeout_s:g} s"
                ) from error
            found = await inspect(engine, name)
    if found is None:
        raise ImageFault(f"{build.context / build.dockerfile} was built, and there is no image")
    return found


async def imported(engine: Engine, tar: Path) -> Image:
    """Give the image of a root file system in a tar file, imported where it is not there yet.

    Raises:
        ImageFault: there is no such file, or the engine does not take it.
    """
    try:
        digest = await in_thread(_digest, tar)
    except OSError as error:
        raise ImageFault(f"environment.image_tar: {tar} cannot be read: {error}") from error
    name = f"{IMPORTED}:{digest[:40]}"
    if found := await inspect(engine, name):
        return found
    async with _one_at_a_time(name):
        found = await inspect(engine, name)
        if found is None:
            # To its end: an import that is cut off may leave an image without a name.
            await finished(_import(engine, tar, name))
            found = await inspect(engine, name)
    if found is None:
        raise ImageFault(f"{tar} was imported, and there is no image")
    return found


async def _build(engine: Engine, build: ImageBuild, name: str, pull: PullPolicy) -> None:
    shown = build.context / build.dockerfile
    await _check_bases(engine, build, pull)
    log.info("building %s", shown)
    before = await _image_ids(engine)
    lines: deque[str] = deque(maxlen=_LAST_LINES)
    made: list[str] = []
    facts = await engine.facts()
    # An engine of Docker's ends a build's steps itself.
    mark = f"steelyard-build-{build.digest[:24]}" if facts.is_podman and facts.is_local else None
    if mark is not None:
        await end_build(engine, mark)  # of one that a killed process had asked for
    try:
        await _followed(engine, build, name, lines, made, mark)
    except BaseException:
        if mark is not None:
            await finished(end_build(engine, mark))
        await finished(_remove_images(engine, [one for one in made if not _is_in(one, before)]))
        raise


async def _followed(
    engine: Engine, build: ImageBuild, name: str, lines: deque[str], made: list[str],
    mark: str | None,
) -> None:  # fmt: skip
    """Build, and keep what it says."""
    shown = build.context / build.dockerfile
    params = {
        "t": name,
        "dockerfile": build.dockerfile,
        "rm": "1",
        "forcerm": "1",
        "labels": orjson.dumps({LABEL: "build"}).decode(),
    }
    if mark is not None:
        params["extrahosts"] = orjson.dumps([f"{mark}:127.0.0.1"]).decode()
    memory = _memory_bound() if (await engine.facts()).is_local else None
    if memory is not None:
        params["memory"] = params["memswap"] = str(memory)
    tar = pieces(archives.packed_tree(build.context, Owner(0, 0)))
    fault: str | None = None
    try:
        async with engine.answer(
            "POST", "build", doing=f"building {shown}", params=params, tar=tar
        ) as response:
            async for line in response.content:
                said = progress(line)
                for text in str(said.get("stream") or "").split("\n"):
                    if text.strip():
                        lines.append(text.rstrip()[:_LINE_CHARS])
                    if step := _STEP_IMAGE.match(text):
                        made.append(step[1])
                fault = fault or said.get("error")
    except EngineRefusal as error:
        fault = error.message
    except OSError as error:
        raise ImageFault(f"{build.context} cannot be read: {error}") from error
    if fault:
        if memory is not None and _KILLED.search(fault):
            fault = f"{fault.strip()} (a build may use {memory // MIB} MiB of memory)"
        last = "".join(f"\n    {line}" for line in lines)
        raise ImageFault(f"building {shown} failed: {fault.strip()[: _LINE_CHARS * 4]}{last}")


def _memory_bound() -> int:
    """Give what a build may use, in bytes: a Dockerfile is a task's, and may ask for everything."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(whole // 2, LEAST_MEMORY)


async def _check_bases(engine: Engine, build: ImageBuild, pull: PullPolicy) -> None:
    """Say which images a build will pull, before it does.

    Raises:
        ImageFault: there is no Dockerfile, or one would be pulled that may not.
    """
    path = build.context / build.dockerfile
    try:
        text = await in_thread(path.read_text, "utf-8", "replace")
    except OSError as error:
        raise ImageFault(f"{path} cannot be read: {error.strerror}") from error
    for name in _bases(text):
        if await inspect(engine, name) is not None:
            continue
        if pull == "never":
            raise ImageFault(
                f"{path} stands on {name!r}, which the engine does not have, and "
                "`environment.pull` is `never`; pull it, or set `environment.pull: missing`"
            )
        log.warning("building %s pulls %s, which this engine does not have yet", path, name)


def _bases(text: str) -> Iterator[str]:
    """Give the images that a Dockerfile stands on, as far as they are written out."""
    stages = {"scratch"}
    for line in text.splitlines():
        if found := _FROM.match(line):
            name = found["name"]
            if "$" not in name and name.lower() not in stages:
                yield name
            if found["stage"]:
                stages.add(found["stage"].lower())


async def _image_ids(engine: Engine) -> set[str]:
    listed = await engine.call(
        "GET", "images/json", doing="listing the images", params={"all": "1"}
    )
    return {str(one["Id"]).removeprefix("sha256:") for one in listed or ()}


def _is_in(short: str, whole: set[str]) -> bool:
    return any(one.startswith(short) for one in whole)


async def _remove_images(engine: Engine, made: list[str]) -> None:
    """Remove what a broken build has made, the last first; what is used elsewhere stays."""
    for image in reversed(made):
        for _ in range(_REMOVALS):
            try:
                await engine.call("DELETE", f"images/{image}", doing="removing a broken build")
            except EngineRefusal as error:
                if error.status != 409:
                    break
                await asyncio.sleep(_REMOVAL_PAUSE_S)
            else:
                break


async def _import(engine: Engine, tar: Path, name: str) -> None:
    # Named afterwards: podman drops the tag of an import, and adds one of its own.
    params = {"fromSrc": "-", "changes": f"LABEL {LABEL}=import"}
    log.info("importing %s", tar)
    image: str | None = None
    try:
        async with engine.answer(
            "POST", "images/create", doing=f"importing {tar}", params=params, tar=_blocks(tar)
        ) as response:
            async for line in response.content:
                said: Mapping[str, Any] = progress(line)
                if said.get("error"):
                    raise ImageFault(f"{tar} cannot be imported: {said['error']}")
                image = str(said.get("id") or said.get("status") or "") or image
        if image is None:
            raise ImageFault(f"{tar} was imported, and the engine does not say as what")
        repository, _, tag = name.rpartition(":")
        await engine.call(
            "POST", f"images/{image.removeprefix('sha256:')}/tag", doing="naming an image",
            params={"repo": repository, "tag": tag},
        )  # fmt: skip
    except EngineRefusal as error:
        raise ImageFault(f"{tar} cannot be imported: {error.message}") from error


async def _blocks(path: Path) -> AsyncIterator[bytes]:
    file = await in_thread(path.open, "rb")
    with file:
        while data := await in_thread(file.read, archives.BLOCK_BYTES):
            yield data


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@asynccontextmanager
async def _one_at_a_time(name: str) -> AsyncIterator[None]:
    """Hold a name's lock among all processes of this user; a killed holder lets go of it."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("steelyard", appauthor=False), "builds")
    await in_thread(folder.mkdir, parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.lock"
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(_POLL_S)
            if not _is_file_of(fd, path):
                continue  # its last holder has removed it: another file is the lock now
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(fd)


def _is_file_of(fd: int, path: Path) -> bool:
    try:
        return path.stat().st_ino == os.fstat(fd).st_ino
    except FileNotFoundError:
        return False
