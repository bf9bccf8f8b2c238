"""The same fixtures on Docker's own daemon; without it nothing here is collected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers import docker_daemon, engines, fixtures, images

collect_ignore_glob = [] if docker_daemon.is_here() else ["test_*.py"]


@pytest.fixture(scope="session")
def container_engine() -> Iterator[docker_daemon.Daemon]:
    """A Docker daemon with a storage of its own, shared by all workers."""
    with engines.running(docker_daemon.Daemon, fixtures.run_id()) as engine:
        yield engine


@pytest.fixture(scope="session")
def busybox_image(container_engine: docker_daemon.Daemon) -> str:
    """The image of podman's tests, in the daemon."""
    return container_engine.import_image(images.BUSYBOX, images.busybox_tar())


@pytest.fixture(scope="session")
def debian_image(container_engine: docker_daemon.Daemon) -> str:
    """The image of podman's tests, in the daemon."""
    return container_engine.import_image(images.DEBIAN, images.debian_tar())
