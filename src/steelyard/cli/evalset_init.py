"""`steelyard evalset init`: write a manifest that runs as it stands."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import print_json, say


@click.command("init")
@click.argument(
    "file",
    metavar="[FILE]",
    default=Path("steelyard.evalset.yaml"),
    type=click.Path(path_type=Path),
)
@output_options
def init(file: Path, as_json: bool, debug: bool) -> int:
    """Write a commented manifest, steelyard.evalset.yaml by default. Nothing is written over.

    It runs as it stands: a pack that ships, and two stand-ins for models. Where the project has no
    steelyard.yaml one is written with these; otherwise it is said what to add.
    """
    from steelyard.evalset.starter import DEPLOYMENT_LINES, write_starter

    written = write_starter(file)
    folder = file.parent
    following = [] if folder in (Path(), Path.cwd()) else [f"cd {shlex.quote(str(folder))}"]
    name = shlex.quote(file.name)
    following += [
        f"steelyard evalset submit {name} --dry-run",
        f"steelyard evalset submit {name}",
    ]
    if as_json:
        print_json(
            {
                "schema": "evalset-init/1",
                "files": [str(path) for path in written.files],
                "ignored_in": None if written.ignored is None else str(written.ignored),
                "add_to": None if written.add_to is None else str(written.add_to),
                "add": DEPLOYMENT_LINES if written.add_to is not None else None,
                "next": following,
            }
        )
        return 0
    for path in written.files:
        say(f"wrote {path}")
    if written.ignored is not None:
        say(f"put results/ into {written.ignored}")
    if written.add_to is not None:
        shown = os.path.relpath(written.add_to)
        say(f"\n{shown} is there already, and lacks what the manifest names; add to it:\n")
        for line in DEPLOYMENT_LINES.rstrip().split("\n"):
            say(f"  {line}" if line else "")
    say("\nnext:")
    for line in following:
        say(f"  {line}")
    return 0
