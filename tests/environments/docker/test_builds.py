"""Images: built once however many ask, the reason where that fails, nothing left of a try."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.components.environment import ImageBuild, OpenRequest
from steelyard.environments.docker import builds, reap
from steelyard.environments.docker.builds import BUILT
from steelyard.environments.docker.images import ImageFault
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker
from tests.containers import images
from tests.containers.engines import ServedEngine
from tests.containers.fixtures import Engine

pytestmark = pytest.mark.integration


def _build(folder: Path, text: str, **fields: object) -> ImageBuild:
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(text)
    digest = hashlib.sha256(f"{folder}{text}".encode()).hexdigest()
    return ImageBuild(folder, digest, **fields)  # type: ignore[arg-type]


async def _opened(environment: Docker, request: OpenRequest, *argv: str) -> str:
    try:
        session = await environment.open(request)
        try:
            return (await session.exec(argv, timeout_s=60)).stdout_text if argv else ""
        finally:
            await session.close()
    finally:
        await environment.close()


def _open(request: OpenRequest, *argv: str, **params: object) -> str:
    made = DockerParams.model_validate(params)
    return asyncio.run(_opened(Docker(made), request, *argv))


def test_an_image_is_built_once_for_all_who_ask(
    docker_host: str, container_engine: ServedEngine, busybox_image: str, tmp_path: Path
) -> None:
    steps = f"FROM {busybox_image}\nRUN cat /proc/sys/kernel/random/uuid > /built\nCOPY in /in\n"
    (tmp_path / "context").mkdir()
    (tmp_path / "context" / "in").write_text("copied")
    build = _build(tmp_path / "context", steps)

    async def asked() -> set[str]:
        # Two providers stand for two processes: only the lock on a file is between them.
        environments = [Docker(DockerParams()) for _ in range(2)]
        request = OpenRequest("builds", build=build)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_opened(one, request, "cat", "/built", "/in"))
                for one in environments
            ]
        return {task.result() for task in tasks}

    said = asyncio.run(asked())
    assert len(said) == 1, said
    assert said.pop().endswith("copied")
    name = f"{BUILT}:{build.digest[:40]}"
    named = [one for one in container_engine.told("/images/json") if name in one["RepoTags"]]
    assert len(named) == 1
    assert named[0]["Id"] in container_engine.images_with("random/uuid > /built")
    status, said = container_engine.call("DELETE", f"/images/{name}")
    assert status == 200, said


def test_a_failed_build_shows_its_last_lines_and_leaves_no_image(
    docker_host: str, container_engine: ServedEngine, busybox_image: str, tmp_path: Path
) -> None:
    steps = f"FROM {busybox_image}\nRUN echo failing > /a\nRUN echo the reason is this; exit 3\n"
    with pytest.raises(ImageFault, match="the reason is this") as caught:
        _open(OpenRequest("fails", build=_build(tmp_path / "c", steps)))
    assert "Dockerfile failed" in str(caught.value)
    assert container_engine.images_with("echo failing") == []


def test_a_cancelled_build_leaves_nothing(
    docker_host: str, container_engine: ServedEngine, busybox_image: str, tmp_path: Path
) -> None:
    steps = f"FROM {busybox_image}\nRUN echo cancelled > /a\nRUN sleep 8\n"
    request = OpenRequest("cancelled", build=_build(tmp_path / "c", steps))

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(4):
                await _opened(Docker(DockerParams()), request)

    asyncio.run(cancelled())
    assert container_engine.images_with("echo cancelled") == []
    deadline = time.monotonic() + 20
    while left := container_engine.building():  # others' builds end, too
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def test_a_build_cannot_take_all_of_the_machines_memory(
    docker_host: str, debian_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "_memory_bound", lambda: 64 * 1024 * 1024)
    steps = f'FROM {debian_image}\nRUN python3 -c "print(len(bytearray(200 << 20)))"\n'
    with pytest.raises(ImageFault, match=r"137.* \(a build may use 64 MiB of memory\)"):
        _open(OpenRequest("hungry", build=_build(tmp_path / "c", steps)))


def test_an_image_whose_loader_complains_at_every_start_is_used_all_the_same(
    docker_host: str, debian_image: str, tmp_path: Path
) -> None:
    steps = f"FROM {debian_image}\nENV LD_PRELOAD=/none.so\n"
    build = _build(tmp_path / "c", steps)
    assert _open(OpenRequest("complains", build=build), "echo", "hello") == "hello\n"


@pytest.mark.parametrize("step", ["sleep 4711", "yes"], ids=["hangs", "floods"])
def test_a_step_that_never_ends_is_ended_with_its_build(
    step: str, docker_host: str, container_engine: ServedEngine, busybox_image: str, tmp_path: Path
) -> None:
    """podman lets it run on, and one that prints waits for ever for a reader that has gone."""
    steps = f"FROM {busybox_image}\nRUN echo endless-{step}; {step}\n"
    build = _build(tmp_path / "c", steps, timeout_s=4)
    with pytest.raises(ImageFault, match="more than 4 s"):
        _open(OpenRequest("endless", build=build))
    mark = f"steelyard-build-{build.digest[:24]}".encode()
    assert [pid for pid in reap._pids() if reap._is_marked(pid, mark)] == []
    deadline = time.monotonic() + 90
    while left := container_engine.building():  # others' builds end, too
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
    assert container_engine.images_with(f"endless-{step}") == []


def test_what_a_killed_process_was_building_is_ended_by_who_builds_it_next(
    docker_host: str, busybox_image: str, tmp_path: Path
) -> None:
    steps = f"FROM {busybox_image}\nRUN sleep 4712\n"
    build = _build(tmp_path / "c", steps, timeout_s=3)
    words = [str(build.context), build.digest]
    with subprocess.Popen([sys.executable, "-c", BUILDER, *words]) as first:
        mark = f"steelyard-build-{build.digest[:24]}".encode()
        deadline = time.monotonic() + 30
        while not (marked := [pid for pid in reap._pids() if reap._is_marked(pid, mark)]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        first.kill()
    assert any(reap._is_marked(pid, mark) for pid in marked), "podman lets it run on"
    with pytest.raises(ImageFault, match="more than 3 s"):
        _open(OpenRequest("next", build=build))
    assert not any(reap._is_marked(pid, mark) for pid in marked)


BUILDER = """
import asyncio, sys
from pathlib import Path
from steelyard.components.environment import ImageBuild, OpenRequest
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.provider import Docker

build = ImageBuild(Path(sys.argv[1]), sys.argv[2])
asyncio.run(Docker(DockerParams()).open(OpenRequest("killed-build", build=build)))
"""


def test_a_build_that_takes_too_long_says_so(
    docker_host: str, busybox_image: str, tmp_path: Path
) -> None:
    build = _build(tmp_path / "c", f"FROM {busybox_image}\nRUN sleep 20\n", timeout_s=2)
    with pytest.raises(ImageFault, match="took more than 2 s"):
        _open(OpenRequest("slow", build=build))


def test_a_base_that_would_be_pulled_is_refused_before_the_build(
    docker_host: str, tmp_path: Path
) -> None:
    build = _build(tmp_path / "c", "FROM --platform=linux/amd64 no.such/base:1 AS a\nFROM a\n")
    with pytest.raises(ImageFault, match=r"stands on 'no\.such/base:1'.*pull` is `never`"):
        _open(OpenRequest("base", build=build), pull="never")


def test_a_missing_image_names_the_setting_that_would_pull_it(docker_host: str) -> None:
    with pytest.raises(ImageFault, match=r"environment\.pull: missing"):
        _open(OpenRequest("missing", image="localhost/no-such-image:1"), pull="never")


@pytest.mark.parametrize("by_task", [True, False])
def test_an_image_that_no_task_named_is_missing_for_the_whole_request(
    docker_host: str, by_task: bool
) -> None:
    name = "localhost/no-such-image:1"
    asked = name if by_task else None
    params: dict[str, object] = {} if by_task else {"image": name}
    with pytest.raises(ImageFault) as caught:
        _open(OpenRequest("whose", image=asked), **{"pull": "never", **params})
    assert caught.value.is_of_request is not by_task


def test_a_refused_pull_is_said_before_and_after(
    docker_host: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Port 1 of this machine: nobody listens, so no registry is asked.
    with pytest.raises(ImageFault, match="cannot be pulled") as caught:
        _open(OpenRequest("refused", image="127.0.0.1:1/nothing:1"))
    assert "check the name" in str(caught.value)
    assert "pulling the image 127.0.0.1:1/nothing:1" in caplog.text


def test_a_tar_becomes_an_image_once(docker_host: str, container_engine: Engine) -> None:
    tar = images.busybox_tar()
    for _ in range(2):
        assert _open(OpenRequest("tar"), "echo", "ran", image_tar=tar) == "ran\n"
    names = container_engine.podman("images", "--format", "{{.Repository}}")
    assert names.split().count("localhost/steelyard-import") == 1


def test_an_image_is_used_by_its_digest_and_the_record_has_it(
    docker_host: str, container_engine: Engine, busybox_image: str
) -> None:
    image_id = container_engine.podman("images", "-q", "--no-trunc", busybox_image).strip()

    async def described() -> str | None:
        environment = Docker(DockerParams(image=image_id.removeprefix("sha256:")))
        session = await environment.open(OpenRequest("digest"))
        await session.close()
        await environment.close()
        return session.description.digest

    assert asyncio.run(described()) == image_id
