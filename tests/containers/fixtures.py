"""Fixtures for whatever needs containers: one podman service a test run, shared by all workers.

Loaded by `tests/conftest.py`, so that every test may name `container_engine`, `docker_host`,
`busybox_image` or `debian_image`. Nothing is started before the first test that asks.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from socket import AF_UNIX, socket
from typing import TextIO

import pytest

from tests.containers import images, keeper

_WAIT_S = 60.0


@dataclass(frozen=True)
class Engine:
    """A podman service of this test run."""

    folder: Path

    @property
    def socket_path(self) -> Path:
        return self.folder / "engine.sock"

    @property
    def host(self) -> str:
        """What `DOCKER_HOST` takes."""
        return f"unix://{self.socket_path}"

    def podman(self, *words: str, check: bool = True) -> str:
        """Run a podman command on this engine's storage; its output."""
        done = subprocess.run(
            [*keeper.podman(self.folder), *words], env=keeper.variables(self.folder),
            capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"podman {words}: {done.stderr}"
        return done.stdout

    def conmon_pids(self) -> list[int]:
        return keeper.of_folder(self.folder)

    def call(self, method: str, path: str, body: Path | None = None) -> tuple[int, bytes]:
        """Make one call of the Docker API by hand."""
        connection = _Local(self.socket_path)
        try:
            if body is None:
                connection.request(method, path)
            else:
                with body.open("rb") as file:
                    headers = {
                        "Content-Type": "application/x-tar",
                        "Content-Length": str(body.stat().st_size),
                    }
                    connection.request(method, path, file, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def import_image(self, name: str, tar: Path) -> str:
        """Import a tar as an image, once an engine; its name."""
        repository, _, tag = name.rpartition(":")
        with (self.folder / f"import-{hashlib.sha256(name.encode()).hexdigest()[:8]}").open(
            "w"
        ) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            status, _ = self.call("GET", f"/images/{urllib.parse.quote(name, safe='')}/json")
            if status != 200:
                # podman's compatible import drops the tag, so that it is given afterwards.
                query = urllib.parse.urlencode({"fromSrc": "-", "repo": repository, "tag": tag})
                status, said = self.call("POST", f"/images/create?{query}", tar)
                assert status == 200, said
                made = json.loads(said.split(b"\n")[0])
                image = made.get("id") or made["status"]
                query = urllib.parse.urlencode({"repo": repository, "tag": tag})
                status, said = self.call("POST", f"/images/{image.split(':')[-1]}/tag?{query}")
                assert status == 201, said
        return name


class _Local(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("engine", timeout=300)
        self._path = path

    def connect(self) -> None:
        self.sock = socket(AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@pytest.fixture(scope="session")
def container_engine() -> Iterator[Engine]:
    """A podman service whose socket speaks Docker's API, with a storage of its own."""
    with running_engine(os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))) as engine:
        yield engine


@contextmanager
def running_engine(run_id: str) -> Iterator[Engine]:
    """Hold the engine of a run, started where it is not there yet."""
    # Short: the path of a Unix socket may have 107 bytes.
    folder = Path("/tmp", f"sy-engine-{hashlib.sha256(run_id.encode()).hexdigest()[:10]}")
    with _one_at_a_time(folder.with_suffix(".lock")):
        users = _join(folder) or _start(folder)
    with users:
        engine = Engine(folder)
        _wait_for(engine)
        yield engine
        with _one_at_a_time(folder.with_suffix(".lock")) as lock:
            lock.unlink()
    # Its keeper ends it when the last worker is gone.


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


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[Path]:
    while True:
        with path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Whoever held it before may have removed it: then another file is the lock.
            if path.exists() and path.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                yield path
                return


def _join(folder: Path) -> TextIO | None:
    """Hold an engine that runs; None where there is none, or one has just ended."""
    deadline = time.monotonic() + _WAIT_S
    while folder.exists():
        users = (folder / "users").open("w")
        try:
            fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:  # its keeper is removing it
            users.close()
            assert time.monotonic() < deadline, f"{folder} is not removed by its keeper"
            time.sleep(0.1)
        else:
            return users
    return None


def _start(folder: Path) -> TextIO:
    folder.mkdir(mode=0o755)
    users = (folder / "users").open("w")
    fcntl.flock(users, fcntl.LOCK_SH)
    subprocess.Popen(
        [sys.executable, "-m", "tests.containers.keeper", str(folder)],
        cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ).returncode = 0  # fmt: skip  # it outlives us on purpose: no warning of a forgotten child
    return users


def _wait_for(engine: Engine) -> None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            status, _ = engine.call("GET", "/_ping")
        except OSError:
            status = 0
        if status == 200:
            return
        log = engine.folder / "service.log"
        said = log.read_text() if log.exists() else "its keeper did not start it"
        assert time.monotonic() < deadline, f"podman's service does not answer: {said[-2000:]}"
        time.sleep(0.05)
