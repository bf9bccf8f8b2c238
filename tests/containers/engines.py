"""An engine of a test run: Docker's API on a socket of its own, one for all workers.

Each kind of engine is kept by a program of its own, which starts it, and ends it when the last
worker has gone, however it went.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import time
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any, ClassVar, TextIO, TypeVar

_WAIT_S = 60.0


@dataclass(frozen=True)
class ServedEngine(ABC):
    """An engine that its keeper serves in a folder; all that is asked by the API itself."""

    folder: Path

    NAME: ClassVar[str]
    """For its folder, and for errors."""
    KEEPER: ClassVar[tuple[str, ...]]
    """The program that keeps it; the folder is its last word."""

    @property
    def socket_path(self) -> Path:
        return self.folder / "engine.sock"

    @property
    def host(self) -> str:
        """What `DOCKER_HOST` takes."""
        return f"unix://{self.socket_path}"

    @abstractmethod
    def helper_pids(self) -> list[int]:
        """List the processes that the engine keeps beside its containers."""

    @abstractmethod
    def building(self) -> list[str]:
        """List what builds have under way."""

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

    def told(self, path: str) -> Any:
        """Ask for something that must be there."""
        status, said = self.call("GET", path)
        assert status == 200, (path, said)
        return json.loads(said)

    def images_with(self, step: str) -> list[str]:
        """Give the images in whose history a step stands: others make theirs at the same time."""
        found = []
        for one in {image["Id"] for image in self.told("/images/json?all=1")}:
            status, said = self.call("GET", f"/images/{one.removeprefix('sha256:')}/history")
            if status == 200 and any(step in line["CreatedBy"] for line in json.loads(said)):
                found.append(one)
        return found

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


_Kind = TypeVar("_Kind", bound=ServedEngine)


class _Local(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("engine", timeout=300)
        self._path = path

    def connect(self) -> None:
        self.sock = socket(AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@contextmanager
def running(kind: type[_Kind], run_id: str) -> Iterator[_Kind]:
    """Hold the engine of a run, started where it is not there yet."""
    # Short: the path of a Unix socket may have 107 bytes.
    digest = hashlib.sha256(run_id.encode()).hexdigest()[:10]
    engine = kind(Path("/tmp", f"sy-{kind.NAME}-{digest}"))
    lock_path = engine.folder.with_suffix(".lock")
    with one_at_a_time(lock_path):
        users = _join(engine.folder) or _start(engine)
    with users:
        try:
            _wait_for(engine)
            yield engine
        finally:
            with one_at_a_time(lock_path) as lock:
                lock.unlink()
    # Its keeper ends it when the last worker is gone.


@contextmanager
def one_at_a_time(path: Path) -> Iterator[Path]:
    """Hold a lock on a file, which whoever holds it may remove."""
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
    path = folder / "users"
    while folder.exists():
        try:
            users = path.open("r+")
            fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:  # it has just gone, and its folder goes next
            pass
        except BlockingIOError:  # its keeper is removing it
            users.close()
        else:
            if path.exists() and path.stat().st_ino == os.fstat(users.fileno()).st_ino:
                return users
            users.close()
        assert time.monotonic() < deadline, f"{folder} is not removed by its keeper"
        time.sleep(0.1)
    return None


def _start(engine: ServedEngine) -> TextIO:
    engine.folder.mkdir(mode=0o755)
    users = (engine.folder / "users").open("w")
    fcntl.flock(users, fcntl.LOCK_SH)
    with (engine.folder / "service.log").open("wb") as log:
        subprocess.Popen(
            [*engine.KEEPER, str(engine.folder)], cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        ).returncode = 0  # fmt: skip  # it outlives us on purpose: no warning of a forgotten child
    return users


def _wait_for(engine: ServedEngine) -> None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            status, _ = engine.call("GET", "/_ping")
        except OSError:
            status = 0
        if status == 200:
            return
        said = (engine.folder / "service.log").read_text(errors="replace")[-2000:]
        assert not (engine.folder / "ended").exists(), f"{engine.NAME} has ended: {said}"
        assert time.monotonic() < deadline, f"{engine.NAME} does not answer: {said}"
        time.sleep(0.05)
