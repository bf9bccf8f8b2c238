"""Leave out of wrong settings what is wrong, so that the rest of them can still be judged.

What comes of it is planned for the sake of its problems; it never runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError

from steelyard.config.errors import Problem, Where
from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.source import FieldPath, Node, plain
from steelyard.config.validation import conform, located

_MAX_ROUNDS: Final = 20
"""Each round leaves something out; a tree needs two or three."""

_SECTIONS: Final = ("benchmark", "harness", "model", "environment")
_STAND_IN: Final = "unknown"
"""Makes a request complete; nothing is made of it and no message shows it."""

Key = tuple[str | None, str | None]


def key_of(where: Where) -> Key:
    """What tells one written field from another: its file and its path, or its option."""
    return where.file, where.field


def healed(
    root: Node, problems: Iterable[Problem]
) -> tuple[Orchestration, frozenset[FieldPath]] | None:
    """Give what is left of an orchestration without the fields that problems speak of.

    Args:
        root: the merged orchestration; it stays as it is.
        problems: what was found in it.

    Returns:
        The orchestration and the paths that were left out or filled in; None where too little
        is left of it.
    """
    gone: set[FieldPath] = set()
    requests = root.at(("requests",))
    if requests is None or not isinstance(requests.value, list):
        return None
    wrong = {key_of(problem.where) for problem in problems}
    tree = _without(root, wrong, (), gone)
    if tree is None or tree.at(("requests",)) is None:
        return None
    for _ in range(_MAX_ROUNDS):
        _fill_in(tree, gone)
        conform(tree, Orchestration, [])
        try:
            return Orchestration.model_validate(plain(tree), strict=True), frozenset(gone)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                # Where something is missing, what lacks it is at fault.
                path, _ = located(tree, detail["loc"])
                _leave_out(tree, path, gone)
    return None


def _without(node: Node, wrong: set[Key], path: FieldPath, gone: set[FieldPath]) -> Node | None:
    """Copy a tree without the nodes at fault, the deepest of those that share a place."""
    before = len(gone)
    value: Any = node.value
    if isinstance(value, dict):
        below = {key: _without(item, wrong, (*path, key), gone) for key, item in value.items()}
        value = {key: item for key, item in below.items() if item is not None}
    elif isinstance(value, list):
        items = [_without(item, wrong, (*path, i), gone) for i, item in enumerate(value)]
        if None in items:
            # As a whole: without one of its items a list would say something else.
            gone.add(path)
            return None
        value = items
    # Options give the mappings that hold their value the same place.
    is_wrong = key_of(node.origin.where) in wrong and len(gone) == before
    if is_wrong and not _is_frame(path):
        gone.add(path)
        return None
    return Node(value, node.origin)


def _is_frame(path: FieldPath) -> bool:
    """True for what is never left out, for indices must keep their meaning."""
    return not path or (path[0] == "requests" and len(path) <= 2)


def _fill_in(tree: Node, gone: set[FieldPath]) -> None:
    for index, request in enumerate(tree.value["requests"].value):
        origin = request.origin
        if "name" not in request.value:
            # Told apart by their numbers: nothing is said of them, and no two may clash.
            request.value["name"] = Node(f"{_STAND_IN}-{index}", origin)
            gone.add(("requests", index, "name"))
        for kind in _SECTIONS:
            path = ("requests", index, kind)
            if kind not in request.value:
                if kind == "environment" and path not in gone:
                    continue
                request.value[kind] = Node({}, origin)
            section = request.value[kind]
            if isinstance(section.value, dict) and "id" not in section.value:
                section.value["id"] = Node(_STAND_IN, origin)
                gone.add((*path, "id"))


def _leave_out(tree: Node, path: FieldPath, gone: set[FieldPath]) -> None:
    while not _is_frame(path) and isinstance(path[-1], int):
        path = path[:-1]
    holder = tree.at(path[:-1])
    if not _is_frame(path) and holder is not None and isinstance(holder.value, dict):
        holder.value.pop(str(path[-1]), None)
        gone.add(path)
