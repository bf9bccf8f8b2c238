"""A container engine, by asking the Docker API on its Unix socket for its version."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson

from steelyard.doctor.finding import Finding, State, works

_WAIT_S: Final = 3.0
_AREA: Final = "container engine"


def socket_paths(variables: Mapping[str, str], uid: int) -> list[Path]:
    """List where an engine's socket may be, the one that DOCKER_HOST names alone where set."""
    named = variables.get("DOCKER_HOST", "")
    if named.startswith("unix://"):
        return [Path(named.removeprefix("unix://"))]
    runtime = variables.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    return [
        Path("/var/run/docker.sock"),
        Path(runtime) / "docker.sock",
        Path(runtime) / "podman/podman.sock",
        Path("/run/podman/podman.sock"),
    ]


def examine_engine(variables: Mapping[str, str]) -> Finding:
    """Find an engine that answers. Blocking, a few seconds at most."""
    named = variables.get("DOCKER_HOST", "")
    if named and not named.startswith("unix://"):
        message = "DOCKER_HOST names a remote engine, which is not asked here"
        return Finding(_AREA, State.ABSENT, message, "`unset DOCKER_HOST` to look on this machine")
    return _ask_each(socket_paths(variables, os.getuid()), is_named=bool(named))


def _ask_each(paths: Sequence[Path], *, is_named: bool) -> Finding:
    refused: list[str] = []
    for path in paths:
        if not path.exists():
            continue
        try:
            return works(_AREA, f"{_version(path)} at {path}")
        except PermissionError:
            refused.append(f"{path}: permission denied")
        except (OSError, http.client.HTTPException, ValueError) as error:
            refused.append(f"{path}: {error or type(error).__name__}")
    if refused:
        remedy = "add yourself to its group (`usermod -aG docker $USER`, then log in again), or "
        remedy += "start it: `systemctl --user start podman.socket`, `systemctl start docker`"
        return Finding(_AREA, State.WARNING, f"found, but does not answer: {refused[0]}", remedy)
    if is_named:
        message = f"DOCKER_HOST names {paths[0]}, which does not exist"
        return Finding(_AREA, State.WARNING, message, "start the engine, or `unset DOCKER_HOST`")
    remedy = "`apt-get install podman`, `dnf install podman`, or Docker; only if you need images"
    return Finding(_AREA, State.ABSENT, "none found; `sandbox` needs none", remedy)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_WAIT_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_WAIT_S)
        self.sock.connect(str(self._path))


def _version(path: Path) -> str:
    connection = _UnixConnection(path)
    try:
        connection.request("GET", "/version")
        answer = connection.getresponse()
        data = orjson.loads(answer.read(1024 * 1024))
        if answer.status != 200 or not isinstance(data, dict):
            raise ValueError(f"it answers {answer.status}")
    finally:
        connection.close()
    components = data.get("Components")
    first = components[0] if isinstance(components, list) and components else {}
    name = first.get("Name") if isinstance(first, dict) else None
    return f"{name or 'an engine'} {data.get('Version', '?')}"[:120]
