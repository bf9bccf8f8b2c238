"""`evalset.json`: what a set was asked to be. Written whole when the set is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steelyard.config.names import is_path_component
from steelyard.evalset.expansion import Cell
from steelyard.evalset.layout import cell_folder
from steelyard.evalset.surroundings import NOTHING_AROUND, Surroundings
from steelyard.results.json_values import count, mapping, optional_text, text

SET_SCHEMA: Final = "evalset-record/1"


@dataclass(frozen=True, slots=True)
class PinnedPack:
    """A pack as a set's cells run it."""

    ref: str
    """As the manifest writes it."""
    slug: str
    version: int
    digest: str
    """Of the pack's whole content, hex."""
    uuid: str
    """Of the version, derived from slug, version and digest."""
    path: str
    """Its folder when the set was made."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of `evalset.json`."""
        return {
            "ref": self.ref,
            "slug": self.slug,
            "version": self.version,
            "digest": self.digest,
            "uuid": self.uuid,
            "path": self.path,
        }


@dataclass(frozen=True, slots=True)
class PinnedAgent:
    """A deployment as a set's cells run it."""

    ref: str
    """As the manifest writes it: a UUID or a name."""
    name: str
    """The deployment's name."""
    uuid: str
    label: str | None
    digest: str
    """Of its harness, model and environment as written, secrets as references, hex."""

    @property
    def shown(self) -> str:
        """What stands for it in matrix keys and reports: its label, else as the manifest has it."""
        return self.label or self.ref

    def as_json(self) -> dict[str, Any]:
        """Give the form of `evalset.json`."""
        return {
            "ref": self.ref,
            "name": self.name,
            "uuid": self.uuid,
            "label": self.label,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True)
class SetCell:
    """A cell of a set that was made: what it runs, and in which folder."""

    index: int
    """Its own number for ever, from 0: the order in which cells were added."""
    folder: str
    """Of its runs, below `cells/`; also its request's name."""
    cell: Cell
    pack: PinnedPack
    agent: PinnedAgent

    @property
    def matrix_key(self) -> str:
        """What people call it."""
        return self.cell.matrix_key

    def numbered(self, index: int) -> SetCell:
        """Give the cell with another number, and the folder that goes with it."""
        folder = cell_folder(index, self.matrix_key)
        return replace(self, index=index, folder=folder, cell=replace(self.cell, index=index))

    def as_json(self) -> dict[str, Any]:
        """Give the form of `evalset.json`; pack and agent are named, not repeated."""
        return {
            "index": self.index,
            "folder": self.folder,
            "matrix_key": self.cell.matrix_key,
            "pack_ref": self.cell.pack_ref,
            "agent_ref": self.cell.agent_ref,
            "agent_label": self.cell.agent_label,
            "model_ref": self.cell.model_ref,
            "repeat": self.cell.repeat,
            "seed": self.cell.seed,
        }


@dataclass(frozen=True, slots=True)
class SetDocument:
    """What `evalset.json` says."""

    set_id: str
    name: str
    created_at: str
    """UTC, ISO 8601 with `Z`."""
    manifest: Mapping[str, Any]
    """As it was read, JSON; secrets never stand in a manifest."""
    manifest_file: str | None
    """Where it was read from; None where it came from elsewhere."""
    packs: tuple[PinnedPack, ...]
    agents: tuple[PinnedAgent, ...]
    cells: tuple[SetCell, ...]
    around: Surroundings = NOTHING_AROUND
    """Where settings came from beside the manifest: `resume` takes the same."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of `evalset.json`."""
        return {
            "schema": SET_SCHEMA,
            "set_id": self.set_id,
            "name": self.name,
            "created_at": self.created_at,
            "manifest": dict(self.manifest),
            "manifest_file": self.manifest_file,
            "settings": self.around.as_json(),
            "packs": [pack.as_json() for pack in self.packs],
            "agents": [agent.as_json() for agent in self.agents],
            "cells": [cell.as_json() for cell in self.cells],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SetDocument:
        """Read what `as_json` gave.

        Raises:
            KeyError, TypeError, ValueError: it is not that.
        """
        packs = tuple(_pack(PinnedPack(**pack)) for pack in data["packs"])
        agents = tuple(_agent(PinnedAgent(**agent)) for agent in data["agents"])
        pack_of = {pack.ref: pack for pack in packs}
        agent_of = {(agent.ref, agent.label): agent for agent in agents}
        cells: list[SetCell] = []
        folders: set[str] = set()
        for each in data["cells"]:
            fields = dict(each)
            folder = fields.pop("folder")
            if not is_path_component(folder) or folder in folders:
                raise ValueError(f"{folder!r} is no folder of one cell alone")
            folders.add(folder)
            cell = _cell(Cell(**fields))
            pack, agent = pack_of[cell.pack_ref], agent_of[cell.agent_ref, cell.agent_label]
            cells.append(SetCell(cell.index, folder, cell, pack, agent))
        return cls(
            set_id=str(data["set_id"]),
            name=str(data["name"]),
            created_at=str(data["created_at"]),
            manifest=mapping(data["manifest"]),
            manifest_file=optional_text(data["manifest_file"]),
            packs=packs,
            agents=agents,
            cells=tuple(cells),
            around=Surroundings.from_json(data["settings"]),
        )


# The document may have been edited by hand: what is no text would fail where it is read, not here.


def _pack(pack: PinnedPack) -> PinnedPack:
    for word in (pack.ref, pack.slug, pack.digest, pack.uuid, pack.path):
        text(word)
    count(pack.version, 1)
    return pack


def _agent(agent: PinnedAgent) -> PinnedAgent:
    for word in (agent.ref, agent.name, agent.uuid, agent.digest):
        text(word)
    optional_text(agent.label)
    return agent


def _cell(cell: Cell) -> Cell:
    for word in (cell.matrix_key, cell.pack_ref, cell.agent_ref):
        text(word)
    optional_text(cell.agent_label)
    optional_text(cell.model_ref)
    count(cell.index)
    count(cell.repeat, 1)
    count(cell.seed)
    return cell
