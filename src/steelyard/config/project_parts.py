"""What configuration files say for eval sets: `packs`, `deployments` and `judge`.

Deployments and the judge are held against the schema at once; their `${NAME}` are looked up where
one is used: a key that is unset is no fault of a run that does not need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.config import checks
from steelyard.config.checks import ComponentIds
from steelyard.config.envrefs import expand, referred_name
from steelyard.config.errors import Problem
from steelyard.config.layers import merged
from steelyard.config.schema.written import ConfigFile
from steelyard.config.sealing import seal
from steelyard.config.secrets import SecretRef, SecretStore
from steelyard.config.source import FieldPath, Node, map_scalars
from steelyard.config.validation import conform

PARTS: Final = ("packs", "deployments", "judge")


@dataclass(frozen=True, slots=True)
class ProjectParts:
    """What one configuration file says for eval sets, references and secrets as written."""

    root: Node
    """A mapping that holds no field but those of `PARTS`."""
    folder: Path
    """What relative paths start from."""
    scope: str
    """What tells its secrets' references from those of other files."""

    def items(self, field: str) -> list[Node]:
        """List the items of `packs` or of `deployments`."""
        found = self.root.value.get(field)
        return found.value if found is not None and isinstance(found.value, list) else []


def taken_out(root: Node, folder: Path, scope: str) -> tuple[Node, ProjectParts]:
    """Split a configuration file into what every command reads, and what eval sets read."""
    rest = {key: node for key, node in root.value.items() if key not in PARTS}
    parts = {key: node for key, node in root.value.items() if key in PARTS}
    return Node(rest, root.origin), ProjectParts(Node(parts, root.origin), folder, scope)


def check_shape(parts: ProjectParts, problems: list[Problem]) -> None:
    """Hold the parts of a file against the schema; fields that are references pass."""
    if not parts.root.value:
        return
    for pack in parts.items("packs"):
        _not_a_reference(pack, "a pack's folder", problems)
    for node in parts.items("deployments"):
        if not isinstance(node.value, dict):
            continue
        for field in ("name", "id"):
            found = node.value.get(field)
            if found is not None:
                _not_a_reference(found, f"a deployment's {field}", problems)
        checks.misplaced(node, "deployment", problems)
        checks.components(node, None, problems, parts.folder)
    judge = parts.root.value.get("judge")
    if judge is not None:
        checks.misplaced(judge, "judge", problems)
    store = SecretStore({})
    without = _without_references(parts.root)
    conform(_sealed(without, store, ""), ConfigFile, problems)


def check_ids(parts: ProjectParts, ids: ComponentIds | None, problems: list[Problem]) -> None:
    """Find ids of harnesses and environments that lead nowhere."""
    for node in parts.items("deployments"):
        if isinstance(node.value, dict):
            for kind in ("harness", "environment"):
                found = node.at((kind, "id"))
                if ids is None or found is None or not isinstance(found.value, str):
                    continue
                if "${" not in found.value:
                    where = found.origin.where
                    checks.unknown_id(kind, found.value, where, ids, problems, parts.folder)


def shown(
    layers: Sequence[ProjectParts], environ: Mapping[str, str], store: SecretStore
) -> dict[str, Node]:
    """Give the parts of all files for people to see: secrets sealed, unset variables by name.

    Files add to the packs and deployments of those below; a deployment takes the place of one of
    the same name in a lower file, and of the judge the higher file's fields hold.
    """
    ready = [
        ProjectParts(_sealed(_expanded(one.root, environ), store, one.scope), one.folder, one.scope)
        for one in layers
    ]
    found: dict[str, Node] = {}
    for field, items in (
        ("packs", [item for one in ready for item in one.items("packs")]),
        ("deployments", [node for _, node in deployments(ready)]),
    ):
        if items:
            holder = next(n for one in reversed(ready) if (n := one.root.value.get(field)))
            found[field] = Node(items, holder.origin)
    if (judge := merged(one.root.value.get("judge") for one in ready)) is not None:
        found["judge"] = judge
    return found


def deployments(layers: Sequence[ProjectParts]) -> Iterator[tuple[ProjectParts, Node]]:
    """Iterate over the deployments that hold, each with its file."""
    taken: set[str] = set()
    kept: list[tuple[ProjectParts, Node]] = []
    for one in reversed(layers):
        names = [_name(node) for node in one.items("deployments")]
        own = [
            (one, node)
            for node, name in zip(one.items("deployments"), names, strict=True)
            if name not in taken
        ]
        kept[:0] = own
        taken.update(name for name in names if name is not None)
    yield from kept


def unset_variables(node: Node, environ: Mapping[str, str]) -> list[Problem]:
    """Say what keeps a tree from being expanded: unset variables, references inside text."""
    problems: list[Problem] = []
    expand(node, environ, problems, [])
    return problems


def without_values(node: Node) -> Any:
    """Copy a deployment or judge into plain data: no variable read, the values of secrets gone."""
    return _plain(_sealed(_expanded(node, {}), SecretStore({}), ""))


def _plain(node: Node) -> Any:
    value = node.value
    if isinstance(value, dict):
        return {key: _plain(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_plain(below) for below in value]
    return value.as_json() if isinstance(value, SecretRef) else value


def _name(node: Node) -> str | None:
    found = node.at(("name",))
    return found.value if found is not None and isinstance(found.value, str) else None


def _not_a_reference(node: Node, what: str, problems: list[Problem]) -> None:
    if isinstance(node.value, str) and "${" in node.value:
        problems.append(
            Problem(f"{what} cannot be a reference", node.origin.where, remedy="write it out")
        )


def _without_references(node: Node) -> Node:
    """Copy a tree without the fields whose value is not known yet."""
    value = node.value
    if isinstance(value, dict):
        below = {k: _without_references(n) for k, n in value.items() if not _refers(n)}
        for field in ("name", "id"):  # said to be no references already, and not to be missing
            if field in value and field not in below:
                stand_in = "00000000-0000-0000-0000-000000000000"
                below[field] = Node(stand_in, value[field].origin)
        return Node(below, node.origin)
    if isinstance(value, list):
        return Node([_without_references(n) for n in value if not _refers(n)], node.origin)
    return node


def _refers(node: Node) -> bool:
    return isinstance(node.value, str) and "${" in node.value.replace("$${", "")


def _expanded(node: Node, environ: Mapping[str, str]) -> Node:
    """Expand what is set; what is not stands as a reference to the variable."""

    def change(_path: FieldPath, leaf: Node) -> Node:
        name = referred_name(leaf.value)
        if name is not None and name not in environ:
            return Node(SecretRef(f"env:{name}"), leaf.origin)
        return leaf

    return expand(map_scalars(node, change), environ, [], [])


def _sealed(node: Node, store: SecretStore, scope: str) -> Node:
    """Seal a mapping of parts, or one deployment; what cannot be redacted is said where used."""
    value = node.value
    if not isinstance(value, dict) or not ({"deployments", "judge"} & value.keys()):
        return seal(node, store, [], scope=scope)
    below = dict(value)
    if (judge := below.get("judge")) is not None:
        below["judge"] = seal(judge, store, [], scope=f"{scope}judge.")
    if (found := below.get("deployments")) is not None and isinstance(found.value, list):
        items = [
            seal(item, store, [], scope=f"{scope}deployments[{index}].")
            for index, item in enumerate(found.value)
        ]
        below["deployments"] = Node(items, found.origin)
    return Node(below, node.origin)
