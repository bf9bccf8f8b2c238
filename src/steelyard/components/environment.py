"""The contract of an environment: a provider that opens sessions in which programs run.

A *provider* is made once a run from its parameters; a *session* is one folder and one set of
processes, private to an execution. Every implementation passes
`steelyard.testing.environment_suite`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.gateway import ModelGate
from steelyard.components.values import Trust

TOKEN_VARIABLE = "STEELYARD_TOKEN"  # noqa: S105 — the name of a variable
"""Set in every process of a session, so that leftovers of a dead run can be found."""


class NoParams(BaseModel):
    """Parameters of a component that has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Resources:
    """What a session may use; None where nothing is asked."""

    cpu: float | None = None
    memory_mb: int | None = None
    processes: int | None = None
    disk_mb: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form."""
        return {
            "cpu": self.cpu,
            "memory_mb": self.memory_mb,
            "processes": self.processes,
            "disk_mb": self.disk_mb,
        }


Network = Literal["none", "allowlist", "open"]
"""`allowlist`: the named hosts alone, through a proxy of the provider's."""


@dataclass(frozen=True, slots=True)
class ImageBuild:
    """An image to be built from a Dockerfile, once however many sessions ask."""

    context: Path
    """The folder that the build sees; the benchmark's, not the agent's."""
    digest: str
    """SHA-256 of all that the build sees, in hex: the image is named by it."""
    dockerfile: str = "Dockerfile"
    """Relative to `context`."""
    timeout_s: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Give the serialisable form; without the path, which identifies nothing."""
        return {"digest": self.digest, "dockerfile": self.dockerfile}


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of the host that programs of a session see, and cannot change."""

    source: Path
    target: str
    """An absolute path inside, outside the working folder."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What one session is opened with."""

    token: str
    """Unique to the execution (and to its scorer); already in the journal."""
    resources: Resources = Resources()
    network: Network | None = None
    """None: the provider's default. A provider that cannot close the network must refuse `none`
    only where it claims isolation; `host_process` ignores it and says trust `host`."""
    image: str | None = None
    build: ImageBuild | None = None
    """Takes the place of `image`."""
    workdir: str | None = None
    """An absolute path inside; None: the image's, or the provider's own."""
    allowed_hosts: tuple[str, ...] = ()
    """With `allowlist`: names, with `*.` before them for all below."""
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    """What it is opened for, `run`, `task` and `attempt`, for people who look at the machine; a
    provider may put it beside what it makes. Nothing is found or ended by it: the token is unique,
    and a task's id is somebody else's text."""
    gate: ModelGate | None = None
    """The run's model gateway, where programs of the session are to reach it."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How one program ended."""

    exit_code: int
    """Negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False
    """True where a stream was longer than `max_output_bytes`; the rest was read and dropped."""
    duration_s: float = 0.0
    stopped_by: str | None = None
    """The limit of the session that ended it, as `disk`; None where none is known to have."""

    @property
    def stdout_text(self) -> str:
        """The output as text, with U+FFFD for what is not UTF-8."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def stderr_text(self) -> str:
        """The error output as text, with U+FFFD for what is not UTF-8."""
        return self.stderr.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class EnvironmentDescription:
    """What a session turned out to be; goes into the record and the identity."""

    provider: str
    image: str | None = None
    digest: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Give the record's form."""
        return {"provider": self.provider, "image": self.image, "digest": self.digest}


@dataclass(frozen=True, slots=True)
class Kept:
    """A session that outlives its run, for a person to look into."""

    description: str
    """For people: a folder, or a container's name."""
    enter: tuple[str, ...] = ()
    """The command that enters it, whole, to paste into a shell. Empty where the provider has none:
    `steelyard env enter` then calls `Environment.enter`."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """What `Environment.enter` needs, as JSON; stands in the journal, so never a secret."""


class EnvironmentFault(Exception):
    """The provider failed, not the program it ran: the attempt ends FATAL.

    With `is_of_request` every attempt of the request would meet it, as a wrong name in the
    environment's own settings: then the request stops at the first.
    """

    is_of_request = False


class NothingStarts(EnvironmentFault):
    """The session stands, and what starts programs in it is gone: an agent has removed it.

    Of a session in which programs have run that is no provider's fault.
    """


class Session(ABC):
    """One open environment.

    Paths are absolute inside the session, or relative to `workdir`. All methods may be called
    from several tasks at once. A cancelled `exec` ends the program's whole process tree first.
    """

    workdir: str
    """The working folder, as programs inside see it."""
    trust: Trust
    """What a probe of this machine confirmed, not what the provider hopes for."""
    description: EnvironmentDescription
    model_url: str | None = None
    """Where programs of the session reach the gateway; None without one, or where the provider
    cannot bring it in."""

    @abstractmethod
    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
        max_output_bytes: int = 10 * 1024 * 1024,
    ) -> ExecResult:
        """Run a program to its end, its whole process tree ended with it.

        The deadline starts when the process has started. A program that cannot be found is exit
        code 127, not an error of ours.

        Raises:
            EnvironmentFault: the session is gone or could not start any process.
        """

    @abstractmethod
    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making its folders."""

    @abstractmethod
    async def read_file(self, path: str, *, max_bytes: int = 10 * 1024 * 1024) -> bytes:
        """Read a regular file; links that lead out of the session are refused.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is larger than `max_bytes`, or not a regular file.
        """

    @abstractmethod
    async def upload(self, source: Path, path: str) -> None:
        """Copy a file or folder of the host in, modes and links inside it kept."""

    @abstractmethod
    async def download(self, path: str, target: Path) -> None:
        """Copy a file or folder out to a new path of the host.

        Links that lead out of the copied folder are left out, devices and sockets too.
        """

    async def collect(self, wanted: ArtifactSpec, target: Path) -> Collected:
        """Copy the wanted files of the session below an existing folder of the host.

        Links are never followed; what is no regular file, or above the bounds, is left out and
        counted. Files outside the working folder keep their absolute path without its slash.

        Raises:
            EnvironmentFault: the session is gone, or this provider cannot look for files.
        """
        raise EnvironmentFault(f"{self.description.provider} cannot look for files")

    async def end_programs(self) -> None:
        """End what earlier `exec`s left running, before the session is scored in.

        An `exec` that is still awaited ends as if killed, or raises `EnvironmentFault`.
        Services that a task was to leave running stay where `Environment.keeps_services`.
        """
        return

    async def fixed_network(self, networks: Sequence[Network]) -> str | None:
        """Say why the network of this session cannot become one of these; None where it can.

        Asked before anything works in it, by a task that wants another network for its tests.
        """
        return f"{self.description.provider} keeps a session's network as it was opened"

    async def change_network(self, network: Network, allowed_hosts: Sequence[str] = ()) -> None:
        """Let programs of the session reach something else from now on, those that run already too.

        Connections that are open end. Where the user named a network, that one stays.

        Raises:
            EnvironmentFault: it cannot be changed.
        """
        raise EnvironmentFault(str(await self.fixed_network((network,))))

    async def keep(self) -> Kept | None:
        """End the session as `close` does, but let its files (a container: itself) stand.

        Every program that the session started is ended, and what only this process can hold is
        given back. What stays is found by `Environment.find_leftovers` with the session's token and
        ended by `end_leftovers`, from any later process. Taken in place of `close`, under the same
        rules; a `close` afterwards ends what stands.

        Returns:
            None where nothing stays: nothing had been made, or this provider cannot keep.
        """
        await self.close()
        return None

    @abstractmethod
    async def close(self) -> None:
        """End every process, remove the folder. Safe to call twice and while an exec runs."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something a dead run left behind."""

    provider: str
    token: str
    description: str
    """For people: a process id and command, or a folder."""


class Environment(ABC):
    """A provider of sessions. Plug-ins subclass it and declare `api = 1`."""

    api: ClassVar[int] = 1
    id: ClassVar[str]
    is_local: ClassVar[bool] = True
    """Local providers are not paced by default; intents for remote ones are synced first."""
    offers_images: ClassVar[bool] = False
    """True where a session can run in the image that a task asks for. Where it cannot, the task is
    refused, not run on whatever is there."""
    offers_mounts: ClassVar[bool] = False
    """True where folders of the host can be mounted read-only."""
    offers_allowlist: ClassVar[bool] = False
    """True where the network can be held to named hosts."""
    keeps_services: ClassVar[bool] = False
    """True where a program that a task left running outlives the `exec` that started it."""
    keeps_sessions: ClassVar[bool] = False
    """True where `Session.keep` lets a session stand; where not, a request that asks for it is
    warned at its dry run."""
    best_trust: ClassVar[Trust] = Trust.HOST
    """The most that its sessions can claim after a probe."""
    Params: ClassVar[type[BaseModel]] = NoParams

    def __init__(self, params: BaseModel) -> None:
        self.params = params

    @classmethod
    def unavailable(cls) -> str | None:
        """Say why it cannot work on this machine, and the remedy; None where it can.

        May look at files and start a short probe; never the network. Blocking: called in a
        thread.
        """
        return None

    @classmethod
    def preload(cls) -> None:
        """Import what opening a session needs. Called before a launch, not by a dry run.

        What is imported later stalls the event loop of everything that runs.
        """
        return

    @abstractmethod
    async def open(self, request: OpenRequest) -> Session:
        """Open a session; a cancelled open leaves nothing behind.

        Raises:
            EnvironmentFault: it could not be opened.
        """

    async def find_leftovers(self, tokens: Sequence[str]) -> Sequence[Leftover]:
        """Find what sessions with these tokens left behind on this machine."""
        return ()

    async def end_leftovers(self, leftovers: Sequence[Leftover]) -> None:
        """End them. Called only for runs whose owner is proven dead."""
        return

    async def enter(self, token: str, state: Mapping[str, Any], argv: Sequence[str]) -> int:
        """Run a program in a kept session with this process's terminal, the walls as they were.

        For providers whose `Kept.enter` is empty. Without words it is a shell.

        Args:
            token: the session's.
            state: `Kept.state`, as read from the journal.
            argv: the program, or nothing.

        Returns:
            The program's exit code; negative: the signal that ended it.

        Raises:
            EnvironmentFault: what was kept is gone, or cannot be entered on this machine.
        """
        raise EnvironmentFault(f"{self.id} cannot enter what it kept")

    async def close(self) -> None:
        """Let go of what the provider itself holds. Called once, after every session."""
        return
