"""Read YAML and JSON into plain values that remember where they were written.

YAML is 1.2, safe: no tags but the core ones, duplicate keys refused, aliases bounded.
`config/json_source.py` reads JSON into the same nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.config.errors import BadInput, Problem, Where

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_ALIASED: Final = 20_000
"""Values that the aliases of a document may add to it; a bomb multiplies them."""
MAX_DEPTH: Final = 100

FieldPath = tuple[str | int, ...]
"""The keys and indices that lead to a value."""


class Unreadable(BadInput):
    """A file that is not there, is not text, or may not be read."""


class Malformed(BadInput):
    """Text that is not well-formed YAML or JSON."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from."""

    layer: str
    """The layer's name, as `config show` prints it."""
    where: Where
    """The place of the value; its `field` is the path as written there."""
    key: tuple[int, int] | None = None
    """Line and column of the value's key; None for items of lists and whole documents."""
    variable: str | None = None
    """The environment variable that gave the value."""
    is_text: bool = False
    """True for text that is to be parsed as the field's type: variables and options."""

    @property
    def key_where(self) -> Where:
        """The place of the value's key, else of the value."""
        if self.key is None:
            return self.where
        return Where(self.where.file, *self.key, self.where.field)


@dataclass(frozen=True, slots=True)
class Node:
    """A value that remembers its origin; mappings and lists hold further nodes."""

    value: Any
    """`dict[str, Node]`, `list[Node]`, or a scalar."""
    origin: Origin

    def at(self, path: FieldPath) -> Node | None:
        """Give the node at a path, None where there is none."""
        node: Node | None = self
        for step in path:
            node = child(node, step) if node is not None else None
        return node

    def nearest(self, path: FieldPath) -> Node:
        """Give the node at a path, or the deepest one on the way to it."""
        node = self
        for step in path:
            below = child(node, step)
            if below is None:
                return node
            node = below
        return node


def child(node: Node, step: str | int) -> Node | None:
    """Give the node one step down, None where there is none."""
    if isinstance(node.value, dict):
        found: Node | None = node.value.get(str(step))
        return found
    if isinstance(node.value, list) and isinstance(step, int) and 0 <= step < len(node.value):
        item: Node = node.value[step]
        return item
    return None


def plain(node: Node) -> Any:
    """Copy a node into plain data, origins left behind."""
    value = node.value
    if isinstance(value, dict):
        return {key: plain(below) for key, below in value.items()}
    if isinstance(value, list):
        return [plain(below) for below in value]
    return value


def walk(node: Node, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Node]]:
    """Iterate over every node below, itself first, each with its path."""
    yield path, node
    if isinstance(node.value, dict):
        for key, below in node.value.items():
            yield from walk(below, (*path, key))
    elif isinstance(node.value, list):
        for index, below in enumerate(node.value):
            yield from walk(below, (*path, index))


def path_text(path: Sequence[str | int]) -> str:
    """Write a path as people do: `requests[0].model.id`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[^\s.\[\]\"]+", step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def read_file(path: Path, *, layer: str = "file", shown: str | None = None) -> Node:
    """Read a YAML or JSON file (by its suffix).

    Args:
        path: the file.
        layer: the name that values remember.
        shown: how messages name the file; the path as given by default.

    Raises:
        Unreadable: it cannot be opened, is too large, or is not UTF-8.
        Malformed: it is not well formed; every duplicate key is listed.
    """
    name = shown or str(path)
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise Unreadable(
                f"larger than {MAX_BYTES // 2**20} MiB", where=Where(name), remedy="split it"
            )
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise Unreadable(
            "there is no such file", where=Where(name), remedy="check the path"
        ) from error
    except IsADirectoryError as error:
        raise Unreadable(
            "this is a folder, not a file", where=Where(name), remedy="name a YAML or JSON file"
        ) from error
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}", where=Where(name)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(
            "not UTF-8 text", where=Where(name, line), remedy="save it as UTF-8"
        ) from error
    if path.suffix.lower() == ".json":
        from steelyard.config.json_source import read_json

        return read_json(text, name, layer=layer)
    return read_yaml(text, name, layer=layer)


def read_yaml(text: str, file: str, *, layer: str = "file") -> Node:
    """Read one YAML 1.2 document; an empty one is None.

    Raises:
        Malformed: it is not well formed; every duplicate key is listed.
    """
    # Imported here: most commands read no YAML.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    from steelyard.config.yaml_scanner import BoundedScanner, TooManyOpen

    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = BoundedScanner
    yaml.version = "1.2"
    try:
        root = yaml.compose(text)
    except MarkedYAMLError as error:
        from steelyard.config.yaml_faults import fault_of

        message, where, remedy = fault_of(error, text, file)
        raise Malformed(message, where=where, remedy=remedy) from error
    except (RecursionError, TooManyOpen) as error:
        raise _too_deep(file) from error
    except (YAMLError, ValueError) as error:
        said = " ".join(str(error).split())
        raise Malformed(f"not well-formed YAML: {said}", where=Where(file)) from error
    if root is None:
        return Node(None, Origin(layer, Where(file, 1, 1)))
    return _Reader(file, layer).read(root)


def _too_deep(file: str) -> Malformed:
    return Malformed(
        f"nested more than {MAX_DEPTH} levels deep", where=Where(file), remedy="flatten it"
    )


_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_BOOLS: Final = _TRUE | {"false", "False", "FALSE"}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_CORE: Final = "tag:yaml.org,2002:"


def core_scalar(text: str) -> Any:
    """Read a plain scalar by the YAML 1.2 core schema; what is nothing else is text."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text) if len(text) < 1000 else text
    if text.startswith("0x") and re.fullmatch(r"0x[0-9a-fA-F]{1,64}", text):
        return int(text, 16)
    if text.startswith("0o") and re.fullmatch(r"0o[0-7]{1,64}", text):
        return int(text, 8)
    if _FLOAT.fullmatch(text):
        return float(text)
    if found := _INFINITY.fullmatch(text):
        return float(f"{found[1]}inf")
    if text in (".nan", ".NaN", ".NAN"):
        return float("nan")
    return text


class _Reader:
    """Turns composed YAML nodes into ours, gathering problems."""

    def __init__(self, file: str, layer: str) -> None:
        self._file = file
        self._layer = layer
        self._problems: list[Problem] = []
        self._aliased = 0
        self._seen: set[int] = set()
        self._open: set[int] = set()

    def read(self, root: Any) -> Node:
        node = self._node(root, (), None)
        if self._problems:
            raise Malformed.of(self._problems)
        return node

    def _where(self, mark: Any, path: FieldPath) -> Where:
        return Where(self._file, mark.line + 1, mark.column + 1, path_text(path) or None)

    def _node(self, found: Any, path: FieldPath, key: tuple[int, int] | None) -> Node:
        where = self._where(found.start_mark, path)
        self._aliased += id(found) in self._seen
        self._seen.add(id(found))
        if self._aliased > MAX_ALIASED:
            raise Malformed(
                f"aliases add more than {MAX_ALIASED} values",
                where=where,
                remedy="write the values out, or share fewer",
            )
        if len(path) > MAX_DEPTH:
            raise _too_deep(self._file)
        if id(found) in self._open:
            raise Malformed("an alias that contains itself", where=where)
        kind = found.id
        if kind == "scalar" and found.value == "" and found.style is None and key is not None:
            # Nothing is written: YAML's mark is wherever the next token stands.
            where = Where(self._file, *key, where.field)
        origin = Origin(self._layer, where, key)
        if kind == "scalar":
            return Node(self._scalar(found, where), origin)
        self._open.add(id(found))
        value: Any
        if kind == "sequence":
            self._expect_tag(found, "seq", where)
            value = [self._node(item, (*path, i), None) for i, item in enumerate(found.value)]
        else:
            self._expect_tag(found, "map", where)
            value = self._mapping(found, path)
        self._open.discard(id(found))
        return Node(value, origin)

    def _mapping(self, found: Any, path: FieldPath) -> dict[str, Node]:
        value: dict[str, Node] = {}
        places: dict[str, int] = {}
        merged: list[Any] = []
        for key_node, value_node in found.value:
            mark = key_node.start_mark
            if key_node.id != "scalar":
                self._problems.append(Problem("a key must be text", self._where(mark, path)))
                continue
            key = str(key_node.value)
            if key == "<<" and str(key_node.tag).endswith(":merge"):
                many = value_node.id == "sequence"
                merged += value_node.value if many else [value_node]
                continue
            if key in value:
                self._problems.append(duplicate(self._where(mark, (*path, key)), key, places[key]))
                continue
            places[key] = mark.line + 1
            value[key] = self._node(value_node, (*path, key), (mark.line + 1, mark.column + 1))
        for other in merged:
            if other.id != "mapping":
                where = self._where(other.start_mark, path)
                self._problems.append(Problem("`<<` takes mappings only", where))
                continue
            below = self._node(other, path, None).value
            value.update({key: node for key, node in below.items() if key not in value})
        return value

    def _expect_tag(self, found: Any, tag: str, where: Where) -> None:
        if str(found.tag) != _CORE + tag:
            self._problems.append(_foreign_tag(found, where))

    def _scalar(self, found: Any, where: Where) -> Any:
        text = str(found.value)
        tag = str(found.tag)
        if tag == f"{_CORE}str" or tag == "!":
            return text
        name = tag.removeprefix(_CORE)
        if name not in ("int", "float", "bool", "null", "timestamp", "merge", "value"):
            self._problems.append(_foreign_tag(found, where))
            return text
        # The resolver also knows YAML 1.1 forms (1_000, dates): those are text in 1.2.
        return core_scalar(text)


def _foreign_tag(found: Any, where: Where) -> Problem:
    return Problem(
        f"the tag {found.tag} is not allowed", where, remedy="plain values only: remove the tag"
    )


def duplicate(where: Where, key: str, first_line: int) -> Problem:
    """Say that a key is written twice in one mapping."""
    return Problem(
        f"the key {key!r} is written twice (first on line {first_line})",
        where,
        remedy="keep one of them",
    )


def map_scalars(
    node: Node, change: Callable[[FieldPath, Node], Node], path: FieldPath = ()
) -> Node:
    """Copy a tree with `change` applied to every scalar node."""
    value = node.value
    if isinstance(value, dict):
        below = {key: map_scalars(item, change, (*path, key)) for key, item in value.items()}
        return Node(below, node.origin)
    if isinstance(value, list):
        items = [map_scalars(item, change, (*path, i)) for i, item in enumerate(value)]
        return Node(items, node.origin)
    return change(path, node)
