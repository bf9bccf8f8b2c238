"""Replace secret values in a tree of settings by references, and keep the values apart."""

from __future__ import annotations

from typing import Any, Final

from steelyard.config.errors import Problem
from steelyard.config.secret_names import (
    holds_secrets,
    is_recognisable,
    is_secret_name,
    url_secrets,
)
from steelyard.config.secrets import SecretRef, SecretStore
from steelyard.config.source import FieldPath, Node, path_text

SECTIONS: Final = frozenset({"model", "benchmark", "harness", "environment"})
"""Where people write what components and endpoints get. Beside these only the parameters of
analyzers, in `execution.analysis`, hold secrets."""


def seal(root: Node, store: SecretStore, warnings: list[Problem], *, scope: str = "") -> Node:
    """Copy a document with the secrets of its sections replaced by `SecretRef`.

    Args:
        root: a configuration file, an orchestration or the command line, references expanded.
        store: takes the values.
        warnings: gets the secrets that cannot be told from ordinary text.
        scope: what tells this document's `config:` references from those of others.
    """
    return _Sealer(store, warnings, scope).outside(root, ())


class _Sealer:
    """Walks a document; within a section, names and forms decide."""

    def __init__(self, store: SecretStore, warnings: list[Problem], scope: str) -> None:
        self._store = store
        self._warnings = warnings
        self._scope = scope

    def outside(self, node: Node, path: FieldPath) -> Node:
        value = node.value
        if isinstance(value, list):
            items = [self.outside(item, (*path, i)) for i, item in enumerate(value)]
            return Node(items, node.origin)
        if not isinstance(value, dict):
            return node
        below = {}
        for key, item in value.items():
            if key in SECTIONS and path[-1:] != ("prices",):
                below[key] = self._section(item, (*path, key))
            elif key == "analysis" and path[-1:] == ("execution",):
                below[key] = self._analyzers(item, (*path, key))
            elif key in ("requests", "defaults", "execution") or path[:1] == ("requests",):
                below[key] = self.outside(item, (*path, key))
            else:
                below[key] = item
        return Node(below, node.origin)

    def _analyzers(self, node: Node, path: FieldPath) -> Node:
        if not isinstance(node.value, list):
            return node
        items = [self._section(item, (*path, i)) for i, item in enumerate(node.value)]
        return Node(items, node.origin)

    def _section(self, node: Node, path: FieldPath) -> Node:
        if not isinstance(node.value, dict):
            return node
        below = {
            key: item if key == "id" else self._inside(item, (*path, key), False)
            for key, item in node.value.items()
        }
        return Node(below, node.origin)

    def _inside(self, node: Node, path: FieldPath, is_secret: bool) -> Node:
        name = path[-1]
        if isinstance(name, str):
            is_secret = is_secret or is_secret_name(name) or holds_secrets(name)
        value = node.value
        if isinstance(value, dict):
            below = {k: self._inside(item, (*path, k), is_secret) for k, item in value.items()}
            return Node(below, node.origin)
        if isinstance(value, list):
            items = [self._inside(item, (*path, i), is_secret) for i, item in enumerate(value)]
            return Node(items, node.origin)
        return Node(self._sealed(value, node, path, is_secret), node.origin)

    def _sealed(self, value: Any, node: Node, path: FieldPath, is_secret: bool) -> Any:
        if value is None or isinstance(value, bool | SecretRef):
            return value
        variable = node.origin.variable
        ref = f"env:{variable}" if variable else f"config:{self._scope}{path_text(path)}"
        if is_secret:
            if value != "" and not is_recognisable(str(value)):
                self._warnings.append(
                    Problem(
                        "too short or too common to be redacted wherever it appears",
                        node.origin.where,
                        remedy="it is hidden where it is set; elsewhere its text may show",
                    )
                )
            return self._store.put(ref, str(value), original=value)
        parts = url_secrets(value) if isinstance(value, str) else []
        if not parts:
            return value
        for index, part in enumerate(parts):
            self._store.put_part(f"{ref}#{index}", part)
        return self._store.put(ref, value)
