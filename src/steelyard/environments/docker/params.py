"""What people may ask of `docker`; apart, so that planning imports no more than this."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
)

from steelyard.components.path_params import WrittenPath
from steelyard.environments.docker.allowlist import Allowlist

DEFAULT_CPU: Final = 1.0
DEFAULT_MEMORY_MB: Final = 2048
DEFAULT_PROCESSES: Final = 512

DEFAULT_IMAGE: Final = "python:3.12-slim"
"""For what asks for none, as `auto` does where it falls to a container engine."""

PullPolicy = Literal["never", "missing", "always"]


class DockerParams(BaseModel):
    """`environment: {id: docker, …}`. What is not named is what the task asks, else a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    host: str | None = None
    """The engine's address, as `unix:///run/podman/podman.sock` or `tcp://HOST:2376`; else
    DOCKER_HOST, else the first socket that answers of Docker and Podman, rootful and rootless."""
    image: str | None = None
    """For tasks that ask for none: a name, `name@sha256:…`, or an image's id;
    `python:3.12-slim` by default."""
    image_tar: Annotated[Path | None, WrittenPath()] = None
    """A root file system as a tar file, imported once and used for tasks that ask for no image."""
    pull: PullPolicy = "missing"
    """Whether an image may be fetched from its registry: `never`, where it is `missing`, or
    `always` once a run. A pull is said before it begins."""
    user: str | None = None
    """Whom programs run as, as `agent` or `1000:1000`; the image's own by default."""
    cpu: PositiveFloat | None = None
    """Cores' worth of time; 1 by default."""
    memory_mb: Annotated[int, Field(ge=16)] | None = None
    """2048 by default, swap included."""
    processes: PositiveInt | None = None
    """Processes and threads at once; 512 by default."""
    disk_mb: PositiveInt | None = None
    """What programs may write; not held by default. One file's size is held exactly, the sum is
    held by the engine where its storage can, else watched."""
    network: Literal["none", "allowlist", "open"] | None = None
    """`none` by default. `allowlist` reaches `allowed_hosts` alone, through a proxy of ours;
    `open` is the engine's own network, trust is then `contained`."""
    allowed_hosts: tuple[str, ...] = ()
    """With `allowlist`: names, with `*.` before them for all below, or ranges of addresses; beside
    those of the task."""
    open_network: str | None = None
    """The engine's network that `open` means, as `bridge`, `host` or a name; its default else."""
    extra_capabilities: tuple[str, ...] = ()
    """Capabilities that tasks need beyond ours, as `SYS_PTRACE`; trust is then `contained`."""

    @field_validator("image_tar")
    @classmethod
    def _from_base(cls, image_tar: Path | None, info: ValidationInfo) -> Path | None:
        base = (info.context or {}).get("base_dir")
        return image_tar if image_tar is None or base is None else Path(base) / image_tar

    @field_validator("allowed_hosts")
    @classmethod
    def _are_names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        Allowlist.of(hosts)
        return hosts
