"""The fields of `task.toml`, as the format had them in version 1.4 and before.

Every field of the format is known here, also those that this version refuses: `document.py` says
which and why, at their lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from steelyard.config.validation import FieldFault

VERSIONS: Final = ("1.0", "1.1", "1.2", "1.3", "1.4")
"""Of the format; a file that names none is read as the newest."""

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG])B?", re.IGNORECASE)
_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_FORBIDDEN_IN_NAMES: Final = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Seconds = Annotated[float, Field(gt=0, le=30 * 86_400, allow_inf_nan=False)]


def _checked_host(text: str) -> str:
    host = text.strip().lower().rstrip(".")
    if "/" in host or "%" in host:
        try:
            return ip_network(host, strict=True).compressed
        except ValueError:
            raise ValueError(f"{text!r} is no host: neither URL, port nor path") from None
    try:
        return ip_address(host).compressed
    except ValueError:
        pass
    labels = host.removeprefix("*.").split(".")
    if not host or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(
            f"{text!r} is no host: a name, `*.` and a name, an address, or a range of addresses"
        )
    return host


def _checked_size(value: Any) -> Any:
    """Read `512M`; numbers of MiB stay what they are."""
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise ValueError(f"{value!r} is no size: write 512M or 2G")
    factor = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}[found[2].upper()]
    return max(1, int(float(found[1]) * factor))


def _lowered(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _checked_inner_path(text: str) -> str:
    if not text or "\0" in text or ".." in PurePosixPath(text).parts:
        raise ValueError(f"{text!r} is no path of the environment: it may not hold `..`")
    return text


def _checked_variables(variables: dict[str, str]) -> dict[str, str]:
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise FieldFault(f"{name!r} is no name of a variable", name)
    return variables


def _checked_step_name(name: str) -> str:
    if (
        not name.strip()
        or name in (".", "..")
        or name.endswith((".", " "))
        or _FORBIDDEN_IN_NAMES.search(name)
        or len(name.encode()) > 255
    ):
        raise ValueError(f"{name!r} cannot name a folder below steps/")
    return name


Host = Annotated[str, AfterValidator(_checked_host)]
Size = Annotated[int, Field(ge=1), BeforeValidator(_checked_size)]
InnerPath = Annotated[str, AfterValidator(_checked_inner_path)]
Variables = Annotated[dict[str, str], AfterValidator(_checked_variables)]
User = str | int
NetworkMode = Literal["no-network", "public", "allowlist"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Networked(_Table):
    network_mode: NetworkMode | None = None
    allowed_hosts: list[Host] | None = None

    @model_validator(mode="after")
    def _hosts_belong_to_a_list(self) -> _Networked:
        if self.allowed_hosts and self.network_mode != "allowlist":
            raise FieldFault(
                'allowed_hosts belongs to network_mode = "allowlist"',
                "allowed_hosts",
                remedy='write network_mode = "allowlist" beside it, or take it out',
            )
        return self


class AuthorTable(_Table):
    """Who wrote a task."""

    name: str
    email: str | None = None


class PackageTable(_Table):
    """`[task]`: what the task is called where it is published."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*$")
    version: str | None = Field(default=None, min_length=1)
    description: str = ""
    authors: list[AuthorTable] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)


class HealthcheckTable(_Table):
    """A command that says when the environment is ready."""

    command: str = Field(min_length=1)
    interval_sec: Seconds = 5.0
    timeout_sec: Seconds = 30.0
    start_period_sec: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    start_interval_sec: Seconds = 5.0
    retries: Annotated[int, Field(ge=1, le=1000)] = 3


class McpServerTable(_Table):
    """A tool server for the agent; refused by `document.py`."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http", "http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    headers: dict[str, str] = Field(default_factory=dict)


class TpuTable(_Table):
    """An accelerator; refused by `document.py`."""

    type: str
    topology: str


class EnvironmentTable(_Networked):
    """`[environment]` and `[verifier.environment]`."""

    build_timeout_sec: Seconds = 600.0
    docker_image: str | None = Field(default=None, min_length=1)
    os: Annotated[Literal["linux", "windows"], BeforeValidator(_lowered)] = "linux"
    cpus: Annotated[float, Field(gt=0, le=1024, allow_inf_nan=False)] | None = None
    memory_mb: Size | None = None
    storage_mb: Size | None = None
    memory: Size | None = None
    """The old form, as `2G`."""
    storage: Size | None = None
    """The old form, as `10G`."""
    gpus: Annotated[int, Field(ge=0)] | None = None
    gpu_types: list[str] | None = None
    tpu: TpuTable | None = None
    mcp_servers: list[McpServerTable] = Field(default_factory=list)
    env: Variables = Field(default_factory=dict)
    skills_dir: str | None = None
    healthcheck: HealthcheckTable | None = None
    workdir: str | None = Field(default=None, pattern=r"^/")
    allow_internet: bool | None = None
    """The old form; `network_mode` says more."""

    @model_validator(mode="after")
    def _sizes_agree(self) -> EnvironmentTable:
        for old, new in (("memory", "memory_mb"), ("storage", "storage_mb")):
            one, other = getattr(self, old), getattr(self, new)
            if one is not None and other is not None and one != other:
                raise FieldFault(f"{old} and {new} differ: {one} and {other} MB", old)
        return self


class AgentTable(_Networked):
    """`[agent]`: what the agent is granted."""

    timeout_sec: Seconds | None = None
    user: User | None = None


class CollectTable(_Table):
    """`[[verifier.collect]]`: a command run before artifacts are taken."""

    command: str = Field(min_length=1)
    service: str = "main"
    timeout_sec: Seconds = 60.0
    user: User | None = None


class VerifierTable(_Networked):
    """`[verifier]`: how and where the tests run."""

    timeout_sec: Seconds = 600.0
    env: Variables = Field(default_factory=dict)
    user: User | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentTable | None = None
    collect: list[CollectTable] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_place(self) -> VerifierTable:
        if self.environment_mode == "shared" and self.environment is not None:
            raise FieldFault(
                'environment_mode = "shared" contradicts [verifier.environment]',
                "environment_mode",
                remedy='write "separate", or take the environment out',
            )
        return self

    @property
    def mode(self) -> Literal["shared", "separate"] | None:
        """Where the tests run; None where nothing is said."""
        if self.environment_mode is not None:
            return self.environment_mode
        return "separate" if self.environment is not None else None


class ArtifactTable(_Table):
    """A file or folder that the verifier's own environment is to see."""

    source: InnerPath
    destination: str | None = None
    """Where the format's own tool keeps it; ours keeps it at its source."""
    exclude: list[str] = Field(default_factory=list)
    service: str | None = None


def _as_artifact(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


Artifact = Annotated[ArtifactTable, BeforeValidator(_as_artifact)]


class SolutionTable(_Table):
    """`[solution]`: variables of the reference."""

    env: Variables = Field(default_factory=dict)


class StepTable(_Table):
    """One of `[[steps]]`."""

    name: Annotated[str, AfterValidator(_checked_step_name)]
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    min_reward: float | dict[str, float] | None = None
    healthcheck: HealthcheckTable | None = None
    artifacts: list[Artifact] = Field(default_factory=list)

    @property
    def thresholds(self) -> Mapping[str, float]:
        """What each reward must reach for the next step to begin."""
        if isinstance(self.min_reward, dict):
            return self.min_reward
        return {} if self.min_reward is None else {"reward": self.min_reward}


class TaskTable(_Table):
    """A whole `task.toml`."""

    schema_version: Literal["1.0", "1.1", "1.2", "1.3", "1.4"] = "1.4"
    version: Literal["1.0", "1.1", "1.2", "1.3", "1.4"] | None = None
    """The old name of `schema_version`."""
    source: str | None = None
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    artifacts: list[Artifact] = Field(default_factory=list)
    task: PackageTable | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    environment: EnvironmentTable = EnvironmentTable()
    solution: SolutionTable = SolutionTable()
    steps: list[StepTable] | None = None

    @model_validator(mode="after")
    def _steps_differ(self) -> TaskTable:
        seen: set[str] = set()
        for number, step in enumerate(self.steps or ()):
            if step.name.casefold() in seen:
                raise FieldFault(f"two steps are called {step.name!r}", "steps", number, "name")
            seen.add(step.name.casefold())
        return self
