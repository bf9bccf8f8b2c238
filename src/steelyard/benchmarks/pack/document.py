"""Read `pack.yaml` into its schema, with every problem at once and at its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from steelyard.benchmarks.pack.healing import Healed, healed
from steelyard.benchmarks.pack.judging.static_checks import SECRET_FIELDS, secret_problems
from steelyard.benchmarks.pack.schema import SCHEMA, PackFile
from steelyard.benchmarks.pack.schema_validators import VALIDATOR_MODELS
from steelyard.config.errors import Problem, Where
from steelyard.config.source import FieldPath, Node, path_text, plain
from steelyard.config.validation import nearest, problems_of

_AVAILABLE: Final = ", ".join(VALIDATOR_MODELS)
_VALIDATORS: Final[FieldPath] = ("scoring", "validators")


class Document:
    """A `pack.yaml` with the places of its values."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def where(self, *path: str | int, line: int | None = None) -> Where:
        """Give the place of a value; `line` counts within a text, from 1."""
        node = self.node.nearest(path)
        place = node.origin.where
        field = path_text(path) or None
        if line is None or place.line is None or not _is_block(node, place):
            return Where(place.file, place.line, place.column, field)
        return Where(place.file, place.line + line, 1, field)

    def problem(
        self, message: str, *path: str | int, remedy: str | None = None, line: int | None = None
    ) -> Problem:
        """Make a problem at the place of a value."""
        return Problem(message, self.where(*path, line=line), remedy)


def _is_block(node: Node, place: Where) -> bool:
    return isinstance(node.value, str) and node.value.endswith("\n") and place.line is not None


def parse_pack(document: Document) -> tuple[Healed | None, list[Problem]]:
    """Check a document against the schema.

    Returns:
        What was read, without what is wrong, so that the rest can be looked at; and all that is.
    """
    data = plain(document.node)
    if not isinstance(data, dict):
        return None, [
            document.problem("a pack is a mapping", remedy=f"begin with `schema: {SCHEMA}`")
        ]
    schema = data.get("schema")
    if isinstance(schema, str) and schema.startswith("pack/") and schema != SCHEMA:
        return None, [
            document.problem(
                f"{schema} is not a format this version reads",
                "schema",
                remedy=f"write {SCHEMA}, or install a newer steelyard",
            )
        ]
    problems = _not_in_this_version(document, data) + secret_problems(document, data)
    for number, validator in enumerate(_validators(data)):
        problems += _validator_problems(document, validator, (*_VALIDATORS, number))
    pack = None
    try:
        pack = Healed(PackFile.model_validate(data, strict=True), frozenset())
    except ValidationError as error:
        pack = healed(data)
        details = [
            detail
            for detail in error.errors(include_url=False)
            if not (detail["loc"][:2] == _VALIDATORS and len(detail["loc"]) > 2)
            and detail["loc"] not in SECRET_FIELDS
        ]
        problems += _schema_problems(document, details, PackFile, ())
    return pack, _first_at_each_place(problems)


def _schema_problems(
    document: Document, details: Sequence[Any], model: type[BaseModel], prefix: FieldPath
) -> list[Problem]:
    """Say pydantic's findings at their places."""
    found = problems_of(details, document.node, model, prefix=prefix)
    fields = [problem.where.field or "" for problem in found]
    # A union complains of the whole value and of the part that is wrong: the part says more.
    return [
        problem
        for problem in found
        if not any(
            field.startswith((f"{problem.where.field}.", f"{problem.where.field}["))
            for field in fields
        )
    ]


def _validator_problems(document: Document, validator: Any, path: FieldPath) -> list[Problem]:
    if not isinstance(validator, dict):
        return [document.problem("a validator is a mapping", *path, remedy="{type: exact, …}")]
    kind = validator.get("type")
    if kind is None:
        remedy = f"one of {_AVAILABLE}"
        return [document.problem("a validator needs a type", *path, remedy=remedy)]
    model = VALIDATOR_MODELS.get(kind) if isinstance(kind, str) else None
    if model is None:
        near = nearest(str(kind), list(VALIDATOR_MODELS))
        remedy = f"did you mean {near}?" if near else f"available: {_AVAILABLE}"
        return [document.problem(f"unknown validator type {kind!r}", *path, "type", remedy=remedy)]
    try:
        model.model_validate(validator, strict=True)
    except ValidationError as error:
        return _schema_problems(document, error.errors(include_url=False), model, path)
    return []


def _not_in_this_version(document: Document, data: Mapping[str, Any]) -> list[Problem]:
    """Name what belongs to the format but not to this version."""
    problems = []
    environment, scoring = data.get("environment"), data.get("scoring")
    if isinstance(environment, dict) and "dockerfile" in environment:
        problems.append(
            document.problem(
                "building an image from a dockerfile is not available in this version",
                *("environment", "dockerfile"),
                remedy="build it and name it as `image`",
            )
        )
    if isinstance(scoring, dict) and scoring.get("network") == "open":
        problems.append(
            document.problem(
                "scoring with an open network is not available in this version",
                *("scoring", "network"),
                remedy="leave it out: packs score without network",
            )
        )
    return problems


def _validators(data: Mapping[str, Any]) -> Sequence[Any]:
    scoring = data.get("scoring")
    found = scoring.get("validators") if isinstance(scoring, dict) else None
    return found if isinstance(found, list) else ()


def _first_at_each_place(problems: Sequence[Problem]) -> list[Problem]:
    kept: dict[Where, Problem] = {}
    for problem in problems:
        kept.setdefault(problem.where, problem)
    return list(kept.values())


def shown_path(path: Path) -> str:
    """How messages name a file: relative to the working directory where it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
