"""Expand a manifest to its cells. Pure: no reference is resolved, nothing is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from steelyard.config.errors import BadInput, Problem, Where
from steelyard.evalset.keys import matrix_key

if TYPE_CHECKING:  # its schema is slow to make, and who reads a set needs no more than a cell
    from steelyard.evalset.manifest import Manifest, ReadManifest

MAX_COMBINATIONS: Final = 2000
"""Never raised: `--max-combinations` can only lower it."""
_LARGEST_DERIVED: Final = 2**31 - 1


class TooManyCells(BadInput):
    """The product of packs, agents, models and repeats is above the cap."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination: a pack, an agent, perhaps a model, a repeat."""

    index: int
    """Its place in the expansion, from 0."""
    matrix_key: str
    pack_ref: str
    """As written."""
    agent_ref: str
    """The deployment as written."""
    agent_label: str | None
    model_ref: str | None
    """None where the set has no axis of models."""
    repeat: int
    """Counted from 1."""
    seed: int

    @property
    def agent(self) -> str:
        """What stands for the agent in the key: its label, else its deployment."""
        return self.agent_label or self.agent_ref


@dataclass(frozen=True, slots=True)
class Expansion:
    """A manifest's cells, in the order in which they start."""

    manifest: Manifest
    cells: tuple[Cell, ...]

    def as_json(self) -> dict[str, Any]:
        """Give the document that `evalset expand --json` prints."""
        manifest = self.manifest
        return {
            "schema": "evalset-expansion/1",
            "name": manifest.name,
            "count": len(self.cells),
            "pack_count": len(manifest.packs),
            "agent_count": len(manifest.agents),
            "model_count": len(manifest.models or ()),
            "repeats": manifest.repeat_count,
            "case_fanout": manifest.case_fanout,
            "max_concurrent_runs": manifest.limits.max_concurrent_runs,
            "budget_usd": manifest.limits.budget_usd,
            "combinations": [
                {
                    "matrix_key": cell.matrix_key,
                    "pack_ref": cell.pack_ref,
                    "agent_ref": cell.agent_ref,
                    "agent_label": cell.agent_label,
                    "model_ref": cell.model_ref,
                    "repeat": cell.repeat,
                    "seed": cell.seed,
                    "case_fanout": manifest.case_fanout,
                }
                for cell in self.cells
            ],
        }


def expand(read: ReadManifest, *, max_combinations: int | None = None) -> Expansion:
    """Expand a manifest: packs, agents, models, repeats, the last innermost.

    Args:
        read: the manifest.
        max_combinations: a lower cap than `MAX_COMBINATIONS`.

    Raises:
        BadInput: the cap is no cap, or nothing is left by `include` and `exclude`.
        TooManyCells: the product is above the cap; nothing was built.
    """
    manifest = read.manifest
    _check_cap(manifest, read, max_combinations)
    if twice := list(_listed_twice(read)):
        raise BadInput.of(_few(twice, "that stand twice"))
    seeds = _seeds(manifest)
    cells: list[Cell] = []
    keys: dict[str, tuple[str, str, str | None, int]] = {}
    problems: list[Problem] = []
    for parts in _product(manifest):
        pack, (agent, label), model, repeat = parts
        key = matrix_key(pack, label or agent, model, repeat)
        named = (pack, label or agent, model, repeat)
        if (twin := keys.setdefault(key, named)) is not named:
            problems.append(_twins(key, twin, named))
            continue
        if not _is_chosen(manifest, key):
            continue
        cells.append(Cell(len(cells), key, pack, agent, label, model, repeat, seeds[repeat - 1]))
    if problems:
        raise BadInput.of(_few(problems, "cells whose keys collide"))
    if not cells:
        where = read.root.nearest(("include",)).origin.where
        raise BadInput(
            "include and exclude leave no cell",
            where=Where(where.file, where.line, where.column, "include"),
            remedy="`steelyard evalset expand` without them shows every matrix key",
        )
    return Expansion(manifest, tuple(cells))


def _check_cap(manifest: Manifest, read: ReadManifest, wanted: int | None) -> None:
    if wanted is not None and not 1 <= wanted <= MAX_COMBINATIONS:
        raise BadInput(
            f"max_combinations is {wanted}: it can only lower the cap of {MAX_COMBINATIONS}",
            remedy=f"give a number from 1 to {MAX_COMBINATIONS}",
        )
    cap = wanted or MAX_COMBINATIONS
    factors = {
        "packs": len(manifest.packs),
        "agents": len(manifest.agents),
        "models": len(manifest.models or ()) or 1,
        "repeats": manifest.repeat_count,
    }
    count = 1
    for factor in factors.values():
        count *= factor
    if count > cap:
        product = " x ".join(f"{number} {name}" for name, number in factors.items())
        where = read.root.origin.where
        raise TooManyCells(
            f"{count} combinations ({product}), and at most {cap} are allowed",
            where=where,
            remedy="split the set, or lower one of the factors",
        )


def _product(
    manifest: Manifest,
) -> Iterator[tuple[str, tuple[str, str | None], str | None, int]]:
    models: list[str] | list[None] = manifest.models or [None]
    for pack in manifest.packs:
        for agent in manifest.agents:
            for model in models:
                for repeat in range(1, manifest.repeat_count + 1):
                    yield pack, (agent.deployment, agent.label), model, repeat


def _seeds(manifest: Manifest) -> list[int]:
    if manifest.seeds.strategy == "explicit" and manifest.seeds.seeds:
        return manifest.seeds.seeds
    return [derived_seed(manifest.name, repeat) for repeat in range(1, manifest.repeat_count + 1)]


def derived_seed(name: str, repeat: int) -> int:
    """Derive the seed of a repeat: positive, 31 bits, the same in every cell of a set."""
    digest = hashlib.sha256(f"steelyard/evalset/seed\0{name}\0{repeat}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % _LARGEST_DERIVED + 1


def _is_chosen(manifest: Manifest, key: str) -> bool:
    if any(fnmatchcase(key, pattern) for pattern in manifest.exclude):
        return False
    return manifest.include is None or any(
        fnmatchcase(key, pattern) for pattern in manifest.include
    )


def _listed_twice(read: ReadManifest) -> Iterator[Problem]:
    """Find what stands twice in a list, letter for letter: all its cells would be twins."""
    manifest = read.manifest
    axes: dict[str, list[tuple[str, str | None]]] = {
        "packs": [(ref, None) for ref in manifest.packs],
        "agents": [(agent.deployment, agent.label) for agent in manifest.agents],
        "models": [(model, None) for model in manifest.models or ()],
    }
    for axis, items in axes.items():
        first: dict[tuple[str, str | None], int] = {}
        for index, item in enumerate(items):
            if first.setdefault(item, index) == index:
                continue
            remedy = "take one of them out"
            if axis == "agents":
                remedy += ", or give each a label of its own"
            yield Problem(
                f"{axis}[{first[item]}] and {axis}[{index}] are the same: {item[1] or item[0]!r}",
                read.root.nearest((axis, index)).origin.where,
                remedy,
            )


_Named = tuple[str, str, str | None, int]


def _twins(key: str, first: _Named, second: _Named) -> Problem:
    def shown(named: _Named) -> str:
        pack, agent, model, repeat = named
        axis = "" if model is None else f", model {model!r}"
        return f"pack {pack!r}, agent {agent!r}{axis}, repeat {repeat}"

    return Problem(
        f"two cells have the matrix key {key!r}: {shown(first)}; and {shown(second)}",
        remedy="give agents labels that differ, and name each pack and model once",
    )


def _few(problems: list[Problem], what: str) -> list[Problem]:
    """Every cell of a clashing pair clashes: the first of them say it."""
    shown = 5
    if len(problems) <= shown:
        return problems
    more = Problem(f"and {len(problems) - shown} more {what}")
    return [*problems[:shown], more]
