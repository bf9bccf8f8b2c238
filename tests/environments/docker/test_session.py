"""What a container's session does beyond the contract: users, keeping, trust, odd images."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable

import pytest

from steelyard.components.environment import (
    EnvironmentFault,
    Kept,
    NothingStarts,
    OpenRequest,
    Resources,
    Session,
)
from steelyard.components.values import Trust
from steelyard.environments.docker.engine import Connection
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.programs import OutputLost
from steelyard.environments.docker.provider import Docker
from tests.containers.fixtures import Engine

pytestmark = pytest.mark.integration


def _in_session(
    work: Callable[[Session], Awaitable[None]], request: OpenRequest, **params: object
) -> None:
    async def opened() -> None:
        environment = Docker(DockerParams(**params))  # type: ignore[arg-type]
        try:
            session = await environment.open(request)
            try:
                await work(session)
            finally:
                await session.close()
        finally:
            await environment.close()

    asyncio.run(opened())


@pytest.mark.parametrize("user", ["agent", "1000:1000", "1000"])
def test_programs_run_as_the_user_that_is_named_and_own_their_files(
    user: str, docker_host: str, debian_image: str
) -> None:
    async def work(session: Session) -> None:
        await session.write_file("deep/file", b"x")
        done = await session.exec(
            ["sh", "-c", "id -u; touch made; rm -r deep; stat -c %u made; touch /etc/x"]
        )
        assert done.stdout.split() == [b"1000", b"1000"], done
        assert done.exit_code != 0, "an ordinary user wrote to /etc"

    _in_session(work, OpenRequest("users"), image=debian_image, user=user)


def test_a_user_that_the_image_does_not_know_is_a_clear_fault(
    docker_host: str, container_engine: Engine, debian_image: str
) -> None:
    async def work(session: Session) -> None:
        raise AssertionError("opened")

    with pytest.raises(EnvironmentFault, match="nobody-such"):
        _in_session(work, OpenRequest("unknown-user"), image=debian_image, user="nobody-such")


def test_a_kept_container_is_entered_by_the_command_that_is_given(
    docker_host: str, debian_image: str
) -> None:
    kept: list[Kept] = []

    async def work(session: Session) -> None:
        await session.write_file("note", b"kept")
        found = await session.keep()
        assert found is not None
        kept.append(found)
        *command, shell = found.enter
        assert "-it" in command
        command.remove("-it")  # a test has no terminal
        ran = subprocess.run([*command, shell, "-c", "cat note"], capture_output=True, check=True)
        assert ran.stdout == b"kept"

    _in_session(work, OpenRequest("entered"), image=debian_image)
    assert kept[0].description.startswith("container steelyard-entered-")


def test_trust_is_isolated_only_where_the_walls_could_be_tried(
    docker_host: str, debian_image: str, busybox_image: str
) -> None:
    async def tight(session: Session) -> None:
        assert session.trust is Trust.ISOLATED, session.description

    async def untried(session: Session) -> None:
        assert session.trust is Trust.CONTAINED
        assert "no Python" in session.description.details["probe"]

    async def wide(session: Session) -> None:
        assert session.trust is Trust.CONTAINED

    _in_session(tight, OpenRequest("tight"), image=debian_image)
    _in_session(untried, OpenRequest("untried"), image=busybox_image)
    _in_session(
        wide, OpenRequest("wide"), image=debian_image, extra_capabilities=("SYS_PTRACE",)
    )  # fmt: skip


def test_an_image_of_small_tools_keeps_to_the_contract_too(
    docker_host: str, busybox_image: str
) -> None:
    async def work(session: Session) -> None:
        done = await session.exec(["sh", "-c", "echo out; echo err >&2; exit 3"])
        assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
        late = await session.exec(["sh", "-c", "sleep 600 & sleep 600"], timeout_s=0.5)
        assert late.timed_out
        assert b"sleep 600" not in (await session.exec(["ps", "w"])).stdout
        assert (await session.exec(["no-such-program"])).exit_code == 127

    _in_session(work, OpenRequest("small"), image=busybox_image)


def test_programs_that_leave_their_input_unread_lose_nothing_that_they_say(
    docker_host: str, busybox_image: str
) -> None:
    """podman resets a stream whose input is unread at the end: without care, most of these fail."""
    inputs = [b"x", b"a line\n" * 100, b"y" * 100_000]

    async def work(session: Session) -> None:
        async def some(own: bytes) -> None:
            for _ in range(5):
                done = await session.exec(["sh", "-c", "echo out; echo err >&2; exit 3"], stdin=own)
                assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
                done = await session.exec(["head", "-c1"], stdin=own)
                assert (done.exit_code, done.stdout) == (0, own[:1]), done

        async with asyncio.TaskGroup() as group:
            for own in inputs:
                group.create_task(some(own))

    _in_session(work, OpenRequest("unread"), image=busybox_image)


def test_what_left_its_programs_tree_is_known_by_its_mark(
    docker_host: str, busybox_image: str
) -> None:
    async def work(session: Session) -> None:
        # The first `sh` ends, its child becomes the container's first process's.
        leave = "(sh -c 'sleep 700' </dev/null &) ; sleep 600"
        assert (await session.exec(["sh", "-c", leave], timeout_s=1.0)).timed_out
        after = await session.exec(["ps", "w"])
        assert b"sleep 700" not in after.stdout, after.stdout.decode()

    _in_session(work, OpenRequest("marked"), image=busybox_image)


def test_a_program_whose_shell_is_killed_is_told_from_a_stream_that_broke_off(
    docker_host: str, container_engine: Engine, busybox_image: str
) -> None:
    async def work(session: Session) -> None:
        killed = await session.exec(["sh", "-c", "echo said; kill -9 $PPID"])
        assert (killed.exit_code, killed.stdout) == (-9, b"said\n"), killed
        taken = Connection.read

        async def broken_off(connection: Connection) -> tuple[int, bytes] | None:
            if connection in broken:
                return None
            piece = await taken(connection)
            if piece is not None and b"said" in piece[1]:
                broken.append(connection)
            return piece

        broken: list[Connection] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "read", broken_off)
            with pytest.raises(OutputLost, match="lost"):
                await session.exec(["sh", "-c", "echo said; echo more; sleep 600"])
        assert broken, "nothing broke off"
        after = await session.exec(["ps", "w"])
        assert b"sleep 600" not in after.stdout, after.stdout.decode()

    _in_session(work, OpenRequest("broke-off"), image=busybox_image)


def test_a_container_that_somebody_removes_is_a_fault_of_the_session(
    docker_host: str, container_engine: Engine, busybox_image: str
) -> None:
    async def work(session: Session) -> None:
        running = asyncio.ensure_future(session.exec(["sleep", "600"]))
        await asyncio.sleep(0.5)
        container = session._container.id  # type: ignore[attr-defined]
        await asyncio.to_thread(container_engine.podman, "rm", "-f", "-t", "0", container)
        with pytest.raises(EnvironmentFault, match="container"):
            await running
        with pytest.raises(EnvironmentFault):
            await session.exec(["true"])

    _in_session(work, OpenRequest("removed"), image=busybox_image)


def test_a_container_says_whose_it_is(
    docker_host: str, container_engine: Engine, busybox_image: str
) -> None:
    async def work(session: Session) -> None:
        container = session._container.id  # type: ignore[attr-defined]
        form = (
            '{{index .Config.Labels "steelyard.token"}} {{index .Config.Labels "steelyard.owner"}}'
        )
        said = await asyncio.to_thread(
            container_engine.podman, "inspect", "--format", form, container
        )
        assert said.strip() == f"labelled uid {os.getuid()}, pid {os.getpid()}"

    _in_session(work, OpenRequest("labelled"), image=busybox_image)


def test_limits_are_those_of_user_before_task(docker_host: str, busybox_image: str) -> None:
    async def work(session: Session) -> None:
        paths = "/sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max"
        done = await session.exec(["sh", "-c", f"cat {paths} 2>/dev/null"])
        assert done.stdout.split() == [b"77"], done

    request = OpenRequest("limits", Resources(processes=55))
    _in_session(work, request, image=busybox_image, processes=77)


def test_a_container_whose_disk_is_watched_tells_its_faults_as_they_are(
    docker_host: str, container_engine: Engine, busybox_image: str
) -> None:
    """They came wrapped in a group, which nobody took for a fault of the environment."""

    async def faults() -> list[BaseException]:
        environment = Docker(DockerParams(image=busybox_image, pull="never", disk_mb=64))
        found: list[BaseException] = []
        try:
            session = await environment.open(OpenRequest("watched-faults"))
            try:
                await session.exec(["rm", "-f", "/bin/sh"])
                for _ in range(2):
                    with pytest.raises(EnvironmentFault) as raised:
                        await session.exec(["true"])
                    found.append(raised.value)
                    container_engine.podman("rm", "-f", session._container.id)  # type: ignore[attr-defined]
            finally:
                await session.close()
        finally:
            await environment.close()
        return found

    nothing, gone = asyncio.run(faults())
    assert isinstance(nothing, NothingStarts)
    assert not isinstance(gone, NothingStarts)
    assert "gone" in str(gone)
