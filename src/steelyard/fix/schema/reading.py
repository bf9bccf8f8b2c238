"""Hold a document of a fix run against its schema, then against rules over several fields.

Pure but for reading the file that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.source import FieldPath, Node, path_text, plain, read_file
from steelyard.config.validation import conform, in_order, written_at

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule over several fields that a document breaks, and the field that would mend it."""

    field: FieldPath
    message: str
    remedy: str

    def problem(self, root: Node | None = None) -> Problem:
        """Give it the place in the document it was read from, else the field's name alone."""
        if root is None:
            return Problem(self.message, Where(field=path_text(self.field)), self.remedy)
        where = written_at(root.nearest(self.field), self.field)
        place = Where(where.file, where.line, where.column, path_text(self.field) or None)
        return Problem(self.message, place, self.remedy)


class InvalidFixFile(BadInput):
    """Everything that is wrong with a spec, profile, review or control, at once."""


def read_document(path: Path, *, layer: str, shown: str | None = None) -> Node:
    """Read a JSON or YAML file by its suffix.

    Raises:
        BadInput: it is not there, too large or not well formed.
    """
    return read_file(path, layer=layer, shown=shown)


def checked_document(
    root: Node,
    model: type[ModelT],
    rules: Callable[[ModelT], Sequence[Breach]],
    *,
    called: str,
) -> ModelT:
    """Hold a document against its schema and, where it fits, against the rules over fields.

    Args:
        root: the document.
        model: its schema.
        rules: gives what a well-formed document breaks.
        called: what messages call the document: `the spec`.

    Raises:
        InvalidFixFile: everything that is wrong, in the order of places.
    """
    if not isinstance(root.value, dict):
        problem = Problem(
            f"{called} must be a mapping",
            root.origin.where,
            f"write its fields: {', '.join(model.model_fields)}",
        )
        raise InvalidFixFile.of([problem])
    problems: list[Problem] = []
    conform(root, model, problems)
    if not problems:
        found = model.model_validate(plain(root), strict=True)
        problems = [breach.problem(root) for breach in rules(found)]
        if not problems:
            return found
    raise InvalidFixFile.of(in_order(problems))


def conditions(
    field: str, table: Mapping[str, tuple[frozenset[str], frozenset[str]]], free: frozenset[str]
) -> Callable[[dict[str, Any]], None]:
    """Write into a JSON Schema which fields go with which value of one field.

    Args:
        field: the one that decides.
        table: by its value: the fields that are needed, those that may be there besides.
        free: fields that go with every value.
    """

    def extend(schema: dict[str, Any]) -> None:
        names = set(schema["properties"]) - free - {field}
        schema["allOf"] = [
            {
                "if": {"properties": {field: {"const": value}}, "required": [field]},
                "then": {
                    "required": sorted(needed),
                    "properties": dict.fromkeys(sorted(names - needed - allowed), False),
                },
            }
            for value, (needed, allowed) in table.items()
        ]

    return extend
