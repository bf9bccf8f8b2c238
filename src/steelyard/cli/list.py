"""`steelyard list`: the known components of a kind; none of them is imported."""

from __future__ import annotations

from typing import Final

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import print_json, print_table, say
from steelyard.components.registry import Kind
from steelyard.components.registry import list_components as known_components
from steelyard.config.errors import BadInput

KIND_NAMES: Final = {
    **{kind.value: kind for kind in Kind},
    **{kind.group.removeprefix("steelyard."): kind for kind in Kind},
    "env": Kind.ENVIRONMENT,
    "envs": Kind.ENVIRONMENT,
}


@click.command("list")
@click.argument("kind", metavar="KIND")
@output_options
def list_components(kind: str, as_json: bool, debug: bool) -> int:
    """List benchmarks, harnesses, environments, analyzers or scanners."""
    found = KIND_NAMES.get(kind.lower())
    if found is None:
        from steelyard.config.validation import nearest

        plural = [name.group.removeprefix("steelyard.") for name in Kind]
        near = nearest(kind, KIND_NAMES)
        hint = f"did you mean {near}? " if near else ""
        raise BadInput(f"unknown kind {kind!r}", remedy=f"{hint}known: {', '.join(plural)}")
    listings = known_components(found)
    if as_json:
        print_json(
            {
                "kind": found.value,
                "components": [
                    {
                        "id": listing.id,
                        "aliases": list(listing.aliases),
                        "summary": listing.summary,
                        "origin": listing.origin,
                        "extra": listing.extra,
                    }
                    for listing in listings
                ],
            }
        )
    elif not listings:
        say(f"no {found.group.removeprefix('steelyard.')} are known")
    else:
        print_table(
            ("id", "aliases", "what", "from", "extra"),
            [
                (one.id, ", ".join(one.aliases), one.summary, one.origin, one.extra or "")
                for one in listings
            ],
        )
    return 0
