"""After many attempts, and after a driver's sudden end, nothing of ours is left on the machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from steelyard.components.environment import EnvironmentFault, OpenRequest
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker
from tests.containers.engines import ServedEngine
from tests.containers.fixtures import Engine

pytestmark = pytest.mark.integration

KILLED = """
import asyncio, sys
from steelyard.components.environment import OpenRequest
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker

async def main():
    environment = Docker(DockerParams(image=sys.argv[1]))
    session = await environment.open(OpenRequest("killed-driver"))
    other = await environment.open(OpenRequest("killed-driver-not-this"))
    print("open", flush=True)
    await session.exec(["sleep", "600"])

asyncio.run(main())
"""


def _containers(engine: ServedEngine, token: str) -> list[str]:
    """List the containers whose token begins so."""
    listed = engine.told("/containers/json?all=1")
    return [
        one["Id"] for one in listed if one["Labels"].get("steelyard.token", "").startswith(token)
    ]


def _helpers(engine: ServedEngine, containers: set[str]) -> list[int]:
    """List the engine's own processes for containers: podman's are `conmon`."""
    found = []
    for pid in engine.helper_pids():
        try:
            if containers & set(psutil.Process(pid).cmdline()):
                found.append(pid)
        except psutil.NoSuchProcess:
            continue
    return found


def _assert_no_helpers(engine: ServedEngine, containers: set[str]) -> None:
    """Give each the time to say its last word after its container; podman's would stay minutes."""
    deadline = time.monotonic() + 15
    while left := _helpers(engine, containers):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_two_hundred_attempts_leave_nothing(
    docker_host: str, container_engine: Engine, busybox_image: str
) -> None:
    own = psutil.Process()
    seen: set[str] = set()

    async def attempt(environment: Docker, index: int) -> None:
        session = await environment.open(OpenRequest(f"leak-{index}"))
        try:
            await session.write_file("in", b"x" * 1000)
            done = await session.exec(["sh", "-c", "cat in | wc -c; sleep 600 &"], timeout_s=60)
            assert done.stdout.strip() == b"1000", done
        finally:
            seen.update(_id_of(session))
            await session.close()

    async def attempts() -> tuple[int, int]:
        environment = Docker(DockerParams(image=busybox_image, pull="never"))
        try:
            await attempt(environment, 0)  # what the first one opens for all
            before = own.num_fds()
            indices = iter(range(1, 200))

            async def worker() -> None:
                for index in indices:
                    await attempt(environment, index)

            async with asyncio.TaskGroup() as group:
                for _ in range(8):
                    group.create_task(worker())
            return before, own.num_fds()
        finally:
            await environment.close()

    before, after = asyncio.run(attempts())
    # Connections to the engine stay open for the next call: one for each worker.
    assert after - before <= 12, (before, after)
    assert len(seen) == 200
    assert not _containers(container_engine, "leak-")
    _assert_no_helpers(container_engine, seen)
    assert container_engine.podman("volume", "ls", "-q") == ""


def _id_of(session: object) -> set[str]:
    return {session._container.id}  # type: ignore[attr-defined]


def test_what_a_killed_driver_left_is_found_and_ended_by_its_token_alone(
    docker_host: str, container_engine: ServedEngine, busybox_image: str
) -> None:
    driver = subprocess.Popen([sys.executable, "-c", KILLED, busybox_image], stdout=subprocess.PIPE)
    with driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"open\n"
        time.sleep(0.3)
        os.kill(driver.pid, signal.SIGKILL)
    containers = set(_containers(container_engine, "killed-driver"))
    assert len(containers) == 2
    assert _helpers(container_engine, containers)

    async def ended(token: str) -> list[str]:
        environment = Docker(DockerParams())
        try:
            found = await environment.find_leftovers([token])
            await environment.end_leftovers(found)
            assert not await environment.find_leftovers([token])
            return [one.description for one in found]
        finally:
            await environment.close()

    (said,) = asyncio.run(ended("killed-driver"))
    assert said.startswith("container steelyard-killed-driver-")
    (other,) = _containers(container_engine, "killed-driver")
    assert other in containers, "the other session was not to be touched"
    asyncio.run(ended("killed-driver-not-this"))
    _assert_no_helpers(container_engine, containers)


def test_an_open_that_is_cancelled_at_any_point_leaves_no_container(
    docker_host: str, container_engine: ServedEngine, busybox_image: str
) -> None:
    async def cancelled() -> None:
        environment = Docker(DockerParams(image=busybox_image))
        for step in range(12):
            opening = asyncio.ensure_future(environment.open(OpenRequest(f"half-way-{step}")))
            await asyncio.sleep(0.04 * step)
            opening.cancel()
            (opened,) = await asyncio.gather(opening, return_exceptions=True)
            if not isinstance(opened, BaseException):
                await opened.close()
        await environment.close()

    asyncio.run(cancelled())
    assert not _containers(container_engine, "half-way-")


def test_a_container_says_which_run_and_task_it_is_for(
    docker_host: str, container_engine: Engine, busybox_image: str
) -> None:
    labels = {"run": "20260101_000000", "task": "a\nb\x1b[2J" + "c" * 500, "attempt": "2"}

    async def labelled() -> dict[str, str]:
        environment = Docker(DockerParams(image=busybox_image, pull="never"))
        try:
            session = await environment.open(OpenRequest("labelled", labels=labels))
            try:
                wanted = "label=steelyard.run=20260101_000000"
                (found,) = container_engine.podman("ps", "-q", "--filter", wanted).split()
                form = "{{json .Config.Labels}}"
                said = container_engine.podman("inspect", "--format", form, found)
                return dict(json.loads(said))
            finally:
                await session.close()
        finally:
            await environment.close()

    found = asyncio.run(labelled())
    assert found["steelyard.attempt"] == "2"
    assert found["steelyard.task"].startswith("a\\nb\\x1b[2J" + "c" * 50)
    assert len(found["steelyard.task"]) == 200


def test_an_engine_that_loses_a_program_is_said_in_time_and_the_program_is_ended(
    docker_host: str, container_engine: Engine, debian_image: str
) -> None:
    """podman goes on to call a program running whose `conmon` was killed, for ever."""

    async def lost() -> tuple[str, float, bytes]:
        environment = Docker(DockerParams(image=debian_image, pull="never"))
        try:
            session = await environment.open(OpenRequest("lost-program"))
            try:
                words = ["sh", "-c", "echo begun >begun; sleep 600"]
                running = asyncio.ensure_future(session.exec(words))
                while (await session.exec(["test", "-e", "begun"])).exit_code:
                    await asyncio.sleep(0.05)
                main = container_engine.podman(
                    "inspect", "--format", "{{.State.ConmonPid}}", *_id_of(session)
                )
                for pid in _helpers(container_engine, _id_of(session)):
                    if pid != int(main):
                        os.kill(pid, signal.SIGKILL)
                since = time.monotonic()
                with pytest.raises(EnvironmentFault) as raised:
                    await running
                took_s = time.monotonic() - since
                still = await session.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline"])
                return str(raised.value), took_s, still.stdout
            finally:
                await session.close()
        finally:
            await environment.close()

    said, took_s, still = asyncio.run(lost())
    assert said == "the engine lost a program's streams before its end"
    assert took_s < 30
    assert b"sleep\0600" not in still
