"""Read `task.toml`: every fault at once, each at its line; and what this version refuses of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from steelyard.benchmarks.harbor.schema import (
    AgentTable,
    CollectTable,
    EnvironmentTable,
    TaskTable,
    VerifierTable,
)
from steelyard.benchmarks.harbor.toml_source import read_toml
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.source import FieldPath, Node, path_text, plain
from steelyard.config.validation import in_order, problems_of

FILE: Final = "task.toml"
LEAVE_OUT: Final = "leave the task out (`exclude_ids`)"
_ROOT_USERS: Final = (None, "root", 0, "0")


@dataclass(frozen=True, slots=True)
class TaskDocument:
    """A `task.toml` in order, with the places of its values."""

    table: TaskTable
    node: Node

    def problem(self, message: str, *path: str | int, remedy: str | None = None) -> Problem:
        """Make a problem at the place of a value."""
        return _problem(self.node, message, path, remedy)


def read_document(path: Path, *, shown: str) -> tuple[TaskDocument | None, list[Problem]]:
    """Read and check a file.

    Args:
        path: the `task.toml`.
        shown: how messages name it.

    Returns:
        The document, None where it does not fit the format; and all that is wrong.
    """
    try:
        node = read_toml(path, shown=shown)
    except BadInput as error:
        return None, list(error.problems)
    try:
        table = TaskTable.model_validate(plain(node), strict=True)
    except ValidationError as error:
        found = problems_of(error.errors(include_url=False), node, TaskTable)
        return None, in_order(_of_version(problem) for problem in found)
    document = TaskDocument(table, node)
    return document, in_order(_contradictions(document))


def _of_version(problem: Problem) -> Problem:
    if "schema_version" not in (problem.where.field or ""):
        return problem
    return Problem(
        f"{problem.message}: not a version of the format that is read here",
        problem.where,
        problem.remedy,
    )


def _problem(node: Node, message: str, path: Sequence[str | int], remedy: str | None) -> Problem:
    found = node.nearest(tuple(path))
    place = found.origin.key_where
    where = Where(place.file, place.line, place.column, path_text(path) or None)
    return Problem(message, where, remedy)


def _contradictions(document: TaskDocument) -> Iterator[Problem]:
    table, say = document.table, document.problem
    if table.version is not None and "schema_version" in table.model_fields_set:
        yield say(
            "both version and schema_version are given",
            "version",
            remedy="keep schema_version; version is its old name",
        )
    if table.steps is not None and not table.steps:
        yield say("steps is empty", "steps", remedy="name a step, or take it out")
    if table.multi_step_reward_strategy is not None and not table.steps:
        yield say(
            "multi_step_reward_strategy belongs to a task with [[steps]]",
            "multi_step_reward_strategy",
            remedy="take it out",
        )
    for path, environment in (
        (("environment",), table.environment),
        (("verifier", "environment"), table.verifier.environment),
    ):
        is_list = environment is not None and environment.network_mode == "allowlist"
        if environment is not None and is_list and not environment.allowed_hosts:
            remedy = 'write network_mode = "no-network"'
            yield say("the allowlist names no host", *path, remedy=remedy)


def refusals(document: TaskDocument) -> Iterator[Problem]:
    """Name what the format has and this version cannot do: the task is in order, and not run."""
    table = document.table
    yield from _refused_environment(document, table.environment, ("environment",))
    yield from _refused_agent(document, table.agent, ("agent",))
    yield from _refused_verifier(document, table.verifier, ("verifier",))
    yield from _refused_artifacts(document, table.artifacts, ("artifacts",))
    for number, step in enumerate(table.steps or ()):
        at: FieldPath = ("steps", number)
        yield from _refused_agent(document, step.agent, (*at, "agent"))
        yield from _refused_verifier(document, step.verifier, (*at, "verifier"))
        yield from _refused_artifacts(document, step.artifacts, (*at, "artifacts"))


def _refused_environment(
    document: TaskDocument, environment: EnvironmentTable, path: FieldPath
) -> Iterator[Problem]:
    say = document.problem
    refused: dict[str, tuple[Any, str]] = {
        "gpus": (environment.gpus, "no provider of this version gives a session a GPU"),
        "tpu": (environment.tpu, "no provider of this version gives a session a TPU"),
        "mcp_servers": (
            environment.mcp_servers,
            "tool servers for the agent are not available in this version",
        ),
        "skills_dir": (
            environment.skills_dir,
            "skills for the agent are not available in this version",
        ),
    }
    for name, (value, why) in refused.items():
        if value:
            yield say(why, *path, name, remedy=f"{LEAVE_OUT}, or take the field out")
    if environment.os != "linux":
        yield say(f"no provider runs {environment.os}", *path, "os", remedy=LEAVE_OUT)


def _refused_agent(document: TaskDocument, agent: AgentTable, path: FieldPath) -> Iterator[Problem]:
    yield from _refused_user(document, agent.user, path)


def _refused_user(
    document: TaskDocument, user: str | int | None, path: FieldPath
) -> Iterator[Problem]:
    if user not in _ROOT_USERS:
        yield document.problem(
            f"running as the user {user!r} is not available in this version",
            *path,
            "user",
            remedy="let the image's own user do it (USER in its Dockerfile), or take it out",
        )


def _refused_verifier(
    document: TaskDocument, verifier: VerifierTable, path: FieldPath
) -> Iterator[Problem]:
    yield from _refused_user(document, verifier.user, path)
    if verifier.environment is not None:
        yield from _refused_environment(document, verifier.environment, (*path, "environment"))
    for number, hook in enumerate(verifier.collect):
        yield from _refused_hook(document, hook, (*path, "collect", number))


def _refused_hook(document: TaskDocument, hook: CollectTable, path: FieldPath) -> Iterator[Problem]:
    yield from _refused_user(document, hook.user, path)
    if hook.service != "main":
        yield _other_service(document, hook.service, path)


def _refused_artifacts(
    document: TaskDocument, artifacts: Sequence[Any], path: FieldPath
) -> Iterator[Problem]:
    for number, artifact in enumerate(artifacts):
        if artifact.service not in (None, "main"):
            yield _other_service(document, artifact.service, (*path, number))


def _other_service(document: TaskDocument, service: str, path: FieldPath) -> Problem:
    return document.problem(
        f"the service {service!r} is one of a compose file, which this version does not start",
        *path,
        "service",
        remedy=LEAVE_OUT,
    )
