"""`steelyard evalset list [DIR]`: the sets there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from steelyard.cli.options import output_options


@click.command("list")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@output_options
def list_sets(folder: Path | None, as_json: bool, debug: bool) -> int:
    """List the eval sets below DIR (the results folder), the newest first."""
    from steelyard.cli.output import note, print_json, print_table, say
    from steelyard.cli.run_argument import results_dir
    from steelyard.config.errors import SteelyardError
    from steelyard.evalset.find_set import sets_below
    from steelyard.evalset.set_reader import OpenedSet

    where = folder or results_dir()
    found: list[dict[str, Any]] = []
    for root in sets_below(where):
        try:
            opened = OpenedSet(root)
            found.append(
                {
                    "set_id": opened.set_id,
                    "name": opened.name,
                    "state": opened.state().value,
                    "cells": len(opened.cells),
                    "created_at": opened.document.created_at,
                    "budget_usd": opened.budget_usd(),
                    "root": str(root),
                }
            )
        except SteelyardError as error:
            note(f"warning: {error.problems[0].message}")
    found.sort(key=lambda one: (one["created_at"], one["set_id"]), reverse=True)
    if as_json:
        print_json({"schema": "evalset-list/1", "sets": found})
    elif not found:
        say(f"no eval set below {where}; `steelyard evalset submit FILE` makes one")
    else:
        titles = ("set", "name", "state", "cells", "created")
        print_table(
            titles,
            [
                (one["set_id"], one["name"], one["state"], one["cells"], one["created_at"])
                for one in found
            ],
        )
    return 0
