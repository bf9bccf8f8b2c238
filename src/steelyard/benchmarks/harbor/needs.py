"""What a task asks of the environments that its agent and its verifier work in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.benchmarks.harbor.document import TaskDocument
from steelyard.benchmarks.harbor.folder import Part, TaskFolder
from steelyard.benchmarks.harbor.schema import (
    AgentTable,
    EnvironmentTable,
    NetworkMode,
    VerifierTable,
)
from steelyard.components.benchmark import EnvironmentNeeds
from steelyard.components.environment import ImageBuild, Network, Resources
from steelyard.config.errors import Problem

_NETWORKS: Final[Mapping[NetworkMode, Network]] = {
    "public": "open",
    "no-network": "none",
    "allowlist": "allowlist",
}
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Access:
    """Which hosts may be reached."""

    network: Network
    hosts: tuple[str, ...] = ()

    def as_json(self) -> list[Any]:
        """Give the form that identities hold."""
        return [self.network, *self.hosts]


@dataclass(frozen=True, slots=True)
class VerifierPlace:
    """Where a separate verifier runs."""

    needs: EnvironmentNeeds
    brings_tests: bool
    """True where its image has them already, at /tests."""


def baseline(environment: EnvironmentTable) -> Access:
    """Give what an environment's own table says of its network."""
    mode = environment.network_mode
    if mode is None:
        mode = "no-network" if environment.allow_internet is False else "public"
    return Access(_NETWORKS[mode], tuple(environment.allowed_hosts or ()))


def agent_access(task: TaskFolder, part: Part) -> Access:
    """Give what the agent may reach: its step's word, else the task's, else the environment's."""
    own = None if part.step is None else _explicit(part.step.agent)
    return own or _explicit(task.table.agent) or baseline(task.table.environment)


def verifier_access(task: TaskFolder, part: Part) -> Access:
    """Give what tests may reach that share the agent's environment.

    Their own table says, else the environment's: what the agent alone is refused or granted is not
    theirs.
    """
    own = None if part.step is None else _explicit(part.step.verifier)
    return own or _explicit(task.table.verifier) or baseline(task.table.environment)


def shared_accesses(task: TaskFolder) -> Mapping[Access, str]:
    """Give what the agent's environment is to reach in turn, the first one first, and who asks."""
    found: dict[Access, str] = {}
    for part in task.parts:
        of_step = f" of the step {part.name!r}" if part.step is not None else ""
        found.setdefault(agent_access(task, part), f"the agent{of_step}")
        if not is_separate(task, part):
            found.setdefault(verifier_access(task, part), f"the verifier{of_step}")
    return found


def _explicit(table: AgentTable | VerifierTable) -> Access | None:
    if table.network_mode is None:
        return None
    return Access(_NETWORKS[table.network_mode], tuple(table.allowed_hosts or ()))


def is_separate(task: TaskFolder, part: Part) -> bool:
    """True where a part is verified in an environment of the verifier's own."""
    own = part.step.verifier.mode if part.step is not None else None
    return (own or task.table.verifier.mode) == "separate"


def verifier_of(task: TaskFolder, part: Part) -> VerifierTable:
    """Give what holds for the verification of a part: the step's own word before the task's."""
    whole = task.table.verifier
    if part.step is None:
        return whole
    own = part.step.verifier
    said = own.model_fields_set
    return whole.model_copy(
        update={
            "timeout_sec": own.timeout_sec if "timeout_sec" in said else whole.timeout_sec,
            "env": {**whole.env, **own.env},
            "collect": [*whole.collect, *own.collect],
            "environment": own.environment or whole.environment,
        }
    )


def agent_needs(
    task: TaskFolder, variables: Mapping[str, str], *, with_image: bool
) -> EnvironmentNeeds:
    """Give what the agent's environment is to be."""
    table, access = task.table.environment, agent_access(task, task.parts[0])
    image, build = (
        _image_of(task.environment, table, task.environment_digest) if with_image else (None, None)
    )
    return _needs(table, access, image, build, variables, with_image)


def verifier_place(
    task: TaskFolder, part: Part, variables: Mapping[str, str], *, with_image: bool
) -> VerifierPlace:
    """Give what a separate verifier's environment is to be.

    Its image is the one that its table names, else that of tests/Dockerfile, else the agent's; a
    step's own table and tests come before the task's.
    """
    whole, step = task.table.verifier, part.step
    table = verifier_of(task, part).environment or task.table.environment
    own = None if step is None else _explicit(step.verifier)
    access = own or _explicit(whole) or baseline(table)
    image, build, brings = None, None, False
    if with_image:
        shared, of_step = task.root / "tests", task.root / "steps" / part.name / "tests"
        candidates = [] if step is None else [(step.verifier.environment, of_step)]
        for environment, folder in (*candidates, (whole.environment, shared)):
            if environment is not None and environment.docker_image is not None:
                image, brings = environment.docker_image, True
                break
            if folder in part.tests and (folder / "Dockerfile").is_file():
                build, brings = _build(folder, table, task.digests[folder]), True
                break
        else:
            image, build = _image_of(
                task.environment, task.table.environment, task.environment_digest
            )
    return VerifierPlace(_needs(table, access, image, build, variables, with_image), brings)


def _image_of(
    folder: Path, table: EnvironmentTable, digest: str
) -> tuple[str | None, ImageBuild | None]:
    if table.docker_image is not None:
        return table.docker_image, None
    return None, _build(folder, table, digest)


def _build(folder: Path, table: EnvironmentTable, digest: str) -> ImageBuild:
    return ImageBuild(folder, digest, timeout_s=table.build_timeout_sec)


def _needs(
    table: EnvironmentTable,
    access: Access,
    image: str | None,
    build: ImageBuild | None,
    variables: Mapping[str, str],
    with_image: bool,
) -> EnvironmentNeeds:
    return EnvironmentNeeds(
        image=image,
        network=access.network,
        resources=Resources(
            cpu=table.cpus,
            memory_mb=table.memory_mb or table.memory,
            disk_mb=table.storage_mb or table.storage,
        ),
        build=build,
        workdir=table.workdir if with_image else None,
        allowed_hosts=access.hosts,
        env=resolved(table.env, variables),
    )


def resolved(env: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Put in the variables that a task refers to as `${NAME}` or `${NAME:-default}`.

    They come from the request's `variables`, never from this process's environment: a task is
    somebody else's content, and must not be able to ask for a key.
    """
    found = {}
    for name, text in env.items():
        reference = _REFERENCE.fullmatch(text)
        if reference is None:
            found[name] = text
        else:
            found[name] = variables.get(reference[1], reference[2] or "")
    return found


def missing_variables(task: TaskDocument, variables: Mapping[str, str]) -> Iterator[Problem]:
    """Name the variables that a task refers to and nobody gives."""
    table = task.table
    places: list[tuple[tuple[str | int, ...], Mapping[str, str]]] = [
        (("environment", "env"), table.environment.env),
        (("verifier", "env"), table.verifier.env),
        (("solution", "env"), table.solution.env),
    ]
    if table.verifier.environment is not None:
        places.append((("verifier", "environment", "env"), table.verifier.environment.env))
    for number, step in enumerate(table.steps or ()):
        at = ("steps", number, "verifier")
        places.append(((*at, "env"), step.verifier.env))
        if step.verifier.environment is not None:
            places.append(((*at, "environment", "env"), step.verifier.environment.env))
    for path, env in places:
        for name, text in env.items():
            reference = _REFERENCE.fullmatch(text)
            if reference is None or reference[2] is not None or reference[1] in variables:
                continue
            wanted = reference[1]
            yield task.problem(
                f"the task asks for the variable {wanted}, which nobody gives",
                *path,
                name,
                remedy=f"write `variables: {{{wanted}: ${{{wanted}}}}}` below the benchmark",
            )
