"""What a task asks of the environments that its agent and its verifier work in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.benchmarks.harbor.document import TaskDocument
from steelyard.benchmarks.harbor.folder import Part, TaskFolder
from steelyard.benchmarks.harbor.schema import EnvironmentTable, NetworkMode, VerifierTable
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


def agent_access(task: TaskFolder) -> Access:
    """Give what the agent may reach: its own table says, else the environment's."""
    agent = task.table.agent
    if agent.network_mode is None:
        return baseline(task.table.environment)
    return Access(_NETWORKS[agent.network_mode], tuple(agent.allowed_hosts or ()))


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
        }
    )


def agent_needs(
    task: TaskFolder, variables: Mapping[str, str], *, with_image: bool
) -> EnvironmentNeeds:
    """Give what the agent's environment is to be."""
    table, access = task.table.environment, agent_access(task)
    image, build = (
        _image_of(task.environment, table, task.environment_digest) if with_image else (None, None)
    )
    return _needs(table, access, image, build, variables, with_image)


def verifier_place(
    task: TaskFolder, part: Part, variables: Mapping[str, str], *, with_image: bool
) -> VerifierPlace:
    """Give what a separate verifier's environment is to be.

    Its image is the one that its table names, else that of tests/Dockerfile, else the agent's.
    """
    whole = task.table.verifier
    table = whole.environment or task.table.environment
    access = baseline(table)
    if whole.network_mode is not None:
        access = Access(_NETWORKS[whole.network_mode], tuple(whole.allowed_hosts or ()))
    image, build, brings = None, None, False
    if with_image:
        named = whole.environment.docker_image if whole.environment is not None else None
        own = next((folder for folder in part.tests if (folder / "Dockerfile").is_file()), None)
        if named is not None:
            image, brings = named, True
        elif own is not None:
            build, brings = _build(own, table, task.digests[own]), True
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
    places: list[tuple[tuple[str, ...], Mapping[str, str]]] = [
        (("environment", "env"), table.environment.env),
        (("verifier", "env"), table.verifier.env),
        (("solution", "env"), table.solution.env),
    ]
    if table.verifier.environment is not None:
        places.append((("verifier", "environment", "env"), table.verifier.environment.env))
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


def contradictions(task: TaskFolder) -> Iterator[Problem]:
    """Name what a task asks for and no environment of this version can give."""
    say = task.document.problem
    table = task.table
    if task.has_steps:
        for number, part in enumerate(task.parts):
            if is_separate(task, part):
                yield say(
                    f"the step {part.name!r} has a verifier of its own environment, which is not "
                    "available for tasks with steps",
                    *("steps", number),
                    remedy='write environment_mode = "shared", or leave the task out',
                )
        return
    part = task.parts[0]
    if is_separate(task, part) or table.verifier.network_mode is None:
        return
    wanted = Access(
        _NETWORKS[table.verifier.network_mode], tuple(table.verifier.allowed_hosts or ())
    )
    if wanted != agent_access(task):
        yield say(
            "the verifier shares the agent's environment and asks for another network; one "
            "environment keeps one network",
            *("verifier", "network_mode"),
            remedy='write environment_mode = "separate" below [verifier]',
        )
