"""What installed packages declare as components, and which declarations are refused.

Reads metadata only: nothing of a package is imported, and one that is broken harms no other.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from importlib.util import find_spec
from typing import Final

from steelyard.config.names import clash_key, is_path_component, normalise

_TARGET: Final = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")
_EXTRAS: Final = re.compile(r"\s*\[[^\]]*\]\s*$")


@dataclass(frozen=True, slots=True)
class PlugIn:
    """One declaration of a package: an id and where its class is."""

    id: str
    target: str
    """`package.module:Class`, as far as the package wrote it so."""
    origin: str
    """The distribution that brings it."""
    refusal: str | None = None
    """Why it is not used, whatever its class; None where it is."""


@dataclass(frozen=True, slots=True)
class UnreadablePackage:
    """A package whose declarations cannot be read."""

    name: str
    reason: str


@cache
def _declared(group: str) -> tuple[tuple[EntryPoint, ...], tuple[UnreadablePackage, ...]]:
    """The entry points of a group; once a process, since it takes 10 ms."""
    try:
        return tuple(sorted(entry_points(group=group), key=lambda point: point.name)), ()
    except Exception:  # noqa: BLE001 — one package's malformed file, of which nothing says whose
        return _one_by_one(group)


def _one_by_one(group: str) -> tuple[tuple[EntryPoint, ...], tuple[UnreadablePackage, ...]]:
    found: dict[tuple[str, str], EntryPoint] = {}
    unreadable = []
    for distribution in distributions():
        name = _name(distribution)
        try:
            points = distribution.entry_points
            for point in points.select(group=group):
                found.setdefault((name, point.name), point)  # the first on the path, as ever
        except Exception as error:  # noqa: BLE001 — whatever its metadata make the parser raise
            unreadable.append(UnreadablePackage(name, f"{type(error).__name__}: {error}"))
    return (
        tuple(sorted(found.values(), key=lambda point: point.name)),
        tuple(dict.fromkeys(unreadable)),
    )


def _name(distribution: Distribution | None) -> str:
    try:
        name: object = distribution.name if distribution is not None else None
    except Exception:  # noqa: BLE001 — metadata that are missing or malformed
        name = None
    return name if isinstance(name, str) and name else "an installed package"


def unreadable_packages(group: str) -> tuple[UnreadablePackage, ...]:
    """List the packages whose declarations could not be read."""
    return _declared(group)[1]


def plug_ins(group: str, taken: Mapping[str, str]) -> tuple[PlugIn, ...]:
    """List what installed packages declare in an entry-point group, by id.

    Args:
        group: as `steelyard.harnesses`.
        taken: ids that no package may declare, each with whose it is (`built in`, …).
    """
    points = _declared(group)[0]
    keys = {clash_key(normalise(name)): (name, whose) for name, whose in taken.items()}
    return tuple(
        PlugIn(
            point.name,
            _EXTRAS.sub("", point.value),
            _name(point.dist),
            _refusal(point, keys, [one for one in points if one is not point]),
        )
        for point in points
    )


def _refusal(
    point: EntryPoint, taken: Mapping[str, tuple[str, str]], others: Iterable[EntryPoint]
) -> str | None:
    key = clash_key(normalise(point.name))
    if not is_path_component(point.name):
        right = normalise(point.name)
        better = f"; {right!r} would be one" if is_path_component(right) else ""
        return f"{point.name!r} cannot be an id{better}"
    if key in taken:
        name, whose = taken[key]
        if name == point.name:
            return f"the id is {whose}"
        return f"it differs only in case or form from {name!r}, which is {whose}"
    rivals = [one for one in others if clash_key(normalise(one.name)) == key]
    if rivals:
        return f"also declared by {' and '.join(_rivals(point, rivals))}"
    if not _TARGET.match(_EXTRAS.sub("", point.value)):
        return f"it leads to {point.value!r}, which is not of the form package.module:Class"
    return None


def _rivals(point: EntryPoint, rivals: Iterable[EntryPoint]) -> Iterator[str]:
    for rival in rivals:
        origin = _name(rival.dist)
        yield origin if rival.name == point.name else f"{origin} (as {rival.name!r})"


def missing_module(plug_in: PlugIn) -> str | None:
    """Name the top-level module of a plug-in that is not installed; imports nothing."""
    top = plug_in.target.partition(":")[0].partition(".")[0]
    return None if top in sys.modules or find_spec(top) is not None else top
