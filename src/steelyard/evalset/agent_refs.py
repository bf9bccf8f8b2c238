"""Agent refs: a deployment of the project, by its UUID or its exact name.

Pure: nothing is looked up outside of what the configuration says.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

from steelyard.components.id_forms import is_file_class, is_path
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.mock_urls import is_mock_url, renamed
from steelyard.config.names import UUID_FORM
from steelyard.config.project_parts import without_values
from steelyard.config.source import Node
from steelyard.evalset.own_packs import OwnPacks

NAMESPACE: Final = UUID("9d5b1c7e-6f0a-5c53-9a1e-2f8d3b6c4e70")
"""Of the UUIDs that are derived here: never changed, or every ref by UUID breaks."""
PARTS: Final = ("harness", "model", "environment")
_ASKED_OF_MODELS: Final = ("id", "api_protocol", "params")
_NEAR: Final = 3


@dataclass(frozen=True, slots=True)
class Deployment:
    """An agent of the project, its references and secrets as written."""

    name: str
    uuid: str
    """As written, in lower case; else derived from the name."""
    parts: Mapping[str, Node]
    """Those of `harness`, `model` and `environment` that it has; their paths are absolute."""
    node: Node
    """All of it, as written."""

    @property
    def digest(self) -> str:
        """Give the digest of what it makes an agent do, as written, no secret's value in it: hex.

        How its model is reached (address, key, limits) is not part of it.
        """
        said = {
            part: without_values(Node({part: _asked(part, below)}, self.node.origin))
            for part, below in self.node.value.items()
            if part in PARTS
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    @property
    def where(self) -> Where:
        """Its place in the project's file."""
        return self.node.origin.where


def deployment_of(node: Node, folder: Path, packs: OwnPacks | None = None) -> Deployment:
    """Make a deployment of what a configuration file says; it has been held against the schema.

    Args:
        node: the item of `deployments`.
        folder: what relative paths in it start from.
        packs: the project's, which a mock model's address may name by slug.
    """
    name = str(node.value["name"].value)
    written = node.value.get("id")
    parts = {part: node.value[part] for part in PARTS if part in node.value}
    return Deployment(
        name=name,
        uuid=str(written.value).lower()
        if written is not None and written.value is not None
        else derived_uuid("deployment", name),
        parts={part: _rebased(below, folder, packs) for part, below in parts.items()},
        node=node,
    )


def _asked(part: str, node: Node) -> Node:
    """Leave out of a model how it is reached: the same is asked of it wherever it is."""
    if part != "model" or not isinstance(node.value, dict):
        return node
    kept = {name: below for name, below in node.value.items() if name in _ASKED_OF_MODELS}
    return Node(kept, node.origin)


def derived_uuid(*parts: str) -> str:
    """Derive a UUID from texts: the same on every machine."""
    return str(uuid5(NAMESPACE, "\0".join(parts)))


def is_uuid(ref: str) -> bool:
    """True where a ref has the form of a UUID."""
    return re.fullmatch(UUID_FORM, ref) is not None


def near_names(ref: str, names: Iterable[str]) -> list[str]:
    """Give the names that a misspelt one is closest to, the closest first."""
    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(ref.strip().lower(), list(by_lower), n=_NEAR)
    return [by_lower[name] for name in found]


class Agents:
    """The deployments of a project, found by name and UUID without looking at the others."""

    def __init__(self, deployments: Iterable[Deployment]) -> None:
        self.all: Sequence[Deployment] = tuple(deployments)
        self._by_ref: dict[str, list[Deployment]] = {}
        for one in self.all:
            for ref in dict.fromkeys((one.name, one.uuid)):
                self._by_ref.setdefault(ref, []).append(one)

    def find(self, ref: str) -> Sequence[Deployment]:
        """List the deployments that a ref names: one, where it is right."""
        found = self._by_ref.get(ref)
        if found is None and is_uuid(ref):
            found = self._by_ref.get(ref.lower())
        return found or ()


def resolve_agent(
    ref: str, agents: Agents, *, where: Where | None = None, offers_names: bool = True
) -> Deployment:
    """Give the deployment that a ref names.

    Args:
        ref: a UUID or an exact name.
        agents: those of the project.
        where: the ref's place, for errors.
        offers_names: whether the error looks for near names; that takes milliseconds where
            there are thousands.

    Raises:
        BadInput: there is none, or there are several.
    """
    found = agents.find(ref)
    if len(found) == 1:
        return found[0]
    raise BadInput.of([_problem(ref, found, agents, where or Where(), offers_names)])


def _problem(
    ref: str, found: Sequence[Deployment], agents: Agents, where: Where, offers_names: bool
) -> Problem:
    if found:
        listed = "; ".join(f"{one.name!r} (id {one.uuid}) at {_place(one)}" for one in found)
        return Problem(
            f"the deployment {ref!r} is named by {len(found)}: {listed}",
            where,
            remedy="give each deployment a name and an id of its own",
        )
    if not agents.all:
        remedy = "write it under `deployments:` of steelyard.yaml, with a name and a harness"
        return Problem(f"no deployment {ref!r}: the project has none", where, remedy)
    near = near_names(ref, (one.name for one in agents.all)) if offers_names else []
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return Problem(
        f"the project has no deployment {ref!r}",
        where,
        remedy=f"{hint}`steelyard deployment list` shows its {len(agents.all)}",
    )


def _place(one: Deployment) -> str:
    where = one.where
    return ":".join(str(part) for part in (where.file, where.line, where.column) if part)


def _rebased(part: Node, folder: Path, packs: OwnPacks | None) -> Node:
    """Make a component's path absolute: the set may be run from anywhere."""
    address = part.value.get("base_url") if isinstance(part.value, dict) else None
    if address is not None and isinstance(address.value, str) and is_mock_url(address.value):
        url = renamed(address.value, lambda name: _pack_folder(name, packs))
        return Node({**part.value, "base_url": Node(url, address.origin)}, part.origin)
    found = part.value.get("id") if isinstance(part.value, dict) else None
    if found is None or not isinstance(found.value, str):
        return part
    text = found.value
    if not (is_path(text) or is_file_class(text)) or text.startswith("/"):
        return part
    path = Node(str(folder.absolute() / text), found.origin)
    return Node({**part.value, "id": path}, part.origin)


def _pack_folder(name: str, packs: OwnPacks | None) -> str:
    """Give the folder of a pack of the project's, any other name as it is."""
    slug, _, version = name.partition("@")
    heads = packs.by_slug.get(slug, ()) if packs is not None else ()
    fits = [
        head
        for head in heads
        if (version.removeprefix("v") == str(head.version) if version else not head.is_kept)
    ]
    return str(fits[0].path) if len(fits) == 1 else name
