"""A container engine is asked on its socket: one that answers, refuses, or talks nonsense."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steelyard.doctor import engines
from steelyard.doctor.finding import State


@contextmanager
def _answering(path: Path, reply: bytes) -> Iterator[None]:
    """Serve one connection with fixed bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            thread.join(10)


def _http(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


def _look(path: Path) -> tuple[State, str]:
    found = engines.examine_engine({"DOCKER_HOST": f"unix://{path}"})
    return found.state, found.message


def test_an_engine_that_answers_is_named(tmp_path: Path) -> None:
    body = b'{"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]}'
    with _answering(tmp_path / "s", _http(body)):
        assert _look(tmp_path / "s") == (
            State.WORKS,
            f"Podman Engine 4.3.1 at {tmp_path / 's'}",
        )


@pytest.mark.parametrize("reply", [b"", b"nonsense\r\n\r\n", _http(b"[]"), _http(b"{}", "500 No")])
def test_a_socket_that_is_no_engine_is_a_warning(tmp_path: Path, reply: bytes) -> None:
    with _answering(tmp_path / "s", reply):
        assert _look(tmp_path / "s")[0] is State.WARNING


def test_a_stale_socket_is_a_warning_with_how_to_start_the_engine(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "s"))
    found = engines.examine_engine({"DOCKER_HOST": f"unix://{tmp_path / 's'}"})
    assert found.state is State.WARNING
    assert "systemctl" in (found.remedy or "")


def test_a_named_socket_that_does_not_exist_is_a_warning(tmp_path: Path) -> None:
    assert _look(tmp_path / "gone")[0] is State.WARNING


def test_no_engine_at_all_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "socket_paths", lambda variables, uid: [Path("/nonexistent/s")])
    found = engines.examine_engine({})
    assert found.state is State.ABSENT
    assert "podman" in (found.remedy or "")


def test_a_remote_engine_is_not_asked() -> None:
    assert engines.examine_engine({"DOCKER_HOST": "tcp://10.0.0.1:2375"}).state is State.ABSENT


def test_rootless_sockets_are_looked_for() -> None:
    paths = engines.socket_paths({"XDG_RUNTIME_DIR": "/run/user/7"}, os.getuid())
    assert Path("/run/user/7/podman/podman.sock") in paths
