"""`steelyard agent`: agents' programs on this machine: installed, listed, removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import counted
from steelyard.config.errors import BadInput, Problem, Where

if TYPE_CHECKING:
    from steelyard.components.harness import Harness
    from steelyard.components.installed_agents import InstalledAgent


@click.group("agent")
def agent() -> None:
    """Install agents' programs on this machine, once; see and remove them.

    Environments get them read-only. Installing needs the package registry; running does not.
    """


@agent.command("install")
@click.argument("harness", metavar="ID")
@click.option("--version", help="An exact version; the harness's own default.")
@click.option("--data-dir", type=click.Path(path_type=Path), metavar="DIR",
              help="Where: what `runtime.data_dir` names for the runs.")  # fmt: skip
@output_options
def install(
    harness: str, version: str | None, data_dir: Path | None, as_json: bool, debug: bool
) -> int:
    """Install the program of the harness ID, which a run then mounts into each environment.

    Packages have exact versions, their sums are checked, and no script of theirs is run.
    """
    from steelyard.cli.output import note, print_json, say

    wanted = _harness(harness, version)
    wanted.data_dir = _data_dir(data_dir)
    installs = wanted.installation()
    if installs is None:
        if (reason := wanted.lacking()) is not None:
            raise BadInput(f"{harness} cannot run here: {reason}")
        done, was_there = f"{harness} is installed already", True
    else:
        note(f"installing {harness}; this may take minutes")
        done, was_there = f"installed {installs()}", False
    if as_json:
        print_json({"harness": harness, "was_there": was_there, "done": done})
    else:
        say(done)
    return 0


@agent.command("list")
@click.option("--data-dir", type=click.Path(path_type=Path), metavar="DIR",
              help="Where they are installed.")  # fmt: skip
@output_options
def list_agents(data_dir: Path | None, as_json: bool, debug: bool) -> int:
    """List the agents' programs that are installed on this machine."""
    from steelyard.cli.disk import size_text
    from steelyard.cli.output import print_json, print_table, say
    from steelyard.components.installed_agents import installed_agents

    place = _data_dir(data_dir)
    found = [(one, one.bytes()) for one in installed_agents(place)]
    if as_json:
        agents = [{**_as_json(one), "bytes": size} for one, size in found]
        print_json({"data_dir": str(place), "agents": agents})
    elif not found:
        say(f"no agent's program is installed below {place}")
    else:
        rows = [(one.id, one.version, size_text(size), one.folder) for one, size in found]
        print_table(("id", "version", "size", "folder"), rows)
    return 0


@agent.command("remove")
@click.argument("harness", metavar="ID")
@click.option("--version", help="This version alone; without it all of them.")
@click.option("--data-dir", type=click.Path(path_type=Path), metavar="DIR",
              help="Where it is installed.")  # fmt: skip
@output_options
def remove(
    harness: str, version: str | None, data_dir: Path | None, as_json: bool, debug: bool
) -> int:
    """Remove the installed programs of the harness ID. Runs that use them lose them."""
    from steelyard.cli.output import print_json, say
    from steelyard.components.installed_agents import installed_agents, remove_agent

    place = _data_dir(data_dir)
    found = [
        one
        for one in installed_agents(place)
        if one.id == harness and version in (None, one.version)
    ]
    if not found:
        what = harness if version is None else f"{harness} {version}"
        raise BadInput(
            f"{what} is not installed below {place}", remedy="`steelyard agent list` shows what is"
        )
    for one in found:
        remove_agent(one)
    if as_json:
        print_json({"data_dir": str(place), "removed": [_as_json(one) for one in found]})
    else:
        say(f"removed {counted(len(found), 'installed program')} of {harness}")
    return 0


def _harness(name: str, version: str | None) -> Harness:
    """Make the harness that an id names, with the version as its only parameter.

    Raises:
        BadInput: there is no such harness, it takes no version, or this one is none.
    """
    from pydantic import ValidationError

    from steelyard.components.registry import Kind, find
    from steelyard.config.source import Node, Origin
    from steelyard.config.validation import problems_of

    found = find(Kind.HARNESS, name).component
    if "version" not in found.Params.model_fields:
        raise BadInput(
            f"the harness {name!r} has no program to install",
            remedy="`steelyard list harnesses` says which are installed once and mounted",
        )
    try:
        params = found.Params.model_validate({} if version is None else {"version": version})
    except ValidationError as error:
        root = Node({}, Origin("option", Where(field="--version")))
        problems = problems_of(error.errors(), root, found.Params)
        raise BadInput.of(
            [Problem(one.message, Where(field="--version"), one.remedy) for one in problems]
        ) from error
    made: Harness = found(params)
    return made


def _data_dir(given: Path | None) -> Path:
    """Give the folder that an option names, else the settings, else the user's own."""
    if given is not None:
        return given.absolute()
    import os

    from steelyard.components.installed_agents import default_data_dir
    from steelyard.components.known import REGISTRY
    from steelyard.config.resolve import resolve_config
    from steelyard.config.source import plain

    found = resolve_config(environ=os.environ, cwd=Path.cwd(), components=REGISTRY)
    tree: Any = plain(found.provenance.root)
    named = (tree.get("runtime") or {}).get("data_dir")
    return default_data_dir() if named is None else Path.cwd() / named


def _as_json(one: InstalledAgent) -> dict[str, str]:
    return {"id": one.id, "version": one.version, "folder": str(one.folder)}
