"""Hold a document against its schema, and say every fault so that people can mend it.

Each problem has the place, the field's path, what was found, what is allowed and the nearest
valid name.
"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from steelyard.config.errors import Problem, Where
from steelyard.config.layers import COMMAND_LINE
from steelyard.config.names import UUID_FORM
from steelyard.config.sealing import SECTIONS
from steelyard.config.secrets import SecretRef
from steelyard.config.source import FieldPath, Node, child, core_scalar, path_text, plain

_MAX_SHOWN: Final = 60
_WORDS: Final[Mapping[str, str]] = {
    "benchmark": "benchmark",
    "harness": "harness",
    "environment": "env",
}
"""What a component's section is called by the option `-P`."""

_EXPECTED: Final[Mapping[str, str]] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "is_instance_of": "text",
    "none_required": "nothing",
}
"""What a field wants, by pydantic's code of the error; other codes carry bounds or choices."""

_TEXT_MISMATCH: Final = frozenset(
    {"int_type", "float_type", "bool_type", "list_type", "dict_type", "model_type"}
)


_OWN: Final = frozenset({"value_error", "assertion_error"})
"""What a schema's own check raised: its words are for people already."""


class FieldFault(ValueError):
    """What a schema's own check finds wrong, and with which field below the one it looks at."""

    def __init__(self, message: str, *field: str | int, remedy: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.remedy = remedy


def conform(root: Node, model: type[BaseModel], problems: list[Problem]) -> Node:
    """Hold a document against a schema; values that are text are parsed as the field's type.

    Args:
        root: the document, references expanded and secrets sealed. Text of variables and
            options is replaced in place.
        model: the schema.
        problems: gets everything that is wrong.
    """
    _read_open_text(root, ())
    while True:
        try:
            model.model_validate(plain(root), strict=True)
        except ValidationError as error:
            details = error.errors(include_url=False)
            if not _parse_text(root, details):
                problems += problems_of(details, root, model)
                return root
        else:
            return root


def _read_open_text(node: Node, path: FieldPath) -> None:
    """Parse the text of variables below `model.params`, which go to the wire as they are."""
    if isinstance(node.value, dict):
        for key, below in node.value.items():
            inside = path[-2:] == ("model", "params") or path[-1:] == ("*",)
            here = (*path, "*") if inside else (*path, key)
            if inside and below.origin.variable and isinstance(below.value, str):
                node.value[key] = Node(_number_or_text(below.value), below.origin)
            else:
                _read_open_text(below, here)
    elif isinstance(node.value, list):
        for index, below in enumerate(node.value):
            inside = path[-1:] == ("*",)
            if inside and below.origin.variable and isinstance(below.value, str):
                node.value[index] = Node(_number_or_text(below.value), below.origin)
            else:
                _read_open_text(below, path if inside else (*path, index))


def _number_or_text(text: str) -> Any:
    return text if text == "" else core_scalar(text)


def _parse_text(root: Node, details: Sequence[ErrorDetails]) -> bool:
    """Parse text where another type is wanted; True where anything was replaced."""
    replaced = False
    for detail in details:
        path, _ = located(root, detail["loc"])
        node = root.at(path)
        if node is None or not path or not node.origin.is_text or not isinstance(node.value, str):
            continue
        if detail["type"] not in (*_TEXT_MISMATCH, "literal_error"):
            continue
        value = core_scalar(node.value.strip())
        if isinstance(value, str | type(None)):
            continue
        parent = root.at(path[:-1])
        if parent is not None:
            parent.value[path[-1]] = Node(value, node.origin)
            replaced = True
    return replaced


def problems_of(
    details: Iterable[ErrorDetails],
    root: Node,
    model: type[BaseModel],
    *,
    prefix: FieldPath = (),
) -> list[Problem]:
    """Say a `ValidationError`'s details as problems with places, one for each place.

    Args:
        details: `error.errors()`.
        root: the tree that was validated, or one that holds it.
        model: the schema it was held against.
        prefix: where in `root` the validated value stands.
    """
    grouped: dict[FieldPath, list[ErrorDetails]] = {}
    for detail in details:
        path, rest = located(root, (*prefix, *detail["loc"], *_field_of(detail)))
        missing = detail["type"] in ("missing", "extra_forbidden")
        grouped.setdefault((*path, *rest[-1:]) if missing and rest else path, []).append(detail)
    # A union reports every member: where one got as far as a field inside, the others are noise.
    shallow = {path[:end] for path in grouped for end in range(len(path))}
    problems: list[Problem] = []
    for path, group in grouped.items():
        own = [detail for detail in group if detail["type"] in _OWN]
        if own:
            problems += dict.fromkeys(_own_words(path, detail, root) for detail in own)
        elif path not in shallow or any(detail["type"] == "missing" for detail in group):
            problems.append(_problem(path, group, root, model, prefix))
    return problems


def _field_of(detail: ErrorDetails) -> FieldPath:
    error = detail.get("ctx", {}).get("error")
    return error.field if isinstance(error, FieldFault) else ()


def _own_words(path: FieldPath, detail: ErrorDetails, root: Node) -> Problem:
    error = detail.get("ctx", {}).get("error")
    remedy = error.remedy if isinstance(error, FieldFault) else None
    said = str(error) or f"not what {path_text(path) or 'this'} may be"
    return Problem(said, written_at(root.nearest(path), path), remedy)


def located(root: Node, loc: Sequence[str | int]) -> tuple[FieldPath, FieldPath]:
    """Split a pydantic location into a path that exists and the rest.

    Names of union members stand in locations too; they lead nowhere and are left out.
    """
    node, path, rest = root, [], []
    for step in loc:
        below = child(node, step)
        if below is None:
            rest.append(step)
        else:
            node = below
            path.append(step)
            rest.clear()
    return tuple(path), tuple(rest)


def _problem(
    path: FieldPath,
    group: Sequence[ErrorDetails],
    root: Node,
    model: type[BaseModel],
    prefix: FieldPath,
) -> Problem:
    first = group[0]
    schema_path = path[len(prefix) :]
    if first["type"] == "missing":
        return _missing(path, root)
    if first["type"] == "extra_forbidden":
        return _unknown(path, root, model_at(model, schema_path[:-1]))
    node = root.nearest(path)
    expected = list(dict.fromkeys(_expected(detail) for detail in group))
    choices = [choice for detail in group for choice in _choices(detail)]
    remedy = f"expected {' or '.join(expected)}"
    if isinstance(node.value, str) and choices and not node.origin.variable:
        near = nearest(node.value, choices)
        remedy += f"; did you mean {near}?" if near else ""
    if isinstance(node.value, str) and path and path[-1] in SECTIONS:
        remedy += f": write {path[-1]}: {{id: …}}"
    return Problem(f"found {described(node)}", written_at(node, path), remedy)


def written_at(node: Node, path: FieldPath) -> Where:
    """Give a node's place, its field named even where the origin names none."""
    where = node.origin.where
    if where.field or where.file is None:
        return where
    return Where(where.file, where.line, where.column, path_text(path) or None)


def _missing(path: FieldPath, root: Node) -> Problem:
    holder = root.nearest(path[:-1])
    where = holder.origin.key_where
    field = f"{where.field}.{path[-1]}" if where.field else path_text(path)
    return Problem(
        f"the required field {path[-1]} is missing",
        Where(where.file, where.line, where.column, field),
        remedy=_how_to_add(path, holder),
    )


def _how_to_add(path: FieldPath, holder: Node) -> str:
    """Say how a field of a component is given where it is named on the command line."""
    section = _WORDS.get(str(path[2])) if len(path) == 4 and path[0] == "requests" else None
    if section is None or holder.origin.layer != COMMAND_LINE:
        return f"add {path[-1]}"
    return f"add -P {section}.{path[-1]}=…"


def _unknown(path: FieldPath, root: Node, model: type[BaseModel] | None) -> Problem:
    name = str(path[-1])
    node = root.nearest(path)
    fields = model.model_fields if model is not None else {}
    allowed = [field.alias or name for name, field in fields.items()]
    near = nearest(name, allowed)
    remedy = f"did you mean {near}? " if near else ""
    remedy += f"allowed: {', '.join(allowed)}" if allowed else "take it out: none are allowed here"
    return Problem(f"unknown field {name!r}", node.origin.key_where, remedy)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort problems by file and position, options first; what is said twice is said once."""
    return sorted(dict.fromkeys(problems), key=_position)


def _position(problem: Problem) -> tuple[str, int, int]:
    where = problem.where
    return (where.file or "", where.line or 0, where.column or 0)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Give the known name that a misspelt one is closest to, None where none is close."""
    options = list(known)
    by_lower = {option.lower(): option for option in reversed(options)}
    found = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def described(node: Node) -> str:
    """Describe a value for an error; never a secret's, nor what stands inside it."""
    value = node.value
    if node.origin.variable:
        return f"the value of ${{{node.origin.variable}}}"
    if isinstance(value, SecretRef):
        return "a secret"
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        if len(value) > _MAX_SHOWN:
            # Not cut: of half a secret in the wrong field nobody knows that it is one.
            return f"a text of {len(value)} characters"
        return f"the text {value!r}"
    return f"{value!r}"


def _expected(detail: ErrorDetails) -> str:
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        words = {
            "greater_than": ("gt", "above"),
            "greater_than_equal": ("ge", "of at least"),
            "less_than": ("lt", "below"),
            "less_than_equal": ("le", "of at most"),
        }
        key, word = words[kind]
        return f"a number {word} {context[key]:g}"
    if kind == "literal_error":
        return f"one of: {', '.join(_choices(detail))}"
    if kind == "string_too_short":
        return "text that is not empty"
    if kind == "too_short":
        return f"a list of at least {context.get('min_length', 1)}"
    if kind == "string_too_long":
        return f"text of at most {context.get('max_length')} characters"
    if kind == "too_long":
        return f"at most {context.get('max_length')} of them"
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        return _NAMED_FORMS.get(pattern) or f"text of the form {pattern}"
    return detail["msg"].removeprefix("Input should be ")


_NAMED_FORMS: Final = {UUID_FORM: "a UUID, as 123e4567-e89b-12d3-a456-426614174000"}
"""What people call a form that is checked by a pattern."""


def _choices(detail: ErrorDetails) -> list[str]:
    if detail["type"] != "literal_error":
        return []
    expected = str(detail.get("ctx", {}).get("expected", ""))
    return re.findall(r"'([^']*)'", expected) or [expected]


def model_at(model: type[BaseModel], path: FieldPath) -> type[BaseModel] | None:
    """Give the schema of the mapping at a path, None where there is none."""
    current: Any = model
    for step in path:
        current = _step(current, step)
        if current is None:
            return None
    return _model_in(current)


def _step(annotation: Any, step: str | int) -> Any:
    for option in _options(annotation):
        if isinstance(option, type) and issubclass(option, BaseModel):
            field = option.model_fields.get(str(step))
            if field is not None:
                return field.annotation
        origin = get_origin(option)
        if origin in (list, tuple) and isinstance(step, int):
            return get_args(option)[0]
        if origin is dict:
            return get_args(option)[1]
    return None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for option in _options(annotation):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None


def _options(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [inner for option in get_args(annotation) for inner in _options(option)]
    return [annotation]
