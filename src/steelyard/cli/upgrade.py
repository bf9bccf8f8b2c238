"""`steelyard upgrade`: bring the files of runs to the formats of this version."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from steelyard.cli.options import output_options


@click.command("upgrade")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@output_options
def upgrade(folder: Path, as_json: bool, debug: bool) -> int:
    """Look at the formats of every run in and below DIR.

    Every format is in its first version so far, so nothing needs to be written anew. What a newer
    version wrote is named (exit status 2), and so is what cannot be read.
    """
    from steelyard.cli.output import print_json, print_table, say
    from steelyard.config.errors import BadInput, Problem, Where
    from steelyard.results.formats import Standing, formats_of
    from steelyard.results.retention import find_runs

    runs = [run.root for run in find_runs(folder)] if folder.is_dir() else []
    if not runs:
        raise BadInput(f"there is no run in or below {folder}", remedy="name a results folder")
    found = [file for root in runs for file in formats_of(root)]
    problems = [
        Problem(
            f"{file.schema} was written by a newer version"
            if file.standing is Standing.NEWER
            else f"no format of ours, or damaged: schema {file.schema!r}",
            Where(file=str(file.path)),
            "install the version that wrote it, or a newer one"
            if file.standing is Standing.NEWER
            else "`steelyard show` reads what is left of a damaged run",
        )
        for file in found
        if file.standing in (Standing.NEWER, Standing.UNKNOWN)
    ]
    if problems:
        raise BadInput.of(problems)
    if as_json:
        files = [
            {"path": str(one.path), "schema": one.schema, "standing": one.standing.value}
            for one in found
        ]
        print_json({"folder": str(folder), "runs": len(runs), "upgraded": 0, "files": files})
        return 0
    counts = Counter(one.schema or f"{one.path.name}, empty" for one in found)
    print_table(("format", "files"), sorted(counts.items()))
    count = f"{len(runs)} run{'s' * (len(runs) != 1)}"
    say(f"\n{count}, every file in its newest format: nothing to do")
    return 0
