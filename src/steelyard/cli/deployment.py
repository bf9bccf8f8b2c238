"""`steelyard deployment`: the project's agents that eval sets name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.options import config_option, output_options
from steelyard.cli.output import note, pairs_lines, print_json, print_table, say

if TYPE_CHECKING:
    from steelyard.evalset.agent_refs import Deployment
    from steelyard.evalset.project import Project


@click.group("deployment", invoke_without_command=True)
@click.pass_context
def deployment(ctx: click.Context) -> None:
    """Look at the project's deployments: the agents that eval sets name. Try one."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())


@deployment.command("list")
@config_option
@output_options
def list_deployments(config_files: tuple[Path, ...], as_json: bool, debug: bool) -> int:
    """List the project's deployments, and which of their variables are not set."""
    project = _project(config_files)
    described = [_described(one, project) for one in project.agents.all]
    if as_json:
        print_json({"schema": "deployment-list/1", "deployments": described})
        return 0
    if not described:
        say("the project has no deployments: write them under `deployments:` of steelyard.yaml")
        return 0
    print_table(
        ("name", "harness", "model", "environment", "unset", "id"),
        [
            (
                one["name"],
                one["harness"].get("id"),
                one["model"].get("id"),
                one["environment"].get("id"),
                ", ".join(one["unset"]) or None,
                one["id"],
            )
            for one in described
        ],
    )
    return 0


@deployment.command("show")
@click.argument("name", metavar="NAME")
@config_option
@output_options
def show(name: str, config_files: tuple[Path, ...], as_json: bool, debug: bool) -> int:
    """Show the deployment NAME (or UUID), secrets hidden."""
    from steelyard.evalset.agent_refs import resolve_agent

    project = _project(config_files)
    found = resolve_agent(name, project.agents)
    described = _described(found, project)
    if as_json:
        print_json({"schema": "deployment-show/1", **described})
        return 0
    say(described["name"])
    parts = ("harness", "model", "environment")
    pairs = {
        "id": described["id"],
        "written at": described["where"],
        **{field: value for part in parts for field, value in _leaves(part, described[part])},
        "not set": ", ".join(described["unset"]) or "nothing",
    }
    for line in pairs_lines(pairs):
        say(line)
    for problem in described["problems"]:
        note(f"warning: {problem}")
    return 0


@deployment.command("check")
@click.argument("name", metavar="NAME")
@click.option("--model", metavar="ID", help="In place of its model's id, as `models` of a set.")
@config_option
@output_options
def check(
    name: str, model: str | None, config_files: tuple[Path, ...], as_json: bool, debug: bool
) -> int:
    """Call the model of the deployment NAME once, open and close its environment.

    The call is tiny, and it is paid. Exit status 1 where one of the two fails, 2 where settings
    are wrong or a variable is not set.
    """
    from steelyard.cli.streams import redact_with
    from steelyard.config.redaction import Redactor
    from steelyard.evalset.agent_refs import resolve_agent
    from steelyard.evalset.deployment_check import check_deployment

    project = _project(config_files)
    found = resolve_agent(name, project.agents)
    done = check_deployment(found, project, config_files=config_files, model=model)
    redactor = Redactor(done.secrets)
    redact_with(redactor.text)
    if as_json:
        document = {
            "schema": "deployment-check/1",
            "name": found.name,
            "id": found.uuid,
            "passed": done.passed,
            "tried": [one.as_json() for one in done.tried],
            "usage": dict(done.usage),
        }
        print_json(redactor.tree(document))
    else:
        words = {True: "ok", False: "failed", None: "–"}
        rows = [(one.what, words[one.ok], redactor.text(one.message)) for one in done.tried]
        print_table(("what", "state", "finding"), rows)
        for one in done.tried:
            if one.ok is not True and one.remedy:
                say(f"  {one.what}: {redactor.text(one.remedy)}")
    return 0 if done.passed else 1


def _project(config_files: tuple[Path, ...]) -> Project:
    from steelyard.cli.streams import redact_with
    from steelyard.config.redaction import Redactor
    from steelyard.evalset.project import read_project

    project = read_project(config_files)
    redact_with(Redactor(project.config.secrets).text)
    return project


def _described(one: Deployment, project: Project) -> dict[str, Any]:
    """Describe a deployment with its secrets hidden."""
    from steelyard.config.envrefs import referred_name
    from steelyard.config.project_parts import without_values
    from steelyard.config.redaction import redact_tree
    from steelyard.config.source import walk
    from steelyard.evalset.references import deployment_problems

    plain = redact_tree(without_values(one.node))
    names = (referred_name(node.value) for _, node in walk(one.node))
    variables = dict.fromkeys(name for name in names if name is not None)
    where = one.where
    return {
        "name": one.name,
        "id": one.uuid,
        "harness": plain.get("harness") or {},
        "model": plain.get("model") or {},
        "environment": plain.get("environment") or {},
        "digest": one.digest,
        "variables": list(variables),
        "unset": [name for name in variables if name not in project.environ],
        "problems": [
            problem.message
            for problem in deployment_problems(one, project)
            if "is not set" not in problem.message
        ],
        "where": ":".join(str(part) for part in (where.file, where.line, where.column) if part),
    }


def _leaves(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in _leaves(f"{path}.{key}", item)]
    return [] if value == {} else [(path, value)]
