"""Containers beside the engine alone: opening and closing, a gigabyte both ways, what piles up.

Starts a podman service of its own, with a Debian image; needs root, as the tests do.
"""

from __future__ import annotations

import asyncio
import filecmp
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil

from benchmarks.measures import Figure
from benchmarks.processes import CommandFailed
from steelyard.components.environment import OpenRequest, Resources, Session
from steelyard.environments import bubblewrap
from steelyard.environments.docker.engine import Engine
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker
from steelyard.environments.sandbox import Sandbox
from steelyard.environments.sandbox_limits import limits_of
from steelyard.environments.sandbox_params import SandboxParams
from steelyard.environments.sandbox_session import find_ground
from tests.containers import fixtures, images, keeper

MIB = 1024 * 1024
ROUNDS = 12
AT_ONCE = 64


def measure(*, scale: float) -> Iterator[Figure]:
    """Open and close, files, growth, many at once."""
    yield _sandbox_beside_bubblewrap(max(3, int(ROUNDS * scale)))
    with fixtures.running_engine(f"bench{os.getpid()}") as running:
        image = running.import_image(images.DEBIAN, images.debian_tar())
        os.environ["DOCKER_HOST"] = running.host
        try:
            yield asyncio.run(_open_and_close(image, running.host, max(3, int(ROUNDS * scale))))
            yield from asyncio.run(_gigabyte(image, running, int(1024 * scale) or 1))
            with _own_temporary_folder():
                yield from asyncio.run(_attempts(image, running, max(20, int(500 * scale))))
            yield asyncio.run(_many_at_once(image, max(4, int(AT_ONCE * scale))))
        finally:
            del os.environ["DOCKER_HOST"]


async def _timed(work: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def _open_and_close(image: str, host: str, rounds: int) -> Figure:
    """A session that nothing is done in, beside create, start and remove of the same container."""
    environment, engine = Docker(DockerParams(image=image, pull="never")), Engine(host)

    async def ours() -> None:
        session = await environment.open(OpenRequest("bench-open"))
        await session.close()

    async def by_hand() -> None:
        body = {
            "Image": image,
            "Cmd": ["sleep", "1000"],
            "HostConfig": {"NetworkMode": "none", "Memory": 2048 * MIB, "PidsLimit": 512},
        }
        made = await engine.call("POST", "containers/create", doing="bench", body=body)
        await engine.call("POST", f"containers/{made['Id']}/start", doing="bench")
        await engine.call(
            "DELETE", f"containers/{made['Id']}", doing="bench", params={"force": "1", "v": "1"}
        )

    try:
        await ours()  # its walls are tried once an image
        pairs = [(await _timed(ours), await _timed(by_hand)) for _ in range(rounds)]
    finally:
        await environment.close()
        await engine.close()
    floor = median(pair[1] for pair in pairs)
    ratio = median(pair[0] for pair in pairs) / floor
    note = f"the engine alone: {floor * 1000:.0f} ms"
    return Figure(
        "docker: open and close beside the engine's own", ratio, "×", 1.3, floor=1, note=note
    )


def _sandbox_beside_bubblewrap(rounds: int) -> Figure:
    """A session with one program in it, beside bubblewrap with the same walls over a folder."""
    ground = find_ground("bench-sandbox")
    walls = bubblewrap._walls(network_open=False)
    system = bubblewrap._system()
    binds = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--remount-ro", "/"]
    prefix = ground.prefix(limits_of(SandboxParams(), OpenRequest("bench-sandbox")))
    command = [*prefix, *walls, *system, *binds, "--", "/bin/true"]

    async def ours(environment: Sandbox) -> None:
        session = await environment.open(OpenRequest("bench-sandbox"))
        try:
            await session.exec(["/bin/true"])
        finally:
            await session.close()

    async def by_hand() -> None:
        with tempfile.TemporaryDirectory():
            process = await asyncio.create_subprocess_exec(*command, env={}, cwd="/")
            if await process.wait() != 0:
                raise CommandFailed("bubblewrap does not start")

    async def both() -> list[tuple[float, float]]:
        environment = Sandbox(SandboxParams())
        try:
            await ours(environment)
            return [
                (await _timed(lambda: ours(environment)), await _timed(by_hand))
                for _ in range(rounds * 4)
            ]
        finally:
            await environment.close()

    pairs = asyncio.run(both())
    floor = median(pair[1] for pair in pairs)
    ratio = median(pair[0] for pair in pairs) / floor
    note = f"bubblewrap alone: {floor * 1000:.1f} ms"
    return Figure(
        "sandbox: open, one program, close beside bubblewrap", ratio, "×", 2, floor=1, note=note
    )


async def _gigabyte(image: str, running: fixtures.Engine, mib: int) -> Iterator[Figure]:
    """A large file both ways, beside `tar` and `podman cp`; and what memory that takes."""
    environment = Docker(DockerParams(image=image, pull="never"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        block = os.urandom(MIB)
        with (folder / "in" / "file").open("wb") as file:
            for _ in range(mib):
                file.write(block)
        session = await environment.open(OpenRequest("bench-files", Resources(memory_mb=512)))
        try:
            ours, theirs, peak = await _both_ways(session, running, folder)
        finally:
            await session.close()
            await environment.close()
    return iter(
        [
            Figure(
                f"docker: {mib} MiB in, beside tar | cp", theirs[0] / ours[0], "×", 0.7, "at least"
            ),
            Figure(
                f"docker: {mib} MiB out, beside tar | cp", theirs[1] / ours[1], "×", 0.7, "at least"
            ),
            Figure(f"docker: {mib} MiB both ways: growth", peak, "MiB", 64),
        ]
    )


async def _both_ways(
    session: Session, running: fixtures.Engine, folder: Path
) -> tuple[tuple[float, float], tuple[float, float], float]:
    container = running.podman("ps", "-q", "--filter", "label=steelyard.token=bench-files").strip()

    async def cp(script: str) -> None:
        words = " ".join(keeper.podman(running.folder))
        process = await asyncio.create_subprocess_exec(
            "bash", "-euo", "pipefail", "-c", script.format(podman=words, c=container, f=folder),
            env=keeper.variables(running.folder),
        )  # fmt: skip
        if await process.wait() != 0:
            raise CommandFailed(script)

    begin = "rm -rf {f}/theirs && mkdir {f}/theirs && {podman} exec {c} rm -rf /by-hand in"
    begin += " && {podman} exec {c} mkdir /by-hand"
    hand_in = "tar -C {f}/in -c . | {podman} cp - {c}:/by-hand"
    hand_out = "{podman} cp {c}:/by-hand - | tar -C {f}/theirs -x"
    ours_in, ours_out, theirs_in, theirs_out = [], [], [], []
    grown = 0.0
    for _ in range(3):
        await cp(begin)
        theirs_in.append(await _settled(lambda: cp(hand_in)))
        theirs_out.append(await _settled(lambda: cp(hand_out)))
        before = _peak_mib()
        ours_in.append(await _settled(lambda: session.upload(folder / "in", "in")))
        ours_out.append(await _settled(lambda: session.download("in", folder / "out")))
        grown = max(grown, _peak_mib() - before)
        if not await asyncio.to_thread(filecmp.cmp, folder / "in/file", folder / "out/file", False):
            raise CommandFailed("the file came back changed")
        await asyncio.to_thread(shutil.rmtree, folder / "out")
    ours = median(ours_in), median(ours_out)
    return ours, (median(theirs_in), median(theirs_out)), grown


async def _settled(work: Callable[[], Awaitable[None]]) -> float:
    """Time work that writes much, once the disk has done what was written before."""
    await asyncio.to_thread(os.sync)
    return await _timed(work)


def _peak_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise CommandFailed("the kernel does not say how much memory this was")


@contextmanager
def _own_temporary_folder() -> Iterator[None]:
    """Let nothing be counted that others leave in the machine's folder meanwhile."""
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"], tempfile.tempdir = folder, None
        try:
            yield
        finally:
            tempfile.tempdir = None
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before


async def _attempts(image: str, running: fixtures.Engine, count: int) -> Iterator[Figure]:
    """What is there after many attempts that was not there after ten."""
    environment = Docker(DockerParams(image=image, pull="never"))
    me = psutil.Process()

    def there() -> tuple[int, int, int]:
        temporary = sum(1 for _ in Path(tempfile.gettempdir()).iterdir())
        return len(running.helper_pids()), me.num_fds(), temporary

    async def attempt() -> None:
        session = await environment.open(OpenRequest("bench-attempt"))
        try:
            await session.write_file("a", b"x")
            await session.exec(["cat", "a"])
        finally:
            await session.close()

    async def attempts(number: int) -> None:
        left = iter(range(number))

        async def worker() -> None:
            for _ in left:
                await attempt()

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(worker())

    try:
        await attempts(10)
        before = there()
        await attempts(count)
        grown = [after - earlier for after, earlier in zip(there(), before, strict=True)]
    finally:
        await environment.close()
    kinds = ("processes", "descriptors", "temporary files")
    bounds = (0, 2, 0)  # a connection may be open that was not
    return iter(
        Figure(f"docker: {kind} after {count} attempts", more, "more", bound)
        for kind, more, bound in zip(kinds, grown, bounds, strict=True)
    )


async def _many_at_once(image: str, count: int) -> Figure:
    """As many sessions open at once, a program in each."""
    environment = Docker(DockerParams(image=image, pull="never"))

    async def one(index: int, all_open: asyncio.Barrier) -> None:
        session = await environment.open(OpenRequest(f"bench-many-{index}"))
        try:
            await all_open.wait()
            done = await session.exec(["echo", str(index)], timeout_s=120)
            if done.stdout != f"{index}\n".encode():
                raise CommandFailed(f"{done}")
        finally:
            await session.close()

    async def all_of_them() -> None:
        barrier = asyncio.Barrier(count)
        async with asyncio.TaskGroup() as group:
            for index in range(count):
                group.create_task(one(index, barrier))

    try:
        took_s = await _timed(all_of_them)
    finally:
        await environment.close()
    return Figure(f"docker: {count} sessions open at once", took_s / count, "s each", 1.5)
