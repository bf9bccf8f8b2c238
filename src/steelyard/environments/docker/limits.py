"""What one container may use and do, as the Docker API takes it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from steelyard.components.environment import OpenRequest
from steelyard.environments.docker.params import (
    DEFAULT_CPU,
    DEFAULT_MEMORY_MB,
    DEFAULT_PROCESSES,
    DockerParams,
)

MIB: Final = 1024 * 1024

CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID",
)  # fmt: skip
"""What root inside keeps: to install packages and change users, nothing of the kernel's."""

_RLIMIT: Final = re.compile(r"error setting rlimit type (\d+)")
_LIMIT_NAMES: Final = {"6": "nproc", "7": "nofile", "8": "memlock"}
"""By Linux's numbers."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A session's bounds, each with a value."""

    cpu: float
    memory_mb: int
    processes: int
    disk_mb: int | None
    network: Literal["none", "allowlist", "open"]
    allowed_hosts: tuple[str, ...]
    is_users_network: bool = False
    """True where the user named the network: no task has another one, in no phase."""
    users_hosts: tuple[str, ...] = ()
    """Of `allowed_hosts`, what the user named: allowed whatever a task's list says."""


def limits_of(params: DockerParams, request: OpenRequest) -> Limits:
    """Lay what the user set over what the task asks over the defaults."""
    asked = request.resources
    return Limits(
        cpu=params.cpu or asked.cpu or DEFAULT_CPU,
        memory_mb=params.memory_mb or asked.memory_mb or DEFAULT_MEMORY_MB,
        processes=params.processes or asked.processes or DEFAULT_PROCESSES,
        disk_mb=params.disk_mb or asked.disk_mb,
        network=params.network or request.network or "none",
        allowed_hosts=(*request.allowed_hosts, *params.allowed_hosts),
        is_users_network=params.network is not None,
        users_hosts=params.allowed_hosts,
    )


def host_config(
    limits: Limits, *, mounts: list[dict[str, Any]], security: list[str],
    extra_capabilities: tuple[str, ...], open_network: str | None,
    holds_storage: bool,
) -> Mapping[str, Any]:  # fmt: skip
    """Give the `HostConfig` of a container."""
    memory = limits.memory_mb * MIB
    config: dict[str, Any] = {
        "NetworkMode": (open_network or "default") if limits.network == "open" else "none",
        "Memory": memory,
        "MemorySwap": memory,
        "NanoCpus": int(limits.cpu * 1_000_000_000),
        "PidsLimit": limits.processes,
        "CapDrop": ["ALL"],
        "CapAdd": [*CAPABILITIES, *extra_capabilities],
        "SecurityOpt": security,
        "Mounts": mounts,
        "Init": False,
        "IpcMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
    }
    if limits.disk_mb is not None and holds_storage:
        config["StorageOpt"] = {"size": str(limits.disk_mb * MIB)}
    return config


def start_remedy(refusal: str) -> str | None:
    """Say what to do where an engine may not raise a limit of processes; None for all else."""
    found = _RLIMIT.search(refusal)
    if found is None:
        return None
    limit = _LIMIT_NAMES.get(found[1], "NAME")
    return (
        f"the engine may not raise its own limit `{limit}`: write "
        f'`default_ulimits = ["{limit}=N:N"]` under `[containers]` in its containers.conf, N as in '
        "/proc/PID/limits of the engine, and start it again"
    )
