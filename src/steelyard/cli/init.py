"""`steelyard init`: write a new project, empty or with an example that runs at once."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import print_json, say


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=Path(), type=click.Path(path_type=Path))
@click.option("--example", is_flag=True, help="With a small pack and two models to compare.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@output_options
def init(folder: Path, example: bool, force: bool, as_json: bool, debug: bool) -> int:
    """Write a new project into DIR, which may be new; into this folder without one.

    An empty project is a commented steelyard.yaml. Files that are there already are named, and
    nothing is written. Results are put into .gitignore.
    """
    from steelyard.config.starter import (
        EXAMPLE_COMMAND,
        EXAMPLE_FILES,
        PROJECT_FILES,
        write_project,
    )

    written = write_project(folder, EXAMPLE_FILES if example else PROJECT_FILES, overwrite=force)
    is_elsewhere = folder.resolve() != Path.cwd()
    following = [f"cd {shlex.quote(str(folder))}"] if is_elsewhere else []
    if example:
        following.append(EXAMPLE_COMMAND)
    else:
        following += ["steelyard config check", "steelyard pack init packs/first"]
    if as_json:
        print_json(
            {
                "schema": "init/1",
                "files": [str(path) for path in written.files],
                "ignored_in": None if written.ignored is None else str(written.ignored),
                "next": following,
            }
        )
        return 0
    for path in written.files:
        say(f"wrote {path}")
    if written.ignored is not None:
        say(f"put results/ into {written.ignored}")
    say()
    say("next:")
    for line in following:
        say(f"  {line}")
    return 0
