"""Fixtures for whatever needs containers: one podman service a test run, shared by all workers.

Loaded by `tests/conftest.py`, so that every test may name `container_engine`, `docker_host`,
`busybox_image` or `debian_image`. Nothing is started before the first test that asks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar

import pytest

from tests.containers import engines, images, keeper


@dataclass(frozen=True)
class Engine(engines.ServedEngine):
    """A podman service of this test run."""

    NAME: ClassVar[str] = "engine"
    KEEPER: ClassVar[tuple[str, ...]] = (sys.executable, "-m", "tests.containers.keeper")

    def podman(self, *words: str, check: bool = True) -> str:
        """Run a podman command on this engine's storage; its output."""
        done = subprocess.run(
            [*keeper.podman(self.folder), *words], env=keeper.variables(self.folder),
            capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"podman {words}: {done.stderr}"
        return done.stdout

    def helper_pids(self) -> list[int]:
        return keeper.of_folder(self.folder)

    def building(self) -> list[str]:
        listed = self.podman("ps", "-a", "--external", "--format", "{{.Command}}").splitlines()
        return [line for line in listed if "buildah" in line]


def run_id() -> str:
    """Name this test run, the same for all its workers."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))


def running_engine(run_id: str) -> AbstractContextManager[Engine]:
    """Hold the engine of a run, started where it is not there yet."""
    return engines.running(Engine, run_id)


@pytest.fixture(scope="session")
def container_engine() -> Iterator[Engine]:
    """A podman service whose socket speaks Docker's API, with a storage of its own."""
    with running_engine(run_id()) as engine:
        yield engine


@pytest.fixture
def docker_host(container_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine, named by `DOCKER_HOST` for this test and the programs it starts."""
    monkeypatch.setenv("DOCKER_HOST", container_engine.host)
    return container_engine.host


@pytest.fixture(scope="session")
def busybox_image(container_engine: Engine) -> str:
    """An image with a shell and small tools, no Python; its name."""
    return container_engine.import_image(images.BUSYBOX, images.busybox_tar())


@pytest.fixture(scope="session")
def debian_image(container_engine: Engine) -> str:
    """A Debian image with bash, Python 3, git, tmux and a user `agent`; its name."""
    return container_engine.import_image(images.DEBIAN, images.debian_tar())
