"""`steelyard list`: the known components, of one kind or of all; none of them is imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import print_json, print_warnings, say, table_lines
from steelyard.components.registry import Kind, Listing, unreadable_plugins
from steelyard.components.registry import list_components as known_components
from steelyard.config.errors import BadInput, Problem

KIND_NAMES: Final = {
    **{kind.value: kind for kind in Kind},
    **{kind.group.removeprefix("steelyard."): kind for kind in Kind},
    "env": Kind.ENVIRONMENT,
    "envs": Kind.ENVIRONMENT,
}


@click.command("list")
@click.argument("kind", metavar="[KIND]", required=False)
@output_options
def list_components(kind: str | None, as_json: bool, debug: bool) -> int:
    """List benchmarks, harnesses or environments; without a KIND, all of them."""
    if kind is None:
        return _list_all(as_json)
    found = KIND_NAMES.get(kind.lower())
    if found is None:
        from steelyard.config.validation import nearest

        known = [_plural(name) for name in Kind if known_components(name)]
        near = nearest(kind, [*known, *KIND_NAMES])
        hint = f"did you mean {near}? " if near else ""
        raise BadInput(f"unknown kind {kind!r}", remedy=f"{hint}known: {', '.join(known)}")
    listings = known_components(found)
    print_warnings(_problems(found, listings))
    if as_json:
        print_json({"kind": found.value, "components": _as_json(listings)})
    elif not listings:
        say(f"no {_plural(found)} are known: this version has none, nor has an installed package")
    else:
        _print_listings(listings)
    return 0


def _plural(kind: Kind) -> str:
    return kind.group.removeprefix("steelyard.")


def _list_all(as_json: bool) -> int:
    by_kind = {kind: known_components(kind) for kind in Kind}
    for kind, found in by_kind.items():
        print_warnings(_problems(kind, found))
    if as_json:
        print_json({"components": {kind.value: _as_json(found) for kind, found in by_kind.items()}})
        return 0
    # A kind of which there is nothing is no offer.
    for number, (kind, found) in enumerate((k, f) for k, f in by_kind.items() if f):
        if number:
            say()
        say(f"{_plural(kind)}:")
        _print_listings(found, indent="  ")
    return 0


def _problems(kind: Kind, listings: Sequence[Listing]) -> list[Problem]:
    """What is installed and cannot be used, each with its package."""
    unreadable = [
        Problem(
            f"what the package {one.name} declares cannot be read: {one.reason}",
            remedy="install it again, or uninstall it",
        )
        for one in unreadable_plugins(kind)
    ]
    return unreadable + [
        Problem(
            f"the {kind.value} {one.id!r} of {one.origin} is {one.problem}",
            remedy=f"rename its entry point, or uninstall {one.origin}",
        )
        for one in listings
        if one.problem is not None
    ]


def _as_json(listings: Sequence[Listing]) -> list[dict[str, Any]]:
    return [
        {
            "id": listing.id,
            "aliases": list(listing.aliases),
            "summary": listing.summary,
            "origin": listing.origin,
            "extra": listing.extra,
            "problem": listing.problem,
        }
        for listing in listings
    ]


def _print_listings(listings: Sequence[Listing], indent: str = "") -> None:
    rows = [
        (one.id, ", ".join(one.aliases), one.summary, _from(one), one.extra or "")
        for one in listings
    ]
    for line in table_lines(("id", "aliases", "what", "from", "extra"), rows):
        say(indent + line)


def _from(listing: Listing) -> str:
    return f"{listing.origin} ({listing.problem})" if listing.problem else listing.origin
