"""Relative paths of components start from the folder of the file that wrote them.

A component's id is looked at in each layer; its parameters once the layers lie over each other,
for which of them are paths is the component's to say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from steelyard.config import layers
from steelyard.config.checks import ComponentIds, component_sections
from steelyard.config.mock_urls import is_mock_url, renamed
from steelyard.config.source import Node


def ids_from(node: Node, folder: Path, base_dir: Path) -> Node:
    """Make the relative paths of component ids in a layer start from `base_dir`.

    Args:
        node: the layer; changed in place.
        folder: where its file lies.
        base_dir: what relative paths of the whole start from.
    """
    if folder == base_dir:
        return node
    for _, section in component_sections(node):
        found = section.value.get("id")
        if (
            found is not None
            and isinstance(found.value, str)
            and found.value.startswith(("./", "../"))
        ):
            path = os.path.normpath(folder / found.value)
            section.value["id"] = Node(path, found.origin)
    return node


def model_from(
    section: Node | None, folders: Mapping[str, Path], *, cwd: Path, base_dir: Path
) -> Node | None:
    """Make the packs' folders that a mock model's address names absolute; arguments as below."""
    address = section.at(("base_url",)) if section is not None else None
    if section is None or address is None or not isinstance(address.value, str):
        return section
    if not is_mock_url(address.value):
        return section
    is_option = address.origin.layer == layers.COMMAND_LINE
    folder = cwd if is_option else folders.get(address.origin.where.file or "", base_dir)

    def absolute(name: str) -> str:
        return os.path.normpath(folder / name) if name.startswith(("./", "../")) else name

    url = Node(renamed(address.value, absolute), address.origin)
    return Node({**section.value, "base_url": url}, section.origin)


def params_from(
    kind: str,
    section: Node | None,
    ids: ComponentIds | None,
    folders: Mapping[str, Path],
    *,
    cwd: Path,
    base_dir: Path,
) -> Node | None:
    """Make the parameters of a merged component that are paths start from where they stand.

    Args:
        kind: what the component is.
        section: its fields, each with the place where it was written.
        ids: says which parameters are paths; None: nobody knows, and nothing is changed.
        folders: of configuration files, by how messages name them.
        cwd: what paths of the command line start from.
        base_dir: what relative paths of the whole start from.
    """
    if ids is None or section is None or not isinstance(section.value, dict):
        return section

    def folder_of(node: Node) -> Path:
        if node.origin.layer == layers.COMMAND_LINE:
            return cwd
        return folders.get(node.origin.where.file or "", base_dir)

    named = section.value.get("id")
    elsewhere = [
        field for field, node in section.value.items()
        if field != "id" and folder_of(node) != base_dir
    ]  # fmt: skip
    if not elsewhere or named is None or not isinstance(named.value, str):
        return section
    paths = ids.path_fields(kind, named.value, base_dir)
    changed = {
        field: _from(section.value[field], folder_of(section.value[field]), paths[field])
        for field in elsewhere
        if field in paths
    }
    return Node({**section.value, **changed}, section.origin)


def _from(node: Node, folder: Path, is_path: Callable[[str], bool]) -> Node:
    """Make a path, or each of a list, absolute; what has no relative path is left as it is."""
    if isinstance(node.value, list):
        return Node([_from(item, folder, is_path) for item in node.value], node.origin)
    text = node.value
    if not isinstance(text, str) or text.startswith(("/", "~")) or not is_path(text):
        return node
    return Node(os.path.normpath(folder / text), node.origin)
