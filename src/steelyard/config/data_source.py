"""Read settings given as Python data into nodes that remember where in the data they stand.

What `config/source.py` and `config/json_source.py` do for files: no file here, so a value's place
is its field's path alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from numbers import Integral, Real
from typing import Any, Final

from steelyard.config.errors import Problem, Where
from steelyard.config.source import MAX_DEPTH, FieldPath, Malformed, Node, Origin, path_text

_PLAIN: Final = "plain data only: text, numbers, True, False, None, lists, mappings, paths"


def read_data(data: object, *, layer: str, prefix: FieldPath = (), shown: str = "") -> Node:
    """Read mappings, lists and scalars.

    Paths become text, members of enums their values, `pydantic.SecretStr` what it hides: the
    settings' own sealing hides it from then on.

    Args:
        data: the settings.
        layer: the name that values remember.
        prefix: the path at which the data stands.
        shown: how messages name a place that has no path: the argument that was given.

    Raises:
        Malformed: something in it is no plain data, contains itself, or is nested too deep; each
            with its field's path. The value itself is never quoted: it may be a secret.
    """
    reader = _Reader(layer, shown)
    root = reader.node(data, prefix)
    if reader.problems:
        raise Malformed.of(reader.problems)
    return root


class _Reader:
    def __init__(self, layer: str, shown: str) -> None:
        self.problems: list[Problem] = []
        self._layer = layer
        self._shown = shown
        self._open: set[int] = set()

    def _where(self, path: FieldPath) -> Where:
        return Where(field=path_text(path) or self._shown or None)

    def _wrong(self, path: FieldPath, message: str, remedy: str) -> None:
        self.problems.append(Problem(message, self._where(path), remedy))

    def node(self, data: object, path: FieldPath) -> Node:
        origin = Origin(self._layer, self._where(path))
        if not isinstance(data, Mapping | list | tuple):
            return Node(self._scalar(data, path), origin)
        if id(data) in self._open:
            self._wrong(path, "the data contains itself", "write it out")
            return Node(None, origin)
        if len(path) > MAX_DEPTH:
            self._wrong(path, f"nested more than {MAX_DEPTH} levels deep", "flatten it")
            return Node(None, origin)
        self._open.add(id(data))
        value: Any
        if isinstance(data, Mapping):
            value = self._mapping(data, path)
        else:
            value = [self.node(item, (*path, index)) for index, item in enumerate(data)]
        self._open.discard(id(data))
        return Node(value, origin)

    def _mapping(self, data: Mapping[Any, object], path: FieldPath) -> dict[str, Node]:
        value: dict[str, Node] = {}
        for key, item in data.items():
            name = key.value if isinstance(key, Enum) else key
            if not isinstance(name, str):
                self._wrong(
                    path, f"a key must be text, not of type {type(key).__name__}", "write text"
                )
                continue
            value[name] = self.node(item, (*path, name))
        return value

    def _scalar(self, data: object, path: FieldPath) -> Any:
        data = data.value if isinstance(data, Enum) else data
        if data is None or isinstance(data, bool):
            return data
        if isinstance(data, str):
            return str(data)
        if isinstance(data, Integral):
            return int(data)
        if isinstance(data, Real):
            return float(data)
        if isinstance(data, os.PathLike):
            return os.fsdecode(data)
        reveal = getattr(data, "get_secret_value", None)
        if callable(reveal):
            return str(reveal())
        self._wrong(path, f"a value of type {type(data).__name__} is no setting", _PLAIN)
        return None
