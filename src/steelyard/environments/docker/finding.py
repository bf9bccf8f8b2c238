"""Find an engine's socket, and say why there is none that can be used.

Blocking, no third-party import: planning asks `unavailable` before anything is opened.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.components.extras import install_command

_WAIT_S: Final = 3.0
START: Final = (
    "start one: `systemctl --user start podman.socket`, or `systemctl start docker`; without "
    "systemd `podman system service -t 0 &`"
)
ALLOW: Final = (
    "add yourself to its group (`usermod -aG docker $USER`, then log in again), or use rootless "
    "podman: `systemctl --user start podman.socket`"
)


@dataclass(frozen=True, slots=True)
class Found:
    """An engine's address, or why there is none."""

    host: str | None
    fault: str | None = None
    remedy: str | None = None

    def said(self) -> str | None:
        """Give fault and remedy as one sentence; None where there is an engine."""
        return None if self.fault is None else f"{self.fault}; {self.remedy}"


def socket_paths(variables: Mapping[str, str], uid: int) -> list[Path]:
    """List where engines put their sockets: a user's own before the system's."""
    runtime = Path(variables.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}")
    own = [runtime / "docker.sock", runtime / "podman/podman.sock"]
    if home := variables.get("HOME"):
        own += [
            Path(home, ".docker/run/docker.sock"),  # Docker Desktop
            Path(home, ".local/share/containers/podman/machine/podman.sock"),
            Path(home, ".colima/default/docker.sock"),
        ]
    system = [Path("/var/run/docker.sock"), Path("/run/podman/podman.sock")]
    return [*system, *own] if uid == 0 else [*own, *system]


def find_engine(host: str | None, variables: Mapping[str, str] = os.environ) -> Found:
    """Find the engine that a setting or DOCKER_HOST names, else one that answers. Blocking."""
    named = host or variables.get("DOCKER_HOST")
    if named:
        origin = "environment.host" if host else "DOCKER_HOST"
        return _named(named, origin)
    refused: Found | None = None
    for path in socket_paths(variables, os.getuid()):
        if not path.exists():
            continue
        found = _asked(path, str(path))
        if found.host is not None:
            return found
        refused = refused or found
    if refused is not None:
        return refused
    return Found(
        None,
        "no container engine was found: neither DOCKER_HOST nor a socket of Docker or Podman",
        f"`apt-get install podman` or Docker, then {START}",
    )


def _named(named: str, origin: str) -> Found:
    scheme, _, rest = named.partition("://")
    if scheme == "unix":
        path = Path(rest)
        if not path.exists():
            return Found(None, f"{origin} names {path}, which does not exist", START)
        return _asked(path, f"{origin} ({path})")
    if scheme in ("tcp", "http", "https") and rest:
        return Found(named)  # a network address is not tried here
    return Found(
        None,
        f"{origin} is {named!r}, which is no address of an engine",
        "write unix:///PATH, or tcp://HOST:PORT",
    )


def _asked(path: Path, shown: str) -> Found:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
            tried.settimeout(_WAIT_S)
            tried.connect(str(path))
    except PermissionError:
        return Found(None, f"no permission to use the engine at {shown}", ALLOW)
    except OSError as error:
        if error.errno == errno.ECONNREFUSED:
            return Found(None, f"no engine answers at {shown}", START)
        return Found(None, f"the engine at {shown} cannot be reached: {error}", START)
    return Found(f"unix://{path}")


def has_client() -> bool:
    """True where the package that speaks to engines is installed."""
    return importlib.util.find_spec("aiodocker") is not None


def unavailable(host: str | None = None) -> str | None:
    """Say why no container can be opened here, and the remedy; None where one can."""
    if not has_client():
        return f"the package aiodocker is not installed; {install_command('docker')}"
    return find_engine(host).said()
