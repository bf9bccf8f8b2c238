"""Try an engine for real: one container is started, a program runs in it, both are removed.

No network is needed: the image is the default one where the engine has it, else a tiny one made of
this machine's own shell, which goes with the container.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from steelyard.components.environment import EnvironmentFault, OpenRequest, Resources
from steelyard.environments.docker.engine import Engine, finished
from steelyard.environments.docker.images import inspect
from steelyard.environments.docker.opening import Opener
from steelyard.environments.docker.params import DEFAULT_IMAGE, DockerParams
from steelyard.environments.local_session import in_thread

_NEEDED: Final = ("sh", "sleep")
"""What a session's first process takes."""
_LDD_S: Final = 10.0
_LIBRARY: Final = re.compile(r"(?:^|\s)(/\S+)", re.MULTILINE)
_SMALL: Final = Resources(cpu=1.0, memory_mb=128, processes=64)


async def tried(engine: Engine) -> str:
    """Run a program in a container of its own; say the trust that its walls are worth.

    Raises:
        EnvironmentFault: no container starts, or no program in it.
    """
    async with _image(engine) as params:
        return await _ran(Opener(engine, params))


async def _ran(opener: Opener) -> str:
    session = await opener.open(OpenRequest(f"doctor{os.getpid()}", resources=_SMALL))
    try:
        done = await session.exec(["/bin/sh", "-c", "echo ready"], timeout_s=20)
    finally:
        await session.close()
    if done.stdout.strip() != b"ready":
        said = done.stderr_text.strip()[-200:]
        raise EnvironmentFault(f"a program in a container ended with {done.exit_code}: {said}")
    why = session.description.details.get("probe", "")
    return session.trust.value + (f" ({why[:120]})" if why and why != "tight" else "")


@asynccontextmanager
async def _image(engine: Engine) -> AsyncIterator[DockerParams]:
    """Give settings that name an image which is there; one that is made for this goes again."""
    if await inspect(engine, DEFAULT_IMAGE) is not None:
        yield DockerParams(pull="never")
        return
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        tar = Path(folder, "shell.tar")
        await in_thread(write_shell, tar)
        params = DockerParams(image_tar=tar, pull="never")
        image = await Opener(engine, params).images.imported(tar)
        try:
            yield params
        finally:
            with suppress(EnvironmentFault):  # another look at the same engine may still use it
                await finished(
                    engine.call("DELETE", f"images/{image.name}", doing="removing the image")
                )


def write_shell(tar: Path) -> None:
    """Write this machine's shell, with the libraries that it takes, as a root file system.

    Raises:
        EnvironmentFault: this machine does not say what they are.
    """
    files: dict[str, Path] = {}
    for name in _NEEDED:
        found = shutil.which(name, path="/bin:/usr/bin")
        if found is None:
            raise EnvironmentFault(f"this machine has no {name} to make an image of")
        files[f"bin/{name}"] = Path(found)
        files.update({path.lstrip("/"): Path(path) for path in _libraries(found)})
    with tarfile.open(tar, "w") as archive:
        for inside, path in sorted(files.items()):
            entry = archive.gettarinfo(path.resolve(), inside)
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = "root"
            entry.mode, entry.type, entry.linkname = 0o755, tarfile.REGTYPE, ""
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(entry, content)


def _libraries(program: str) -> list[str]:
    """List what the loader maps beside a program; nothing where it stands alone."""
    try:
        said = subprocess.run(  # noqa: S603 — a program of this machine, by its path
            ["ldd", program],  # noqa: S607
            capture_output=True, text=True, timeout=_LDD_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentFault(f"the libraries of {program} cannot be listed: {error}") from error
    return [path for path in _LIBRARY.findall(said.stdout) if Path(path).is_file()]
